"""Connections to SQLite as this store wants them, and its faults as ours."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, create_engine, event
from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError, SQLAlchemyError

from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.store.changes import Conflict

BUSY_TIMEOUT_MS = 5_000
RETRY_AFTER_S = 1.0


def connect(path: Path, durability: str) -> Engine:
    """An engine of connections in WAL mode, whose transactions are begun by us alone."""
    engine = create_engine(
        f"sqlite:///{path}", connect_args={"check_same_thread": False, "timeout": 5.0}
    )

    @event.listens_for(engine, "connect")
    def _prepare(connection: sqlite3.Connection, _record: object) -> None:
        # The driver's own BEGIN is deferred, and fails at once when two processes upgrade it.
        connection.isolation_level = None
        for pragma in (
            "journal_mode=WAL",
            f"synchronous={'FULL' if durability == 'full' else 'NORMAL'}",
            f"busy_timeout={BUSY_TIMEOUT_MS}",
            # Two connections that checkpoint at once can corrupt SQLite up to 3.51.2.
            "wal_autocheckpoint=0",
        ):
            try:
                connection.execute(f"PRAGMA {pragma}")
            except sqlite3.Error:
                connection.close()  # the pool does not have it yet
                raise

    return engine


def read_only(database: Path) -> sqlite3.Connection:
    """A connection beside all others, for looking at a database whatever state it is in."""
    return sqlite3.connect(f"file:{database}?mode=ro", uri=True)


def find_database(data_dir: Path) -> Path:
    """Find the database of a data directory.

    Raises:
        ServiceError: `UNAVAILABLE` when it is no data directory.
    """
    database = data_dir / "state.db"
    if not database.is_file():
        raise ServiceError(
            ErrorCode.UNAVAILABLE,
            f"There is no data directory at {data_dir}: name the one there is (--data-dir).",
        )
    return database


@contextmanager
def translated() -> Iterator[None]:
    """Turn the database's faults into ours; no text of the database leaves here.

    Raises:
        Conflict: a value that must be unique is taken.
        ServiceError: `UNAVAILABLE` for everything else.
    """
    try:
        yield
    except (IntegrityError, sqlite3.IntegrityError) as error:
        raise Conflict(str(getattr(error, "orig", error))) from None
    except (OperationalError, DBAPIError, SQLAlchemyError, sqlite3.Error, OSError) as error:
        raise unavailable(error) from error


def unavailable(error: Exception) -> ServiceError:
    """The one answer when the store cannot be used."""
    told = error.strerror if isinstance(error, OSError) else None  # the rest of it names paths
    reason = (told or str(getattr(error, "orig", error))).splitlines()[0][:120]
    return ServiceError(
        ErrorCode.UNAVAILABLE, f"The store cannot be used: {reason}.", retry_after=RETRY_AFTER_S
    )


Row = dict[str, Any]
