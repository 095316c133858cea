"""Ballast: disk space of the PostgreSQL server that is reserved for results.

Temporary tables of the writer's session occupy the space. They are dropped when the disk is full.
"""

import logging
import sys
from typing import Final

import psycopg
from psycopg import errors

from toolkit.store.postgres.connections import Session

log = logging.getLogger(__name__)

# Each row is a page of its own, and is neither compressed nor moved out of the table.
_PAGE_BYTES: Final = 8192
# In the tablespace of the database, whose tables will need the space. Sent as one query, it is one
# transaction: if it fails, the server takes the new file away with all its pages.
_GROW_SQL: Final = """
SET temp_tablespaces = '';
CREATE TEMPORARY TABLE toolkit_ballast_{number} (filler text);
ALTER TABLE pg_temp.toolkit_ballast_{number} ALTER filler SET STORAGE PLAIN;
INSERT INTO pg_temp.toolkit_ballast_{number}
    SELECT repeat('x', 8000) FROM generate_series(1, {pages})
"""
# The files are cut to nothing as this commits. Unlike TRUNCATE, it needs no new page anywhere.
_DROP_SQL: Final = "DROP TABLE IF EXISTS {names}"
# Temporary tables are not allowed, or a pooler gives each transaction another session.
_UNSUPPORTED: Final = (
    errors.InsufficientPrivilege, errors.UndefinedTable, errors.InvalidSchemaName,
)  # fmt: skip


class SessionBallast:
    """Disk space reserved by temporary tables (ballast), which the server removes with the session.

    The rows of a temporary table are not in the write-ahead log. The log itself takes its space
    from segments that the server makes ahead, and no client can hold any: a server that finds no
    room for a segment stops, and results wait in memory until it is back.
    """

    def __init__(self) -> None:
        self._is_supported = True
        self._tables = 0
        self._size_bytes = 0

    @property
    def size_bytes(self) -> int:
        """The reserved space in bytes; `sys.maxsize` if the server allows no reservation."""
        return self._size_bytes if self._is_supported else sys.maxsize

    def note_new_session(self) -> None:
        """Note that the session is new and has no tables yet."""
        self._tables = self._size_bytes = 0

    def grow(self, connection: Session, size_bytes: int) -> None:
        """Reserve at least `size_bytes`; twice as much as before if it fits, so as to grow rarely.

        If the server does not allow that, a warning is logged and nothing is reserved from then on.

        Raises:
            psycopg.Error: there is no room for them; the space reserved before stays.
        """
        missing = size_bytes - self._size_bytes
        try:
            try:
                self._add_table(connection, max(missing, self._size_bytes))
            except errors.DiskFull:
                if missing >= self._size_bytes:
                    raise
                self._add_table(connection, missing)
        except _UNSUPPORTED as error:
            self._is_supported = False
            log.warning("no disk space is reserved for results: %s", error.diag.message_primary)

    def _add_table(self, connection: Session, more_bytes: int) -> None:
        pages = -(-more_bytes // _PAGE_BYTES)
        query = _GROW_SQL.format(number=self._tables, pages=pages)
        connection.execute(query.encode(), prepare=False)
        self._tables += 1
        self._size_bytes += more_bytes

    def drop(self, connection: Session) -> bool:
        """Release all reserved space; return False if there was none or this fails."""
        if not self._tables:
            return False
        names = ", ".join(f"pg_temp.toolkit_ballast_{number}" for number in range(self._tables))
        try:
            connection.execute(_DROP_SQL.format(names=names).encode(), prepare=False)
        except psycopg.Error:
            return False
        self.note_new_session()
        return True
