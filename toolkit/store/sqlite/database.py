"""A data directory's SQLite database: its connections, ballast and checkpoints."""

import sqlite3
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any, cast

from sqlalchemy import Connection

from toolkit.store.data_dir.location import claim_location, claim_world
from toolkit.store.data_dir.owners import LeaseOwner, find_active_owners
from toolkit.store.database import OpenDatabase
from toolkit.store.dialects import HAS_TEXT, DatabaseKind
from toolkit.store.event_waiters import POLL_INTERVAL_S
from toolkit.store.leases.clock import SharedClock
from toolkit.store.private_files import lock_file, open_private
from toolkit.store.read_connection import Row
from toolkit.store.schema import SchemaVersion, migrate_schema
from toolkit.store.sqlite.connections import (
    create_sqlite_engine,
    make_unavailable_error,
    translate_errors,
)
from toolkit.store.sqlite.writes import SqliteWriteConnection, begin_sqlite_transaction
from toolkit.store.text_index import has_text
from toolkit.store.writing.ballast import BallastFile
from toolkit.store.writing.direct_writer import WriteTurns

# The longer, the fewer times a page that changes often is moved: at 4 MB it takes twice the CPU. To
# read a log of this length, which a crash leaves, takes less than 0.1 s.
LARGE_WAL_BYTES = 16 * 1024 * 1024
# A log that is always being written to is never moved as a whole, so never reset: past this size,
# writers wait until all of it is moved.
HUGE_WAL_BYTES = 2 * LARGE_WAL_BYTES
COMMITS_PER_CHECK = 20
READ_TIMEOUT_MS = 50


class WalCheckpointer:
    """A checkpointer that moves a long log into the database, under a lock between processes.

    SQLite 3.7.0 to 3.51.2 can corrupt a database that two connections checkpoint at once. It is
    done in a thread: a checkpoint takes many times as long as a commit.
    """

    def __init__(self, database: Path) -> None:
        self._database = database
        self._wal = database.with_name(database.name + "-wal")
        self._lock = database.with_name("checkpoint.lock")
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="toolkit-checkpoint")
        self._running: Future[None] | None = None
        self._commits = 0
        # The length of the log when the last checkpoint began: all before that has been moved.
        self._moved_bytes = 0

    def checkpoint_if_due(self) -> None:
        """Run a checkpoint if the log has grown by much since the last checkpoint, or is huge.

        The length is checked once in `COMMITS_PER_CHECK` commits. It is no sufficient sign: writes
        during a checkpoint prevent a restart of the log, and so it stays long.
        """
        self._commits += 1
        if self._commits % COMMITS_PER_CHECK:
            return
        size = self._get_wal_size()
        self._moved_bytes = min(size, self._moved_bytes)  # it may have been cut off
        is_huge = size >= HUGE_WAL_BYTES
        if not is_huge and size - self._moved_bytes < LARGE_WAL_BYTES:
            return
        if self._running is None or self._running.done():
            modes = ("PASSIVE", "TRUNCATE") if is_huge else ("PASSIVE",)
            self._running = self._thread.submit(self._run_checkpoint, *modes)

    def close(self) -> None:
        """Truncate the log, and end the thread."""
        self._thread.shutdown()
        self._run_checkpoint(
            "TRUNCATE"
        )  # here: an interpreter that ends may start no thread any more

    def _get_wal_size(self) -> int:
        return self._wal.stat().st_size if self._wal.exists() else 0

    def _run_checkpoint(self, *modes: str) -> None:
        size = self._get_wal_size()
        with open(self._lock, "ab", opener=open_private) as file:
            if not lock_file(file):
                return
            connection = sqlite3.connect(self._database, isolation_level=None)
            try:
                for mode in modes:
                    connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchall()
                self._moved_bytes = size
            except sqlite3.OperationalError:
                return  # another connection is writing: the log stays until the next time
            finally:
                connection.close()


