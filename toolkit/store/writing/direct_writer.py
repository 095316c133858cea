"""Small changes beside the writer, each in a transaction of its own."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Final

from sqlalchemy import Connection, Delete, Update

from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.store.crashpoints import find_crash_point
from toolkit.store.writing.write_connection import DatabaseLocked

TRIES: Final = 3  # of a change that the database gave up for another one
RETRY_AFTER_S: Final = 1.0


class DirectWriter:
    """A writer of one small change at a time, which waits for nothing that the other has queued.

    Args:
        begin: begins a transaction on a connection of its own; called on any thread.
    """

    def __init__(self, begin: Callable[[], AbstractContextManager[Connection]]) -> None:
        self._begin = begin
        self._running: set[asyncio.Future[int]] = set()
        self._crash = find_crash_point("lease")

    async def execute(self, statement: Update | Delete) -> int:
        """Make one change in a thread, blocking nothing while others write.

        It is made even if the waiting caller is cancelled, and `drain` waits for it.
        """
        changing = asyncio.ensure_future(asyncio.to_thread(self.execute_now, statement))
        self._running.add(changing)
        changing.add_done_callback(self._running.discard)
        return await asyncio.shield(changing)

    def execute_now(self, statement: Update | Delete) -> int:
        """Make one change at once, on any thread; return the number of rows changed.

        It does not wait long for others: the caller will try again.
        """
        fault: DatabaseLocked | None = None
        for _ in range(TRIES):
            try:
                return self._try_execute(statement)
            except DatabaseLocked as error:
                fault = error
        message = fault.message if fault is not None else ""
        raise ServiceError(ErrorCode.UNAVAILABLE, message, retry_after=RETRY_AFTER_S) from fault

    def _try_execute(self, statement: Update | Delete) -> int:
        with self._begin() as connection:
            hit = connection.execute(statement).rowcount
            if self._crash is not None:
                self._crash("before")
            connection.commit()
            if self._crash is not None:
                self._crash("after")
        return int(hit)

    async def drain(self) -> None:
        """Wait until the changes under way are made."""
        if self._running:
            await asyncio.wait(self._running)
