"""Checkpoints of the write-ahead log: by one connection of one process at a time."""

from pathlib import Path
from typing import IO

from sqlalchemy import Connection

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows
    fcntl = None  # type: ignore[assignment]

LARGE_WAL_BYTES = 4 * 1024 * 1024
EVERY_COMMITS = 200


class Checkpoints:
    """Moves the log into the database when it has grown, under a lock between processes.

    SQLite 3.7.0 to 3.51.2 can corrupt a database that two connections checkpoint at once.
    """

    def __init__(self, database: Path) -> None:
        self._wal = database.with_name(database.name + "-wal")
        self._lock = database.with_name("checkpoint.lock")
        self._commits = 0

    def consider(self, connection: Connection) -> None:
        """Make a checkpoint every so often, if the log has grown large."""
        self._commits += 1
        if self._commits % EVERY_COMMITS == 0 and self._size() > LARGE_WAL_BYTES:
            self._make(connection, "PASSIVE")

    def truncate(self, connection: Connection) -> None:
        """Leave a short log behind."""
        self._make(connection, "TRUNCATE")

    def _size(self) -> int:
        return self._wal.stat().st_size if self._wal.exists() else 0

    def _make(self, connection: Connection, mode: str) -> None:
        with self._lock.open("ab") as file:
            if self._taken(file):
                connection.exec_driver_sql(f"PRAGMA wal_checkpoint({mode})")
                connection.rollback()

    @staticmethod
    def _taken(file: IO[bytes]) -> bool:
        if fcntl is None:
            return True
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True
