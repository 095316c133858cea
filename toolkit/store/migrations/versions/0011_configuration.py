"""The version of the configuration, which triggers raise whenever some of it changes."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"

_COLUMNS = {
    "accounts": ("doc", "spec", "operator"),
    "api_keys": ("doc", "digest", "account_id"),
    "connections": ("doc", "provider", "account_id", "deleted"),
    "shares": ("connection_id", "shared_with"),
}
_RAISE = "BEGIN UPDATE configuration SET version = version + 1; END"


def upgrade() -> None:
    """Create it."""
    op.create_table(
        "configuration",
        sa.Column("id", sa.String(), primary_key=True),
        sa.Column("version", sa.Integer(), nullable=False),
    )
    op.execute("INSERT INTO configuration (id, version) VALUES ('all', 1)")
    for table, columns in _COLUMNS.items():
        changed = " OR ".join(_differs(table, name) for name in columns)
        update = f"UPDATE OF {', '.join(columns)} ON {table} WHEN {changed}"
        _trigger(f"configure_{table}_insert AFTER INSERT ON {table}")
        _trigger(f"configure_{table}_update AFTER {update}")
        _trigger(f"configure_{table}_delete AFTER DELETE ON {table}")


def _differs(table: str, column: str) -> str:
    old, new = f"OLD.{column}", f"NEW.{column}"
    if (table, column) == ("api_keys", "doc"):  # when a key was last used decides nothing
        old, new = (f"json_remove({each}, '$.last_used_at')" for each in (old, new))
    return f"{old} IS NOT {new}"


def _trigger(head: str) -> None:
    statement = f"CREATE TRIGGER {head} {_RAISE}"  # of our own names alone
    op.execute(statement)
