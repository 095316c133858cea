"""Connections to SQLite with this store's settings, and the translation of its errors."""

import errno
import os
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from sqlalchemy import Engine, create_engine, event
from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError, SQLAlchemyError

from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.store.changes import RETRY_AFTER_S, Conflict, StoreUnavailableError
from toolkit.store.private_files import create_private_file, is_writable
from toolkit.store.writing.write_connection import DatabaseUnwritable

BUSY_TIMEOUT_MS = 5_000
SWITCH_RETRY_S = 0.005
PERMISSION_ERRNOS = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
PRIMARY_CODE_MASK = 0xFF  # of SQLite's error codes, which may say more in their higher bits
# SQLite cannot write now, and can once there is space, memory or a working disk again. Nothing of
# the transaction is kept: https://sqlite.org/rescode.html
UNWRITABLE_CODES = frozenset(
    {
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_READONLY,
    }
)
BUSY_CODES = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})


def create_sqlite_engine(path: Path, durability: str) -> Engine:
    """Create an engine of connections in WAL mode, whose transactions only the store begins.

    A new file is readable by its owner alone, and so are the log and the index next to it.
    """
    with translate_errors():
        create_private_file(path)
    engine = create_engine(
        f"sqlite:///{path}", connect_args={"check_same_thread": False, "timeout": 5.0}
    )

    @event.listens_for(engine, "connect")
    def _prepare(connection: sqlite3.Connection, _record: object) -> None:
        # The driver's own BEGIN is deferred, and fails at once when two processes upgrade it.
        connection.isolation_level = None
        try:
            _switch_to_wal(connection)
            for pragma in (
                f"synchronous={'FULL' if durability == 'full' else 'NORMAL'}",
                f"busy_timeout={BUSY_TIMEOUT_MS}",
                # Two connections that checkpoint at once can corrupt SQLite up to 3.51.2.
                "wal_autocheckpoint=0",
            ):
                connection.execute(f"PRAGMA {pragma}")
        except sqlite3.Error:
            connection.close()  # the pool does not have it yet
            raise

    return engine


def _switch_to_wal(connection: sqlite3.Connection) -> None:
    """Switch a database to WAL mode, unless it is in it already."""
    deadline = time.monotonic() + BUSY_TIMEOUT_MS / 1_000
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            # SQLite does not wait here for others who are switching the same new file.
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(SWITCH_RETRY_S)
        else:
            return


def open_read_only(database: Path, *, briefly: bool = False) -> sqlite3.Connection:
    """Open a read-only connection next to all others, in any state of the database.

    It also works if nothing may be written, as on a disk that is mounted read-only. SQLite would
    rebuild the index of the log, so the database is opened as immutable; with a log, a copy of
    both files is read.

    Args:
        briefly: whether it is for one short read, which leaves no new file if nobody has it open.
    """
    uri = f"{database.absolute().as_uri()}?mode=ro"
    if briefly and not database.with_name(f"{database.name}-wal").exists():
        uri += "&immutable=1"
    connection = sqlite3.connect(uri, uri=True)
    try:
        connection.execute("SELECT 1 FROM sqlite_master").fetchone()
    except sqlite3.OperationalError:
        connection.close()
        if is_writable(database.parent):
            raise
        return _open_unwritable(database, uri)
    except sqlite3.DatabaseError:
        pass  # it is damaged, and the caller's reads will show how
    return connection


def _open_unwritable(database: Path, uri: str) -> sqlite3.Connection:
    log = database.with_name(f"{database.name}-wal")
    if not log.exists() or not log.stat().st_size:
        return sqlite3.connect(f"{uri}&immutable=1", uri=True)
    with TemporaryDirectory(prefix="toolkit-") as folder:
        for path in (database, log):
            shutil.copyfile(path, Path(folder) / path.name)
        connection = sqlite3.connect(Path(folder) / database.name)
        # From here on SQLite has both files open, so they need no names any more.
        connection.execute("SELECT 1 FROM sqlite_master").fetchone()
        return connection


@contextmanager
def translate_errors() -> Iterator[None]:
    """Translate the errors of SQLite and of files into the store's, which name no path.

    Raises:
        Conflict: a value that must be unique is taken.
        ServiceError: `UNAVAILABLE` for everything else.
    """
    try:
        yield
    except (IntegrityError, sqlite3.IntegrityError) as error:
        raise Conflict(str(getattr(error, "orig", error))) from None
    except (OperationalError, DBAPIError, SQLAlchemyError, sqlite3.Error, OSError) as error:
        raise make_unavailable_error(error) from error


@contextmanager
def translate_write_errors() -> Iterator[None]:
    """Translate the errors of a write as `translate_errors` does.

    Raises:
        Conflict: a value that must be unique is taken.
        DatabaseUnwritable: the database takes no writes now; the same may be tried again.
        ServiceError: `UNAVAILABLE` for everything else.
    """
    try:
        with translate_errors():
            yield
    except StoreUnavailableError as error:
        if find_primary_code(error.__cause__) in UNWRITABLE_CODES:
            raise DatabaseUnwritable(error.message) from error
        raise


def find_primary_code(error: BaseException | None) -> int | None:
    """Find SQLite's primary code of an error; None if the error is not of SQLite."""
    code = getattr(getattr(error, "orig", error), "sqlite_errorcode", None)
    return None if code is None else int(code) & PRIMARY_CODE_MASK


def make_unavailable_error(error: Exception) -> ServiceError:
    """Make the error for a store that cannot be used: when to retry, or the change to make.

    It is a `StoreUnavailableError` if the database itself is temporarily unavailable.
    """
    kind = ServiceError
    if find_primary_code(error) in UNWRITABLE_CODES | BUSY_CODES:
        kind = StoreUnavailableError
    detail = error.strerror if isinstance(error, OSError) else None  # the rest of it names paths
    text = detail or str(getattr(error, "orig", error)).strip() or type(error).__name__
    reason = text.splitlines()[0][:120]
    if _is_permission_error(error, reason):
        return kind(
            ErrorCode.UNAVAILABLE,
            f"The store cannot be used: {reason}. Allow this user to write there, or choose another"
            " directory.",
        )
    return kind(
        ErrorCode.UNAVAILABLE, f"The store cannot be used: {reason}.", retry_after=RETRY_AFTER_S
    )


def _is_permission_error(error: Exception, reason: str) -> bool:
    """Check whether this user may not write there, so that retries are useless."""
    if isinstance(error, OSError):
        return error.errno in PERMISSION_ERRNOS
    if "unable to open" in reason:
        try:  # SQLite gives the same error if the process has no file descriptor left
            os.close(os.open(os.devnull, os.O_RDONLY))
        except OSError:
            return False
        return True
    return "readonly" in reason
