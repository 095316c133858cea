"""Connections to PostgreSQL that notice when they are cut, and the translation of its errors."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeAlias, cast

import psycopg
from psycopg import errors
from psycopg.abc import RV, PQGen
from psycopg.rows import TupleRow
from psycopg.types.numeric import Int8Dumper
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.store.changes import (
    RETRY_AFTER_S,
    Conflict,
    StoreUnavailableError,
    make_retryable_error,
)
from toolkit.store.writing.write_connection import (
    DatabaseLocked,
    DatabaseUnreachable,
    DatabaseUnwritable,
)

Session: TypeAlias = psycopg.Connection[Any]
# A cut network is noticed within about ten seconds, whether or not something was being sent.
NETWORK_OPTIONS: Final[dict[str, Any]] = {
    "connect_timeout": 5,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
# Far longer than the longest statement of the store waits for a lock and takes.
ANSWER_TIMEOUT_S: Final = 20.0
CHECK_INTERVAL_S: Final = 0.1
# The server cancels a statement before the client closes the connection: it would not notice the
# closing, and would go on while the retry has a session of its own.
SERVER_PATIENCE_SHARE: Final = 0.8
# More than there are statements, which are prepared at their first use.
PREPARED_STATEMENTS: Final = 500
# SQL condition for a row of `pg_stat_activity`: another session, of an engine. Engines' names have
# two words or more; a session that opens a database is "toolkit", and a command has one word, too.
IS_ENGINE_SQL: Final = (
    "datname = current_database() AND pid <> pg_backend_pid()"
    " AND starts_with(application_name, 'toolkit ')"
)
_TRY_AGAIN: Final = (
    errors.DeadlockDetected,
    errors.SerializationFailure,
    errors.LockNotAvailable,
    errors.QueryCanceled,
)
# Classes of SQLSTATE: https://www.postgresql.org/docs/current/errcodes-appendix.html
# The server lacks space, memory or connections, or its disk fails: the same may be written later.
_UNWRITABLE_CLASSES: Final = frozenset({"53", "58"})
# It is being stopped, started or replaced: another session is needed. After a failover, the server
# at the other end may be one that only reads.
_ELSEWHERE_CLASSES: Final = frozenset({"08", "57"})
_READ_ONLY_STATE: Final = errors.ReadOnlySqlTransaction.sqlstate
# Refusals that end by themselves: the server starts, stops or recovers, or has no free connection.
_TEMPORARY_REFUSALS: Final = (
    "the database system is",
    "sorry, too many clients",
    "too many connections",
    "remaining connection slots",
)
_KEY: Final = "hashtextextended(%s, 0)"
_LOCK_SQL: Final = f"SELECT pg_advisory_lock({_KEY})".encode()
_UNLOCK_SQL: Final = f"SELECT pg_advisory_unlock({_KEY})".encode()
_LOCK_UNTIL_END_SQL: Final = f"SELECT pg_advisory_xact_lock({_KEY})".encode()
_HOLDER_SQL: Final = (
    "SELECT pid, client_addr FROM pg_locks JOIN pg_stat_activity USING (pid)"  # noqa: S608 - our key
    " WHERE locktype = 'advisory' AND granted AND datname = current_database()"
    f" AND ((classid::bigint << 32) | objid::bigint) = {_KEY}"
).encode()


def build_parameters(
    url: str, application_name: str, *, is_read_only: bool = False
) -> dict[str, Any]:
    """Build the parameters of a connection; those in the address override the defaults.

    Args:
        is_read_only: whether the server refuses every write; it may be a standby then.
    """
    parts = psycopg.conninfo.conninfo_to_dict(url)
    parameters = {"target_session_attrs": "read-write", **NETWORK_OPTIONS, **parts}
    if is_read_only:
        options = f"{parts.get('options') or ''} -c default_transaction_read_only=on".strip()
        parameters |= {"target_session_attrs": "any", "options": options}
    return {**parameters, "application_name": application_name}


def build_statement_timeout(patience_s: float) -> bytes:
    """Build the statement that has a session's server cancel slow statements.

    A shorter timeout of the database's address or user stays. It is a statement, and not a
    connection option, because poolers refuse those.
    """
    most_ms = round(patience_s * SERVER_PATIENCE_SHARE * 1000)
    return (
        f"SELECT set_config('statement_timeout', '{most_ms}', false) FROM pg_settings"  # noqa: S608
        f" WHERE name = 'statement_timeout' AND setting::bigint NOT BETWEEN 1 AND {most_ms}"
    ).encode()


class _ImpatientConnection(psycopg.Connection[TupleRow]):
    """A connection that is closed when the server takes too long to answer.

    A network may be cut without notice to either side, and the next answer would never come.
    """

    def wait(
        self, gen: PQGen[RV], interval: float = CHECK_INTERVAL_S, timeout: float | None = None
    ) -> RV:
        options = {} if timeout is None else {"timeout": timeout}  # earlier versions take none
        return super().wait(self._answer_in_time(gen), interval, **options)

    def _answer_in_time(self, gen: PQGen[RV]) -> PQGen[RV]:
        deadline = time.monotonic() + ANSWER_TIMEOUT_S
        try:
            state = next(gen)
            while True:
                ready = yield state
                if not ready and time.monotonic() > deadline:
                    self.pgconn.finish()
                    raise psycopg.OperationalError("the server does not answer")
                state = gen.send(ready)
        except StopIteration as stop:
            return cast("RV", stop.value)


def open_connection(
    url: str, application_name: str, *, is_impatient: bool = False, is_read_only: bool = False
) -> Session:
    """Open a connection whose transactions only the store begins.

    Args:
        is_impatient: whether the server cancels a statement shortly before `ANSWER_TIMEOUT_S`. If
            the server does not answer by then, the connection is closed.

    Raises:
        psycopg.Error: it cannot be opened.
    """
    kind = _ImpatientConnection if is_impatient else psycopg.Connection
    parameters = build_parameters(url, application_name, is_read_only=is_read_only)
    connection = kind.connect(**parameters, autocommit=True)
    prepare_at_once(connection)
    if is_impatient:
        try:
            connection.execute(build_statement_timeout(ANSWER_TIMEOUT_S), prepare=False)
        except BaseException:
            connection.close()
            raise
    return connection


def prepare_at_once(connection: "Session | psycopg.AsyncConnection[Any]") -> None:
    """Have each statement prepared at its first use."""
    connection.prepare_threshold = 0
    connection.prepared_max = PREPARED_STATEMENTS
    # Integers of one size, so that no statement is prepared for each size.
    connection.adapters.register_dumper(int, Int8Dumper)


@contextmanager
def open_pipeline(connection: Session) -> Iterator[None]:
    """Send statements without waiting for the answer to each.

    Statements after the first failed statement fail only because of it; the driver would log them.

    Raises:
        psycopg.Error: the first error.
    """
    first: psycopg.Error | None = None
    try:
        with connection.pipeline():
            try:
                yield
            except psycopg.Error as error:
                first = error
    except psycopg.Error as error:
        first = first or error
    if first is not None:
        raise first


@contextmanager
def translate_postgres_errors(connection: Session | None = None) -> Iterator[None]:
    """Translate the database's errors into the store's, which reveal no address and no value.

    Raises:
        Conflict: a value that must be unique is taken.
        DatabaseLocked: the same may be tried again.
        ServiceError: `UNAVAILABLE` for everything else.
    """
    try:
        yield
    except (psycopg.Error, SQLAlchemyError, OSError) as error:
        cause = error.orig if isinstance(error, DBAPIError) else error
        raise _translate(cause or error, connection) from error


@contextmanager
def translate_opening_errors() -> Iterator[None]:
    """Translate the errors of opening a database; a locked database counts as unavailable.

    Raises:
        ServiceError: `UNAVAILABLE`.
    """
    try:
        with translate_postgres_errors():
            yield
    except DatabaseLocked as error:
        raise make_retryable_error(error.message) from error


def _translate(error: BaseException, connection: Session | None) -> Exception:
    if isinstance(error, _TRY_AGAIN):
        return DatabaseLocked()
    if isinstance(error, errors.UniqueViolation):
        if error.diag.table_name == "events":
            # Another engine appended to the same resource; this engine looks its number up again.
            return DatabaseLocked()
        return Conflict(str(error.diag.constraint_name))
    state = getattr(error, "sqlstate", None) or ""
    if state[:2] in _ELSEWHERE_CLASSES or state == _READ_ONLY_STATE:
        if connection is not None:
            connection.close()
        return DatabaseUnreachable()
    if connection is not None and connection.closed:
        return DatabaseUnreachable()
    store_error = make_postgres_error(error)
    if state[:2] in _UNWRITABLE_CLASSES:
        return DatabaseUnwritable(store_error.message)
    return store_error


def make_postgres_error(error: BaseException) -> ServiceError:
    """Make the error for a database that cannot be used; it names no address and no value."""
    reason = _find_reason(error)
    if reason is None:
        return make_unreachable_error()
    state = getattr(error, "sqlstate", None) or ""
    # A refused connection has no SQLSTATE, only the server's words.
    is_away = (
        not state
        or state[:2] in _UNWRITABLE_CLASSES | _ELSEWHERE_CLASSES
        or state == _READ_ONLY_STATE
    )
    kind = StoreUnavailableError if is_away else ServiceError
    return kind(
        ErrorCode.UNAVAILABLE, f"The store cannot be used: {reason}.", retry_after=RETRY_AFTER_S
    )


def _find_reason(error: BaseException) -> str | None:
    """Return the first line of the server's own message, or None if it sent none."""
    if not isinstance(error, psycopg.Error):
        return None
    message = error.diag.message_primary
    if message is None:  # a refused connection has the server's words among the driver's
        _, separator, message = str(error).rpartition("FATAL:")
        message = message.strip() if separator else None
    return message.splitlines()[0][:120] if message else None


