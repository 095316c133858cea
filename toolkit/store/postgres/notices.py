"""Notices to other engines: of new events once they are durable, and of released work in the
transaction that releases it.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import psycopg
from sqlalchemy import TextClause, text

from toolkit.store.postgres.connections import build_parameters
from toolkit.store.postgres.reads import (
    READ_TIMEOUT_S,
    AsyncConnection,
    cut_connection,
    open_async_connection,
)

EVENT_CHANNEL: Final = "toolkit_events"
WORK_CHANNEL: Final = "toolkit_work"
NOTIFY_SQL: Final = (
    f"SELECT pg_notify('{EVENT_CHANNEL}', payload) FROM unnest(%s::text[]) AS payload"  # noqa: S608 - our names
)
MAX_PAYLOAD_BYTES: Final = 7_900  # of PostgreSQL's 8,000
_SEPARATOR: Final = " "
log = logging.getLogger(__name__)
RECONNECT_S: Final = 1.0


def build_payloads(sender: str, ids: Iterable[str]) -> Iterator[str]:
    """Build the payloads that name resources and jobs, several in each.

    Args:
        sender: lease owner that sends them, and ignores its own notices.
    """
    names, size = [sender], len(sender)
    for resource_id in sorted(set(ids)):
        if size + len(resource_id) + 1 > MAX_PAYLOAD_BYTES:
            yield _SEPARATOR.join(names)
            names, size = [sender], len(sender)
        names.append(resource_id)
        size += len(resource_id.encode()) + 1
    if len(names) > 1:
        yield _SEPARATOR.join(names)


def build_work_notice(sender: str, root_id: str) -> TextClause:
    """Build the statement that notifies others of a work item: it is free, or to be cancelled.

    It belongs in the transaction of that change, so that the others see the change. A transaction
    that notifies waits for all others to commit, but these are few.
    """
    (payload,) = build_payloads(sender, [root_id])
    statement = text("SELECT pg_notify(:channel, :payload)")
    return statement.bindparams(channel=WORK_CHANNEL, payload=payload)


class CommitListener:
    """A listener that reports the writes of other engines, until it is closed.

    Args:
        on_commit: called with the ids that have new events; with None if notices may have been
            missed, such as after a cut connection.
    """

    def __init__(
        self,
        url: str,
        application_name: str,
        owner: str,
        on_commit: Callable[[Sequence[str] | None], None],
        on_work: Callable[[], None],
    ) -> None:
        self._parameters = build_parameters(url, application_name)
        self._owner = owner
        self._on_commit = on_commit
        self._on_work = on_work
        self._listening: asyncio.Task[None] | None = None
        self._connection: AsyncConnection | None = None
        self._is_heard = True

    def start(self) -> None:
        """Begin to listen, on the running event loop."""
        self._listening = asyncio.get_running_loop().create_task(self._listen_on())

    async def close(self) -> None:
        """Stop listening."""
        if self._connection is not None:
            cut_connection(self._connection)  # as a server that hangs answers no farewell
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.wait([self._listening])

    async def _listen_on(self) -> None:
        """Listen, again and again: connections are cut, and servers restarted."""
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            try:
                await self._listen()
            except (psycopg.Error, OSError) as error:
                if self._is_heard:
                    log.info("notices of commits are unavailable for now: %s", type(error).__name__)
                self._is_heard = False
            await asyncio.sleep(began + RECONNECT_S - loop.time())

    async def _listen(self) -> None:
        connection = await open_async_connection(self._parameters)
        self._connection = connection
        limit = asyncio.get_running_loop().call_later(READ_TIMEOUT_S, cut_connection, connection)
        try:
            for channel in (EVENT_CHANNEL, WORK_CHANNEL):
                await connection.execute(f"LISTEN {channel}".encode())
            limit.cancel()
            self._is_heard = True
            self._on_commit(None)
            self._on_work()
            async for notice in connection.notifies():
                sender, *ids = notice.payload.split(_SEPARATOR)
                if sender == self._owner:
                    continue
                if notice.channel == WORK_CHANNEL:
                    self._on_work()
                else:
                    self._on_commit(ids)
        finally:
            limit.cancel()
            self._connection = None
            await connection.close()
