"""Turns to write, between the connections of one process to a database of SQLite."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, Engine

from toolkit.store.database import connect_briefly
from toolkit.store.sqlite.connections import translate_write_errors

CHANGE_TIMEOUT_MS = 2_000


class WriteTurns:
    """Turns between the writer, which may begin one transaction after another, and small changes.

    Who waits for SQLite's lock sleeps between its tries, ever longer, and whoever tries first after
    a commit gets it: beside a writer that goes on at once, a lease could not be renewed for
    seconds.
    """

    def __init__(self) -> None:
        self._asking = 0
        self._changed = threading.Condition()

    @contextmanager
    def ask(self) -> Iterator[None]:
        """Have the writer give way until a small change is made."""
        with self._changed:
            self._asking += 1
        try:
            yield
        finally:
            with self._changed:
                self._asking -= 1
                self._changed.notify_all()

    def give_way(self, most_s: float) -> bool:
        """Wait for the small changes that are being made, but not for longer than so many seconds.

        They may be waiting for another process.

        Returns:
            whether none is being made.
        """
        if not self._asking:
            return True
        with self._changed:
            return self._changed.wait_for(lambda: not self._asking, most_s)


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
