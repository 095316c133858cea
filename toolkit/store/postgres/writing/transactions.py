"""Transactions of small changes beside the writer's, in a database of PostgreSQL."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from sqlalchemy import Connection, Engine, create_engine

from toolkit.store.database import connect_briefly
from toolkit.store.postgres.connections import Session, open_connection, translate_postgres_errors

LOCK_TIMEOUT_MS: Final = 2_000
POOL_SIZE: Final = 4
_LOCK_TIMEOUT_SQL: Final = "SELECT set_config('lock_timeout', %s, false)"


def create_postgres_engine(url: str, application_name: str) -> Engine:
    """Create an engine whose connections are looked at before they are used again.

    Args:
        url: the database's address.
        application_name: what the server's lists of sessions show.
    """

    def connect() -> Session:
        connection = open_connection(url, application_name, is_impatient=True)
        try:
            connection.execute(_LOCK_TIMEOUT_SQL, (str(LOCK_TIMEOUT_MS),), prepare=False)
            connection.autocommit = False
        except BaseException:
            connection.close()
            raise
        return connection

    return create_engine(
        "postgresql+psycopg://",
        creator=connect,
        pool_size=POOL_SIZE,
        pool_pre_ping=True,
        use_native_hstore=False,
    )


@contextmanager
def begin_postgres_transaction(engine: Engine) -> Iterator[Connection]:
    """Begin a transaction on a connection of its own, which ends without it unless it commits.

    Raises:
        DatabaseLocked: it may be tried again.
    """
    with translate_postgres_errors(), connect_briefly(engine) as connection:
        yield connection