def is_temporary(error: ServiceError) -> bool:
    """Check whether a database that could not be opened may be up soon, as during a start."""
    cause = error.__cause__
    if isinstance(cause, DatabaseUnreachable):
        return True
    if not isinstance(cause, psycopg.OperationalError):
        return False
    reason = _find_reason(cause)
    return reason is None or reason.startswith(_TEMPORARY_REFUSALS)


def format_server(url: str) -> str:
    """Format the host and the port of a database's address, or PGHOST and PGPORT, or the defaults.

    >>> format_server("postgresql://ada@db.example.org/toolkit")
    'db.example.org:5432'
    """
    parts = psycopg.conninfo.conninfo_to_dict(url)
    host = parts.get("host") or parts.get("hostaddr") or os.environ.get("PGHOST") or "localhost"
    return f"{host}:{parts.get('port') or os.environ.get('PGPORT') or 5432}"


def make_unreachable_error() -> StoreUnavailableError:
    """Make the error for a database that does not answer."""
    return make_retryable_error(DatabaseUnreachable.message)


@contextmanager
def hold_lock(connection: Session, name: str, *, timeout_s: float | None = None) -> Iterator[None]:
    """Hold a named lock of the server (advisory lock) until the block ends, across transactions.

    Args:
        connection: connection to the database, in no transaction.
        timeout_s: maximum wait for the lock, in seconds; unlimited by default.

    Raises:
        psycopg.errors.LockNotAvailable: others had it for so long.
    """
    parameters = (_name_key(name),)
    if timeout_s is None:
        connection.execute(_LOCK_SQL, parameters)
    else:
        connection.execute(f"SET lock_timeout = {round(timeout_s * 1000)}".encode())
        try:
            connection.execute(_LOCK_SQL, parameters)
        finally:
            if not connection.closed:
                connection.execute("RESET lock_timeout")
    try:
        yield
    finally:
        if not connection.closed:
            connection.execute(_UNLOCK_SQL, parameters)


def take_lock(connection: Session, name: str) -> None:
    """Take a named lock of the server until the connection's current transaction ends."""
    connection.execute(_LOCK_UNTIL_END_SQL, (_name_key(name),))


def describe_holder(connection: Session, name: str) -> str:
    """Describe the session that has a lock, for an operator who may have to end it."""
    row = connection.execute(_HOLDER_SQL, (_name_key(name),)).fetchone()
    if row is None:
        return "another engine"
    pid, address = row
    return f"the engine at {address or 'the socket'} (session {pid} of the server)"


def _name_key(name: str) -> str:
    return f"toolkit {name}"
