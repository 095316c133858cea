"""The version of the configuration: a number that triggers increase when some of it changes.

The configuration decides which actions each caller may take with each secret: accounts, API keys,
connections and their shares. Each change increases the number in its own transaction. That includes
changes by other processes, by earlier versions, or by a person with a database tool. So a value
that was derived from it in memory is valid as long as the number is the same.
"""

from typing import TypeAlias

from toolkit.store.dialects import DatabaseKind
from toolkit.store.table_roles import get_roles
from toolkit.store.tables import metadata

ConfigurationVersion: TypeAlias = tuple[float, ...]  # the number, and the server's start time

# It has a member that changes often and decides nothing: when the key was last used.
COLUMN_WITH_LAST_USE = ("api_keys", "doc")
RAISE_SQL = "UPDATE configuration SET version = version + 1;"
FIRST_VERSION_SQL = "INSERT INTO configuration (id, version) VALUES ('all', 1)"
# PostgreSQL's number may go back, as after a failover to a server that lacks the last commits, and
# be reached again by other changes: so it is paired with the start time of its server.
READ_VERSION_SQL: dict[DatabaseKind, str] = {
    "sqlite": "SELECT version FROM configuration",
    "postgresql": "SELECT version, extract(epoch FROM pg_postmaster_start_time())::float8"
    " FROM configuration",
}
# The columns of each table that affect access; a connection's health does not.
DECISIVE_COLUMNS: dict[str, tuple[str, ...]] = {
    table.name: roles.decisive
    for table in metadata.tables.values()
    if (roles := get_roles(table)).decisive
}


def _build_difference(table: str, column: str) -> str:
    """Build the condition, in SQLite's SQL, that an update changes a column.

    The time of a key's last use does not count.
    """
    old, new = f"OLD.{column}", f"NEW.{column}"
    if (table, column) == COLUMN_WITH_LAST_USE:
        old, new = (f"json_remove({value}, '$.last_used_at')" for value in (old, new))
    return f"{old} IS NOT {new}"


def _build_table_triggers(table: str, columns: tuple[str, ...]) -> list[str]:
    head, body = f"CREATE TRIGGER configure_{table}_", f"BEGIN {RAISE_SQL} END"
    changed = " OR ".join(_build_difference(table, name) for name in columns)
    return [
        f"{head}insert AFTER INSERT ON {table} {body}",
        f"{head}update AFTER UPDATE OF {', '.join(columns)} ON {table} WHEN {changed} {body}",
        f"{head}delete AFTER DELETE ON {table} {body}",
    ]


CONFIGURATION_TRIGGERS: tuple[str, ...] = tuple(
    trigger
    for table, columns in DECISIVE_COLUMNS.items()
    for trigger in _build_table_triggers(table, columns)
)
