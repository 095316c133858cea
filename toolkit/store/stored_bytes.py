"""The bytes that each account stores, summed up by triggers in the transaction that changes them.

Because triggers do it, no write can skip it: not that of another process, of an earlier version
with the directory open, or of `toolkit prune`. So the sums are right after any crash. PostgreSQL's
triggers, with the same sizes, are in `postgres/triggers`.
"""

from toolkit.store.dialects import DatabaseKind
from toolkit.store.table_roles import get_roles
from toolkit.store.tables import metadata

# The size of a row without its documents: ids, times, index entries and its root.
ROW_OVERHEAD_BYTES = 250
EVENT_OVERHEAD_BYTES = 100
# The text columns that a caller can make grow, by table.
COUNTED_COLUMNS: dict[str, tuple[str, ...]] = {
    table.name: roles.counted
    for table in metadata.tables.values()
    if (roles := get_roles(table)).counted
}
# An event names no account: its resource is a root, or the workflow of a task.
EVENT_ACCOUNT_SQL = (
    "coalesce((SELECT account_id FROM roots WHERE id = {row}.resource_id),"
    " (SELECT account_id FROM workflows WHERE id = {row}.resource_id))"
)


_SIZES: dict[DatabaseKind, str] = {
    "sqlite": "length(CAST({text} AS BLOB))",
    "postgresql": "octet_length({text})",
}


def build_record_size(table: str, row: str, kind: DatabaseKind = "sqlite") -> str:
    """Build an expression for the size of a row, without an artifact's bytes."""
    columns = (f"{row}.{name}" for name in COUNTED_COLUMNS[table])
    sizes = (_SIZES[kind].format(text=column) for column in columns)
    return " + ".join([f"{ROW_OVERHEAD_BYTES}", *sizes])


def build_event_size(row: str, kind: DatabaseKind = "sqlite") -> str:
    """Build an expression for the size of an event."""
    return f"{EVENT_OVERHEAD_BYTES} + {_SIZES[kind].format(text=f'{row}.data')}"


def build_artifact_size(table: str, row: str) -> str:
    """Build an expression for the size of the stored bytes that a row refers to."""
    if table != "artifacts":
        return "0"
    return f"CASE WHEN {row}.deleted THEN 0 ELSE coalesce({row}.size_bytes, 0) END"


def _build_increment(account: str, artifacts: str, records: str) -> str:
    """Build the statement that adds to an account's sums, whose row may not exist yet."""
    return (
        f"INSERT INTO stored_bytes SELECT account, {artifacts}, {records}"  # noqa: S608 - our names
        f" FROM (SELECT {account} AS account) WHERE account IS NOT NULL"
        " ON CONFLICT (id) DO UPDATE SET artifacts = artifacts + excluded.artifacts,"
        " records = records + excluded.records;"
    )


def _build_table_triggers(table: str) -> list[str]:
    new = build_artifact_size(table, "NEW"), build_record_size(table, "NEW")
    old = build_artifact_size(table, "OLD"), build_record_size(table, "OLD")
    changed = ", ".join((*COUNTED_COLUMNS[table], *(("deleted",) if table == "artifacts" else ())))
    difference = [f"({now}) - ({before})" for now, before in zip(new, old, strict=True)]
    removals = [f"-({before})" for before in old]
    return [
        f"CREATE TRIGGER count_{table}_insert AFTER INSERT ON {table}"
        f" BEGIN {_build_increment('NEW.account_id', *new)} END",
        f"CREATE TRIGGER count_{table}_update AFTER UPDATE OF {changed} ON {table}"
        f" BEGIN {_build_increment('NEW.account_id', *difference)} END",
        f"CREATE TRIGGER count_{table}_delete AFTER DELETE ON {table}"
        f" BEGIN {_build_increment('OLD.account_id', *removals)} END",
    ]


def _build_event_triggers() -> list[str]:
    triggers = []
    for verb, row, sign in (("insert", "NEW", ""), ("delete", "OLD", "-")):
        account = EVENT_ACCOUNT_SQL.format(row=row)
        body = _build_increment(account, "0", f"{sign}({build_event_size(row)})")
        triggers.append(
            f"CREATE TRIGGER count_events_{verb} AFTER {verb.upper()} ON events BEGIN {body} END"
        )
    return triggers


TRIGGERS: tuple[str, ...] = (
    *(trigger for table in COUNTED_COLUMNS for trigger in _build_table_triggers(table)),
    *_build_event_triggers(),
)


def build_totals_query(kind: DatabaseKind) -> str:
    """Build a query that computes each account's sums from all rows."""
    parts = [
        f"SELECT account_id, {build_artifact_size(table, table)} AS artifacts,"  # noqa: S608
        f" {build_record_size(table, table, kind)} AS records FROM {table}"
        for table in COUNTED_COLUMNS
    ]
    account = EVENT_ACCOUNT_SQL.format(row="events")
    parts.append(f"SELECT {account}, 0, {build_event_size('events', kind)} FROM events")  # noqa: S608
    return (
        "SELECT account_id AS id, sum(artifacts) AS artifacts, sum(records) AS records"  # noqa: S608
        f" FROM ({' UNION ALL '.join(parts)}) AS counted"
        " WHERE account_id IS NOT NULL GROUP BY account_id"
    )


def build_recount(kind: DatabaseKind) -> tuple[str, str]:
    """Build the statements that compute all sums anew."""
    return "DELETE FROM stored_bytes", f"INSERT INTO stored_bytes {build_totals_query(kind)}"


def build_shortfall_query(kind: DatabaseKind) -> str:
    """Build a query of the shortfall of each account whose sums are wrong.

    It is one query, so that sums and rows are of the same moment.
    """
    return (
        "SELECT id, sum(artifacts) AS artifacts, sum(records) AS records"  # noqa: S608 - our names
        " FROM (SELECT id, -artifacts AS artifacts, -records AS records FROM stored_bytes"
        f" UNION ALL SELECT id, artifacts, records FROM ({build_totals_query(kind)}) AS totals)"
        " AS differences GROUP BY id"
        " HAVING sum(artifacts) <> 0 OR sum(records) <> 0 ORDER BY id"
    )


ADD_SQL = (
    "INSERT INTO stored_bytes (id, artifacts, records) VALUES (:id, :artifacts, :records)"
    " ON CONFLICT (id) DO UPDATE SET artifacts = stored_bytes.artifacts + excluded.artifacts,"
    " records = stored_bytes.records + excluded.records"
)
