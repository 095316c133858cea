"""The newest ids in a data directory, for a shell that completes them."""

import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

MAX_WAIT_S = 0.2  # for a database that others have locked
# By resource: the table, its column of ids, and the column with a description.
_TABLES = {
    "account/keys": ("api_keys", "id", "''"),
    "accounts": ("accounts", "email", "id"),
    "agents": ("agents", "id", "json_extract(doc, '$.name')"),
    "agents by name": ("agents", "json_extract(doc, '$.name')", "id"),
    "artifacts": ("artifacts", "id", "''"),
    "compute": ("compute", "id", "status"),
    "endpoints": ("endpoints", "id", "status"),
    "jobs": ("jobs", "id", "capability || ' ' || status"),
    "plans": ("plans", "id", "''"),
    "providers/connections": ("connections", "id", "provider"),
    "runs": ("jobs", "run_id", "capability || ' ' || status"),
    "storage": ("storage", "id", "status"),
    "tasks": ("tasks", "id", "status"),
    "templates": ("templates", "id", "status"),
    "workflows": ("workflows", "id", "status"),
}


def list_newest_ids(data_dir: Path, area: str, limit: int) -> list[tuple[str, str]]:
    """Read the newest ids of a resource, each with a short description, and write nothing.

    Args:
        area: path of the resource below `/v1`; also `accounts`, and `agents by name`.

    Raises:
        sqlite3.Error: there is no database, or none that can be read now.
    """
    table, ids, words = _TABLES[area]
    uri = f"file:{quote(str((data_dir / 'state.db').absolute()))}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True, timeout=MAX_WAIT_S)) as connection:
        rows = connection.execute(
            f"SELECT {ids}, {words} FROM {table} WHERE {ids} IS NOT NULL"  # noqa: S608 - our names
            " ORDER BY created_at DESC LIMIT ?",
            (limit,),
        )
        return [(str(row_id), str(word)) for row_id, word in rows]
