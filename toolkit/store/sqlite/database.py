"""A data directory's SQLite database: its connections, ballast and checkpoints."""

import sqlite3
from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any, cast

from sqlalchemy import Connection

from toolkit.store.data_dir.location import claim_location, claim_world
from toolkit.store.data_dir.owners import LeaseOwner, find_active_owners
from toolkit.store.database import OpenDatabase
from toolkit.store.dialects import DatabaseKind
from toolkit.store.event_waiters import POLL_INTERVAL_S
from toolkit.store.input_texts import has_text
from toolkit.store.json_sql import HAS_TEXT
from toolkit.store.leases.clock import SharedClock
from toolkit.store.read_connection import Row
from toolkit.store.schema import SchemaVersion, migrate_schema
from toolkit.store.sqlite.checkpoints import WalCheckpointer
from toolkit.store.sqlite.connections import (
    create_sqlite_engine,
    make_unavailable_error,
    translate_errors,
)
from toolkit.store.sqlite.writes import SqliteWriteConnection, WriteTurns, begin_sqlite_transaction
from toolkit.store.writing.ballast import BallastFile

READ_TIMEOUT_MS = 50


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
        """Fetch the values of the first row, if there is one."""
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

    Returns:
        the version of its tables from then on.

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

    Args:
        data_dir: folder of `state.db`.
        durability: `full` makes every commit survive a power cut as well as a crash.
        sandbox: whether the work in it is simulated or real; None does not check.
        take_up: true makes a copy a data directory of its own.

    Attributes:
        write_connection: connection of the writer.

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
            _get_driver_connection(self.write_connection),
            self.owner.id,
            self._turns,
            self._ballast,
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