class SqliteReadConnection:
    """A connection of SQLite's own driver, as running statements by SQLAlchemy is slower.

    Its methods never wait for anything: a read that is in memory takes microseconds.
    """

    kind: DatabaseKind = "sqlite"

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        connection.create_function(HAS_TEXT, 3, has_text, deterministic=True)

    async def fetch_rows(self, sql: str, parameters: Mapping[str, object]) -> list[Row]:
        """Fetch all rows, each by the names of its columns."""
        return self.read_rows(sql, parameters)

    def read_rows(self, sql: str, parameters: Mapping[str, object]) -> list[Row]:
        """Fetch all rows without awaiting, for synchronous callers."""
        try:  # and not `translate_errors`: as a context manager it costs half a read
            cursor = self._connection.execute(sql, parameters)
            rows = cursor.fetchall()
        except (sqlite3.Error, OSError) as error:
            raise make_unavailable_error(error) from error
        if not rows:
            return []
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in rows]

    async def fetch_values(
        self, sql: str, parameters: Mapping[str, object]
    ) -> tuple[Any, ...] | None:
        """Fetch the values of the first row, or None if there are no rows."""
        try:
            row: tuple[Any, ...] | None = self._connection.execute(sql, parameters).fetchone()
        except (sqlite3.Error, OSError) as error:
            raise make_unavailable_error(error) from error
        return row

    def get_data_version(self) -> int:
        """Return a number that changes when another connection has committed."""
        return int(self.read_rows("PRAGMA data_version", {})[0]["data_version"])


def _get_driver_connection(connection: Connection) -> sqlite3.Connection:
    """Return SQLite's own connection, as running statements by SQLAlchemy is slower than SQLite."""
    return cast("sqlite3.Connection", connection.connection.dbapi_connection)


def migrate_data_dir(data_dir: Path) -> SchemaVersion:
    """Run the missing migrations of a data directory, and open nothing.

    Raises:
        ServiceError: `UNAVAILABLE` when that cannot be done now, or not by this version.
    """
    engine = create_sqlite_engine(data_dir / "state.db", "full")
    try:
        with translate_errors(), engine.connect() as connection:
            return migrate_schema(connection, is_in_use=lambda: bool(find_active_owners(data_dir)))
    finally:
        engine.dispose()


class SqliteDatabase(OpenDatabase):
    """The database of a data directory, which several processes of one machine may have open.

    Raises:
        ServiceError: `UNAVAILABLE` when it cannot be used.
    """

    poll_interval_s = POLL_INTERVAL_S

    def __init__(
        self, data_dir: Path, durability: str, sandbox: bool | None, take_up: bool | None
    ) -> None:
        self._engine = create_sqlite_engine(data_dir / "state.db", durability)
        # If a later step fails, everything opened so far is closed again.
        with translate_errors(), ExitStack() as opened:
            opened.callback(self._engine.dispose)
            self.write_connection = opened.enter_context(self._engine.connect())
            migrate_schema(
                self.write_connection, is_in_use=lambda: bool(find_active_owners(data_dir))
            )
            if sandbox is not None:
                claim_world(self.write_connection, data_dir, sandbox=sandbox)
            self.is_copy = claim_location(self.write_connection, data_dir, take_up=take_up is True)
            self._read_connection = opened.enter_context(self._engine.connect())
            reads = _get_driver_connection(self._read_connection)
            # Writers never block readers; the loop must not wait for other locks.
            reads.execute(f"PRAGMA busy_timeout={READ_TIMEOUT_MS}")
            self.reads = SqliteReadConnection(reads)
            self.get_version = self.reads.get_data_version
            self.owner = LeaseOwner(data_dir)
            opened.pop_all()
        self.clock = SharedClock()
        self._turns = WriteTurns()
        self._ballast = BallastFile(data_dir)
        self.writes = SqliteWriteConnection(
            _get_driver_connection(self.write_connection), self.owner.id, self._turns, self._ballast
        )
        self._checkpoints = WalCheckpointer(data_dir / "state.db")

    def begin(self) -> AbstractContextManager[Connection]:
        """Begin a transaction on a connection of its own; on any thread."""
        return begin_sqlite_transaction(self._engine, self._turns)

    def note_commit(self) -> None:
        """Run a checkpoint of the log if it is due."""
        self._checkpoints.checkpoint_if_due()

    async def close(self) -> None:
        """Close everything."""
        self._ballast.close()
        with translate_errors():
            self._checkpoints.close()
            self.write_connection.close()
            self._read_connection.close()
            self._engine.dispose()
        self.owner.close()
