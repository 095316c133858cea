"""Reservations that all processes see, usage by key, and the bytes that each account stores."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"

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
_EVENT = "100 + length(CAST({row}.data AS BLOB))"


def upgrade() -> None:
    """Create them, and sum up the existing rows."""
    op.create_table(
        "reservations",
        sa.Column("id", sa.String(), primary_key=True),
        sa.Column("spending_id", sa.String(), nullable=False),
        sa.Column("owner", sa.String(), nullable=False),
        sa.Column("nano", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.String(), nullable=False),
    )
    op.create_index("ix_reservations_spending", "reservations", ["spending_id"])
    op.add_column("usage", sa.Column("key_id", sa.String(), nullable=True))
    op.create_table(
        "stored_bytes",
        sa.Column("id", sa.String(), primary_key=True),
        sa.Column("artifacts", sa.Integer(), nullable=False),
        sa.Column("records", sa.Integer(), nullable=False),
    )
    parts = [
        f"SELECT account_id, {_bytes(table, table)} AS artifacts,"  # noqa: S608 - our names
        f" {_texts(table, table)} AS records FROM {table}"
        for table in _TEXTS
    ]
    owner = _OWNER_OF_EVENT.format(row="events")
    parts.append(f"SELECT {owner}, 0, {_EVENT.format(row='events')} FROM events")  # noqa: S608
    op.execute(
        "INSERT INTO stored_bytes SELECT account_id, sum(artifacts), sum(records)"  # noqa: S608
        f" FROM ({' UNION ALL '.join(parts)}) WHERE account_id IS NOT NULL GROUP BY account_id"
    )
    for table in _TEXTS:
        _count(table)
    for verb, row, sign in (("insert", "NEW", ""), ("delete", "OLD", "-")):
        size = f"{sign}({_EVENT.format(row=row)})"
        added = _add(_OWNER_OF_EVENT.format(row=row), "0", size)
        _trigger(f"count_events_{verb} AFTER {verb.upper()} ON events BEGIN {added} END")


def _count(table: str) -> None:
    """Create the triggers that sum up each account's rows of a table."""
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


def _trigger(rest: str) -> None:
    statement = f"CREATE TRIGGER {rest}"  # of our own names alone: a trigger takes no parameters
    op.execute(statement)


def _texts(table: str, row: str) -> str:
    return " + ".join(["250", *(f"length(CAST({row}.{name} AS BLOB))" for name in _TEXTS[table])])


def _bytes(table: str, row: str) -> str:
    if table != "artifacts":
        return "0"
    return f"CASE WHEN {row}.deleted THEN 0 ELSE coalesce({row}.size_bytes, 0) END"


def _add(account: str, artifacts: str, records: str) -> str:
    return (
        f"INSERT INTO stored_bytes SELECT {account}, 0, 0"  # noqa: S608 - our names
        f" WHERE {account} IS NOT NULL AND NOT EXISTS"
        f" (SELECT 1 FROM stored_bytes WHERE id = {account});"
        f" UPDATE stored_bytes SET artifacts = artifacts + {artifacts},"
        f" records = records + {records} WHERE id = {account};"
    )
