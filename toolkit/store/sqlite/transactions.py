"""Transactions of small changes beside the writer's, in a database of SQLite."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, Engine

from toolkit.store.database import connect_briefly
from toolkit.store.sqlite.connections import translate_write_errors
from toolkit.store.sqlite.write_turns import WriteTurns

CHANGE_TIMEOUT_MS = 2_000


@contextmanager
def begin_sqlite_transaction(engine: Engine, turns: WriteTurns) -> Iterator[Connection]:
    """Begin a transaction on a connection of its own, which ends without it unless it commits.

    It does not wait long for others: the caller will try again.

    Args:
        engine: of the database.
        turns: the writer's, which gives way.
    """
    with translate_write_errors(), connect_briefly(engine) as connection, turns.ask():
        connection.exec_driver_sql(f"PRAGMA busy_timeout={CHANGE_TIMEOUT_MS}")
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        yield connection
