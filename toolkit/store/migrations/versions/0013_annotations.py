"""Tags and notes on runs, workflows and tasks, and an index of the tags."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"

_ADD = (
    "INSERT OR IGNORE INTO tags (account_id, tag, resource_id)"
    " SELECT NEW.account_id, each.value, NEW.id FROM json_each(NEW.tags) AS each;"
)
_REMOVE = (
    "DELETE FROM tags WHERE account_id = OLD.account_id AND resource_id = OLD.id"
    " AND tag IN (SELECT each.value FROM json_each(OLD.tags) AS each);"
)


def upgrade() -> None:
    """Create both tables, with the triggers that keep the index and sum up bytes."""
    op.create_table(
        "annotations",
        sa.Column("id", sa.String(), primary_key=True),
        sa.Column("account_id", sa.String(), nullable=False),
        sa.Column("tags", sa.Text(), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("created_at", sa.String(), nullable=False),
    )
    op.create_table(
        "tags",
        sa.Column("account_id", sa.String(), nullable=False),
        sa.Column("tag", sa.String(), nullable=False),
        sa.Column("resource_id", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("account_id", "tag", "resource_id"),
        sqlite_with_rowid=False,
    )
    _trigger(f"index_tags_insert AFTER INSERT ON annotations BEGIN {_ADD} END")
    _trigger(f"index_tags_update AFTER UPDATE OF tags ON annotations BEGIN {_REMOVE} {_ADD} END")
    _trigger(f"index_tags_delete AFTER DELETE ON annotations BEGIN {_REMOVE} END")
    new, old = _size("NEW"), _size("OLD")
    counted = _count("NEW.account_id", new)
    _trigger(f"count_annotations_insert AFTER INSERT ON annotations BEGIN {counted} END")
    counted = _count("NEW.account_id", f"({new}) - ({old})", "(0) - (0)")
    changed = "UPDATE OF tags, note ON annotations"
    _trigger(f"count_annotations_update AFTER {changed} BEGIN {counted} END")
    counted = _count("OLD.account_id", f"-({old})", "-(0)")
    _trigger(f"count_annotations_delete AFTER DELETE ON annotations BEGIN {counted} END")


def _size(row: str) -> str:
    texts = (f"length(CAST({row}.{name} AS BLOB))" for name in ("tags", "note"))
    return " + ".join(["250", *texts])


def _count(account: str, records: str, artifacts: str = "0") -> str:
    return (
        f"INSERT INTO stored_bytes SELECT account, {artifacts}, {records}"  # noqa: S608 - our names
        f" FROM (SELECT {account} AS account) WHERE account IS NOT NULL"
        " ON CONFLICT (id) DO UPDATE SET artifacts = artifacts + excluded.artifacts,"
        " records = records + excluded.records;"
    )


def _trigger(rest: str) -> None:
    statement = f"CREATE TRIGGER {rest}"  # of our own names alone
    op.execute(statement)
