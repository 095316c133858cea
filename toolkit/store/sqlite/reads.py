"""Reads of a database of SQLite, which are answered at once."""

import sqlite3
from collections.abc import Mapping
from typing import Any

from toolkit.store.dialects import DatabaseKind
from toolkit.store.input_texts import has_text
from toolkit.store.json_sql import HAS_TEXT
from toolkit.store.read_connection import Row
from toolkit.store.sqlite.connections import make_unavailable_error


class SqliteReadConnection:
    """A connection of SQLite's own driver, as running statements by SQLAlchemy is slower.

    Its methods never wait for anything: a read that is in memory takes microseconds.
    """

    kind: DatabaseKind = "sqlite"

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        connection.create_function(HAS_TEXT, 3, has_text, deterministic=True)

    async def fetch_rows(self, sql: str, given: Mapping[str, object]) -> list[Row]:
        """Fetch all rows, each by the names of its columns."""
        return self.read_rows(sql, given)

    def read_rows(self, sql: str, given: Mapping[str, object]) -> list[Row]:
        """Fetch all rows where nothing can be awaited."""
        try:  # and not `translate_errors`: as a context manager it costs half a read
            cursor = self._connection.execute(sql, given)
            found = cursor.fetchall()
        except (sqlite3.Error, OSError) as error:
            raise make_unavailable_error(error) from error
        if not found:
            return []
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in found]

    async def fetch_values(self, sql: str, given: Mapping[str, object]) -> tuple[Any, ...] | None:
        """Fetch the values of the first row, if there is one."""
        try:
            row: tuple[Any, ...] | None = self._connection.execute(sql, given).fetchone()
        except (sqlite3.Error, OSError) as error:
            raise make_unavailable_error(error) from error
        return row

    def get_data_version(self) -> int:
        """Return a number that changes when another connection has committed."""
        return int(self.read_rows("PRAGMA data_version", {})[0]["data_version"])
