"""Small changes outside the writer, each in its own transaction."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any, Final, TypeVar

from sqlalchemy import Connection, Delete, Update

from toolkit.contract.errors import ErrorCode
from toolkit.store.changes import StoreUnavailableError, make_retryable_error
from toolkit.store.writing.write_connection import DatabaseLocked

TRIES: Final = 3  # of a change that the database rolled back in favour of another

T = TypeVar("T")


class WriteTurns:
    """Turns between the writer, which may begin one transaction after another, and small changes.

    A connection that waits for the lock of SQLite sleeps between its tries, ever longer. The first
    connection to try after a commit gets the lock. Next to a writer that continues at once, a
    lease could not be renewed for seconds.
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
        """Wait for the small changes that are being made, for at most `most_s` seconds.

        Returns:
            Whether no small change is being made.
        """
        if not self._asking:
            return True
        with self._changed:
            return self._changed.wait_for(lambda: not self._asking, most_s)


class DirectWriter:
    """A writer of small changes, which do not queue behind those of `ChangeWriter`.

    Args:
        begin: begins a transaction on a connection of its own; called on any thread.
    """

    def __init__(self, begin: Callable[[], AbstractContextManager[Connection]]) -> None:
        self._begin = begin
        self._running: set[asyncio.Future[Any]] = set()
        self._is_closed = False

    async def execute(self, statement: Update | Delete) -> int:
        """Make one change in a thread, and return the number of rows changed.

        It is made even if the waiting caller is cancelled, and `close` waits for it.
        """
        return await self._run_in_thread(partial(self.execute_now, statement))

    def execute_now(self, statement: Update | Delete) -> int:
        """Make one change at once, on any thread; return the number of rows changed.

        It does not wait long for others: the caller will try again.
        """
        return int(self.transact_now(lambda connection: connection.execute(statement).rowcount))

    async def transact(self, work: Callable[[Connection], T]) -> T:
        """Run a function in one transaction in a thread, and return its result.

        It runs to its end even if the waiting caller is cancelled, and `close` waits for it.

        Args:
            work: function to run; it is called again if the database rolled the transaction back.
        """
        return await self._run_in_thread(partial(self.transact_now, work))

    def transact_now(self, work: Callable[[Connection], T]) -> T:
        """Run a function in one transaction at once, on any thread, and return its result.

        It is run up to `TRIES` times if the database is locked.

        Raises:
            StoreUnavailableError: the database stayed locked.
        """
        fault: DatabaseLocked | None = None
        for _ in range(TRIES):
            try:
                with self._begin() as connection:
                    answer = work(connection)
                    connection.commit()
                return answer
            except DatabaseLocked as error:
                fault = error
        raise make_retryable_error(fault.message if fault is not None else "") from fault

    async def _run_in_thread(self, work: Callable[[], T]) -> T:
        if self._is_closed:  # a connection that is opened now would be closed by nobody
            raise StoreUnavailableError(ErrorCode.UNAVAILABLE, "The store is closed.")
        running = asyncio.ensure_future(asyncio.to_thread(work))
        self._running.add(running)
        running.add_done_callback(self._running.discard)
        return await asyncio.shield(running)

    async def close(self) -> None:
        """Wait until the changes under way are made, and refuse all others."""
        self._is_closed = True
        if self._running:
            await asyncio.wait(self._running)
