"""Waiters for events, be they written by this process or by another one."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from toolkit.store.changes import AppendEvent
from toolkit.store.reader import RowReader

POLL_INTERVAL_S = 0.2


@dataclass(eq=False, slots=True)
class EventWaiter:
    """A waiter for events of some types, or of any.

    Attributes:
        is_answered: whether such an event was committed; else it has to look when it is woken.
    """

    types: frozenset[str] | None
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    is_answered: bool = False


class EventWaiters:
    """Those who wait for events, by the resource or job that they wait for.

    Args:
        reader: finds events that another process has written.
        get_version: returns a number that changes when another connection has committed; without
            it every waiter looks for its event each time.
        poll_interval_s: how often waiters look, in seconds, if nobody tells them (`wake`).
    """

    def __init__(
        self,
        reader: RowReader,
        get_version: Callable[[], int] | None,
        poll_interval_s: float = POLL_INTERVAL_S,
    ) -> None:
        self._reader = reader
        self._get_version = get_version
        self._poll_interval_s = poll_interval_s
        self._waiters: dict[str, set[EventWaiter]] = {}

    def notify(self, events: Sequence[AppendEvent]) -> None:
        """Wake those who wait for some of these events, which were committed just now."""
        if not self._waiters:
            return
        for event in events:
            for key in (event.resource_id, event.job_id):
                for waiter in self._waiters.get(key or "", ()):
                    if waiter.types is None or event.type in waiter.types:
                        waiter.is_answered = True
                        waiter.woken.set()

    def wake(self, ids: Iterable[str] | None) -> None:
        """Have those look who wait for something of which another process has written events.

        Args:
            ids: of resources and jobs; none for all, where what was written is not known.
        """
        for key in list(self._waiters) if ids is None else ids:
            for waiter in self._waiters.get(key, ()):
                waiter.woken.set()

    async def wait(
        self, resource_id: str, after: int, timeout_s: float, types: frozenset[str] | None
    ) -> None:
        """Wait until a resource, or a job, may have an event above `after`, or time is up."""
        waiter = EventWaiter(types)
        waiters = self._waiters.setdefault(resource_id, set())
        waiters.add(waiter)
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout_s
        version = None
        try:
            while (left := until - loop.time()) > 0 and not waiter.is_answered:
                waiter.woken.clear()
                # Another process may be the one that writes the event.
                seen, version = version, self._get_version() if self._get_version else None
                is_looked_for = version is None or seen != version
                if is_looked_for and await self._reader.has_event(resource_id, after, types):
                    return
                try:
                    await asyncio.wait_for(waiter.woken.wait(), min(left, self._poll_interval_s))
                except TimeoutError:
                    continue
        finally:
            waiters.discard(waiter)
            if not waiters:
                self._waiters.pop(resource_id, None)
