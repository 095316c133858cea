"""Small changes beside the writer, each in a transaction of its own."""

import asyncio

from sqlalchemy import Delete, Engine, Update

from toolkit.store.crashpoints import find_crash_point
from toolkit.store.sqlite.connections import translate_errors
from toolkit.store.sqlite.write_turns import WriteTurns

CHANGE_TIMEOUT_MS = 2_000


class DirectWriter:
    """A writer of one small change at a time, which waits for nothing that the other has queued.

    Args:
        engine: of the database.
        turns: the other's, which gives way.
    """

    def __init__(self, engine: Engine, turns: WriteTurns) -> None:
        self._engine = engine
        self._turns = turns
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
        with translate_errors(), self._engine.connect() as connection, self._turns.ask():
            connection.exec_driver_sql(f"PRAGMA busy_timeout={CHANGE_TIMEOUT_MS}")
            connection.exec_driver_sql("BEGIN IMMEDIATE")
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
