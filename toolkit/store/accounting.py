"""The bytes that each account stores, summed up by triggers in the transaction that changes them.

Triggers do it, so that no write can skip it, whoever makes it: another process, an earlier version
that has the directory open, or `toolkit prune`. So the sums are right after any crash.
"""

import sqlite3

# The size of a row without its documents: ids, times, index entries and its root.
ROW_BYTES = 250
EVENT_BYTES = 100
# The text columns of each table that a caller can make grow.
TEXTS: dict[str, tuple[str, ...]] = {
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
# An event names no account: its resource is a root, or the workflow of a task.
_OWNER_OF_EVENT = (
    "coalesce((SELECT account_id FROM roots WHERE id = {row}.resource_id),"
    " (SELECT account_id FROM workflows WHERE id = {row}.resource_id))"
)


def _record_bytes(table: str, row: str) -> str:
    """Build an expression for the size of a row, without an artifact's bytes."""
    return " + ".join(
        [f"{ROW_BYTES}", *(f"length(CAST({row}.{name} AS BLOB))" for name in TEXTS[table])]
    )


def _artifact_bytes(table: str, row: str) -> str:
    """Build an expression for the size of the stored bytes that a row refers to."""
    if table != "artifacts":
        return "0"
    return f"CASE WHEN {row}.deleted THEN 0 ELSE coalesce({row}.size_bytes, 0) END"


def _add(account: str, artifacts: str, records: str) -> str:
    """Build the statements that add to an account's sums, whose row may not exist yet."""
    return (
        f"INSERT INTO stored_bytes SELECT {account}, 0, 0"  # noqa: S608 - our names
        f" WHERE {account} IS NOT NULL AND NOT EXISTS"
        f" (SELECT 1 FROM stored_bytes WHERE id = {account});"
        f" UPDATE stored_bytes SET artifacts = artifacts + {artifacts},"
        f" records = records + {records} WHERE id = {account};"
    )


def _triggers_of(table: str) -> list[str]:
    new = _artifact_bytes(table, "NEW"), _record_bytes(table, "NEW")
    old = _artifact_bytes(table, "OLD"), _record_bytes(table, "OLD")
    changed = ", ".join((*TEXTS[table], *(("deleted",) if table == "artifacts" else ())))
    difference = [f"({now}) - ({before})" for now, before in zip(new, old, strict=True)]
    gone = [f"-({before})" for before in old]
    return [
        f"CREATE TRIGGER count_{table}_insert AFTER INSERT ON {table}"
        f" BEGIN {_add('NEW.account_id', *new)} END",
        f"CREATE TRIGGER count_{table}_update AFTER UPDATE OF {changed} ON {table}"
        f" BEGIN {_add('NEW.account_id', *difference)} END",
        f"CREATE TRIGGER count_{table}_delete AFTER DELETE ON {table}"
        f" BEGIN {_add('OLD.account_id', *gone)} END",
    ]


def _triggers_of_events() -> list[str]:
    size = f"{EVENT_BYTES} + length(CAST({{row}}.data AS BLOB))"
    made = []
    for verb, row, sign in (("insert", "NEW", ""), ("delete", "OLD", "-")):
        account = _OWNER_OF_EVENT.format(row=row)
        added = _add(account, "0", f"{sign}({size.format(row=row)})")
        made.append(
            f"CREATE TRIGGER count_events_{verb} AFTER {verb.upper()} ON events BEGIN {added} END"
        )
    return made


TRIGGERS: tuple[str, ...] = (
    *(trigger for table in TEXTS for trigger in _triggers_of(table)),
    *_triggers_of_events(),
)


def _sums() -> str:
    """Build a query that computes each account's sums from all rows."""
    parts = [
        f"SELECT account_id, {_artifact_bytes(table, table)} AS artifacts,"  # noqa: S608
        f" {_record_bytes(table, table)} AS records FROM {table}"
        for table in TEXTS
    ]
    account = _OWNER_OF_EVENT.format(row="events")
    parts.append(
        f"SELECT {account}, 0, {EVENT_BYTES} + length(CAST(data AS BLOB)) FROM events"  # noqa: S608
    )
    return (
        "SELECT account_id AS id, sum(artifacts) AS artifacts, sum(records) AS records"  # noqa: S608
        f" FROM ({' UNION ALL '.join(parts)}) WHERE account_id IS NOT NULL GROUP BY account_id"
    )


COUNT_AGAIN = ("DELETE FROM stored_bytes", f"INSERT INTO stored_bytes {_sums()}")


def find_miscounted(connection: sqlite3.Connection) -> list[str]:
    """Find the accounts whose sums are wrong."""
    counted = {row[0]: row[1:] for row in connection.execute("SELECT * FROM stored_bytes")}
    kept = {row[0]: row[1:] for row in connection.execute(_sums())}
    return [
        str(account_id)
        for account_id in sorted(counted.keys() | kept.keys())
        if counted.get(account_id, (0, 0)) != kept.get(account_id, (0, 0))
    ]
