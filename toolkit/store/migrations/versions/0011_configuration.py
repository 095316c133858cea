"""The version of the configuration, raised by triggers; cheaper ones that sum up stored bytes."""

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
_TEXTS = {
    "jobs": ("doc",),
    "workflows": ("doc", "spec"),
    "tasks": ("doc",),
    "plans": ("doc",),
    "agents": ("doc",),
    "artifacts": ("doc",),
    "connections": ("doc",),
    "api_keys": ("doc",),
    "idempotency": ("body",),
    "endpoints": ("doc", "spec"),
    "compute": ("doc", "spec"),
    "storage": ("doc", "spec"),
    "templates": ("doc", "spec"),
}
_OWNER_OF_EVENT = (
    "coalesce((SELECT account_id FROM roots WHERE id = {row}.resource_id),"
    " (SELECT account_id FROM workflows WHERE id = {row}.resource_id))"
)
_RAISE = "BEGIN UPDATE configuration SET version = version + 1; END"


def upgrade() -> None:
    """Create it, and have each trigger that sums up bytes look up the account once."""
    op.create_table(
        "configuration",
        sa.Column("id", sa.String(), primary_key=True),
        sa.Column("version", sa.Integer(), nullable=False),
    )
    op.execute("INSERT INTO configuration (id, version) VALUES ('all', 1)")
    for table, columns in _COLUMNS.items():
        changed = " OR ".join(_differs(table, name) for name in columns)
        update = f"UPDATE OF {', '.join(columns)} ON {table} WHEN {changed}"
        _trigger(f"configure_{table}_insert AFTER INSERT ON {table} {_RAISE}")
        _trigger(f"configure_{table}_update AFTER {update} {_RAISE}")
        _trigger(f"configure_{table}_delete AFTER DELETE ON {table} {_RAISE}")
    for table in _TEXTS:
        for verb in ("insert", "update", "delete"):
            _drop_trigger(f"count_{table}_{verb}")
        _count(table)
    for verb, row, sign in (("insert", "NEW", ""), ("delete", "OLD", "-")):
        _drop_trigger(f"count_events_{verb}")
        size = f"{sign}(100 + length(CAST({row}.data AS BLOB)))"
        added = _add(_OWNER_OF_EVENT.format(row=row), "0", size)
        _trigger(f"count_events_{verb} AFTER {verb.upper()} ON events BEGIN {added} END")


def _count(table: str) -> None:
    new = _bytes(table, "NEW"), _texts(table, "NEW")
    old = _bytes(table, "OLD"), _texts(table, "OLD")
    changed = ", ".join((*_TEXTS[table], *(("deleted",) if table == "artifacts" else ())))
    difference = [f"({now}) - ({before})" for now, before in zip(new, old, strict=True)]
    gone = [f"-({before})" for before in old]
    head = f"count_{table}_"
    added = _add("NEW.account_id", *new)
    _trigger(f"{head}insert AFTER INSERT ON {table} BEGIN {added} END")
    added = _add("NEW.account_id", *difference)
    _trigger(f"{head}update AFTER UPDATE OF {changed} ON {table} BEGIN {added} END")
    added = _add("OLD.account_id", *gone)
    _trigger(f"{head}delete AFTER DELETE ON {table} BEGIN {added} END")


def _texts(table: str, row: str) -> str:
    return " + ".join(["250", *(f"length(CAST({row}.{name} AS BLOB))" for name in _TEXTS[table])])


def _bytes(table: str, row: str) -> str:
    if table != "artifacts":
        return "0"
    return f"CASE WHEN {row}.deleted THEN 0 ELSE coalesce({row}.size_bytes, 0) END"


def _add(account: str, artifacts: str, records: str) -> str:
    return (
        f"INSERT INTO stored_bytes SELECT account, {artifacts}, {records}"  # noqa: S608 - our names
        f" FROM (SELECT {account} AS account) WHERE account IS NOT NULL"
        " ON CONFLICT (id) DO UPDATE SET artifacts = artifacts + excluded.artifacts,"
        " records = records + excluded.records;"
    )


def _differs(table: str, column: str) -> str:
    old, new = f"OLD.{column}", f"NEW.{column}"
    if (table, column) == ("api_keys", "doc"):  # when a key was last used decides nothing
        old, new = (f"json_remove({each}, '$.last_used_at')" for each in (old, new))
    return f"{old} IS NOT {new}"


def _trigger(rest: str) -> None:
    statement = f"CREATE TRIGGER {rest}"  # of our own names alone
    op.execute(statement)


def _drop_trigger(name: str) -> None:
    statement = f"DROP TRIGGER {name}"  # of our own names alone
    op.execute(statement)
