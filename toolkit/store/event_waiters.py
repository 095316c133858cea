"""Waiters for events, be they written by this process or by another one."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from toolkit.store.changes import AppendEvent
from toolkit.store.reader import RowReader

POLL_INTERVAL_S = 0.2


@dataclass(frozen=True, eq=False, slots=True)
class EventWaiter:
    """A waiter for events of some types, or of any."""

    types: frozenset[str] | None
    woken: asyncio.Event = field(default_factory=asyncio.Event)


class EventWaiters:
    """Those who wait for events, by the resource or job that they wait for."""

    def __init__(self, reader: RowReader) -> None:
        self._reader = reader
        self._waiters: dict[str, set[EventWaiter]] = {}

    def notify(self, events: Sequence[AppendEvent]) -> None:
        """Wake those who wait for some of these events, which were committed just now."""
        if not self._waiters:
            return
        for event in events:
            for key in (event.resource_id, event.job_id):
                for waiter in self._waiters.get(key or "", ()):
                    if waiter.types is None or event.type in waiter.types:
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
            while (left := until - loop.time()) > 0 and not waiter.woken.is_set():
                # Another process may be the one that writes the event.
                seen, version = version, self._reader.get_data_version()
                if seen != version and self._reader.has_event(resource_id, after, types):
                    return
                try:
                    await asyncio.wait_for(waiter.woken.wait(), min(left, POLL_INTERVAL_S))
                except TimeoutError:
                    continue
        finally:
            waiters.discard(waiter)
            if not waiters:
                self._waiters.pop(resource_id, None)
