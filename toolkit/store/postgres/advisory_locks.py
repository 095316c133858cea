"""The locks of a database that have names, each of which one session has at a time."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from toolkit.store.postgres.connections import Session

_KEY: Final = "hashtextextended(%s, 0)"
_LOCK_SQL: Final = f"SELECT pg_advisory_lock({_KEY})".encode()
_UNLOCK_SQL: Final = f"SELECT pg_advisory_unlock({_KEY})".encode()
_LOCK_UNTIL_END_SQL: Final = f"SELECT pg_advisory_xact_lock({_KEY})".encode()
_HOLDER_SQL: Final = (
    "SELECT pid, client_addr FROM pg_locks JOIN pg_stat_activity USING (pid)"  # noqa: S608 - our key
    " WHERE locktype = 'advisory' AND granted AND datname = current_database()"
    f" AND ((classid::bigint << 32) | objid::bigint) = {_KEY}"
).encode()


@contextmanager
def hold_lock(connection: Session, name: str, *, timeout_s: float | None = None) -> Iterator[None]:
    """Hold a lock, across transactions.

    Args:
        connection: to the database, in no transaction.
        name: of the lock.
        timeout_s: how long to wait for it, in seconds; for ever by default.

    Raises:
        psycopg.errors.LockNotAvailable: others had it for so long.
    """
    given = (_name_key(name),)
    if timeout_s is None:
        connection.execute(_LOCK_SQL, given)
    else:
        connection.execute(f"SET lock_timeout = {round(timeout_s * 1000)}".encode())
        try:
            connection.execute(_LOCK_SQL, given)
        finally:
            if not connection.closed:
                connection.execute("RESET lock_timeout")
    try:
        yield
    finally:
        if not connection.closed:
            connection.execute(_UNLOCK_SQL, given)


def take_lock(connection: Session, name: str) -> None:
    """Take a lock until the end of the transaction that the connection is in."""
    connection.execute(_LOCK_UNTIL_END_SQL, (_name_key(name),))


def describe_holder(connection: Session, name: str) -> str:
    """Describe the session that has a lock, for whoever may have to end it."""
    found = connection.execute(_HOLDER_SQL, (_name_key(name),)).fetchone()
    if found is None:
        return "another engine"
    pid, address = found
    return f"the engine at {address or 'the socket'} (session {pid} of the server)"


def _name_key(name: str) -> str:
    return f"toolkit {name}"
