"""Waiters for events, which this process or another process writes."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from toolkit.contract.errors import ServiceError
from toolkit.store.changes import AppendEvent
from toolkit.store.reader import EventKey, LastEvent, RowReader

POLL_INTERVAL_S = 0.2


@dataclass(eq=False, slots=True)
class EventWaiter:
    """A waiter for events of some types, or of any.

    Attributes:
        after: number that the event's number must exceed.
        types: accepted event types; None for any.
        key: key that the events are stored by; None until it is known.
        woken: set when the waiter must look, or need not look any more.
        is_answered: whether such an event was committed; otherwise a woken waiter must look.
    """

    after: int
    types: frozenset[str] | None
    key: EventKey | None = None
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    is_answered: bool = False

    def is_met_by(self, last: Mapping[EventKey, LastEvent]) -> bool:
        """Check whether the last event of the waiter's key satisfies it."""
        event = last.get(self.key) if self.key is not None else None
        if event is None or event[0] <= self.after:
            return False
        return self.types is None or event[1] in self.types

    def answer(self) -> None:
        """Mark the waiter as answered, and wake it."""
        self.is_answered = True
        self.woken.set()


class EventWaiters:
    """The event waiters of this process, by the resource or job that they wait for.

    They are notified of this process's own events (`notify`), and of other processes' events if
    these send notices (`wake`). For the rest, one poll for all of them is the safety net.
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
        self._version: int | None = None
        self._next_look: asyncio.TimerHandle | None = None
        self._looking: asyncio.Task[None] | None = None

    def notify(self, events: Sequence[AppendEvent]) -> None:
        """Wake the waiters for some of these events, which were committed just now."""
        if not self._waiters:
            return
        for event in events:
            for key in (event.resource_id, event.job_id):
                for waiter in self._waiters.get(key or "", ()):
                    if waiter.types is None or event.type in waiter.types:
                        waiter.answer()

    def wake(self, ids: Iterable[str] | None) -> None:
        """Wake the waiters whose resource or job has new events by another process.

        Args:
            ids: ids of resources and jobs; None for all, if the written ids are unknown.
        """
        if ids is None:
            self._version = None
            self._look_now()
            return
        for key in ids:
            for waiter in self._waiters.get(key, ()):
                waiter.woken.set()

    async def wait(
        self, resource_id: str, after: int, timeout_s: float, types: frozenset[str] | None
    ) -> None:
        """Wait until a resource, or a job, may have an event above `after`, or time is up."""
        waiter = EventWaiter(after, types)
        waiters = self._waiters.setdefault(resource_id, set())
        waiters.add(waiter)
        try:
            async with asyncio.timeout(timeout_s):
                last = await self._find_or_wait(resource_id, waiter)
                self._look_later()
                while not waiter.is_answered and not waiter.is_met_by(last):
                    await waiter.woken.wait()
                    waiter.woken.clear()
                    if not waiter.is_answered:
                        last = await self._find_or_wait(resource_id, waiter)
        except TimeoutError:
            return
        finally:
            waiters.discard(waiter)
            if not waiters:
                self._waiters.pop(resource_id, None)

    async def _find_or_wait(
        self, resource_id: str, waiter: EventWaiter
    ) -> Mapping[EventKey, LastEvent]:
        """Find the last event of a waiter's key; return an empty mapping if the database fails."""
        try:
            if waiter.key is None:
                waiter.key = await self._reader.find_event_key(resource_id)
            return await self._reader.find_last_events([waiter.key])
        except ServiceError:
            return {}

    def _look_later(self) -> None:
        if self._next_look is None and self._looking is None and self._waiters:
            loop = asyncio.get_running_loop()
            self._next_look = loop.call_later(self._poll_interval_s, self._look_now)

    def _look_now(self) -> None:
        self._stop_waiting_to_look()
        if self._waiters and self._looking is None:
            self._looking = asyncio.get_running_loop().create_task(self._look())

    def _stop_waiting_to_look(self) -> None:
        if self._next_look is not None:
            self._next_look.cancel()
            self._next_look = None

    async def _look(self) -> None:
        """Look for the events of all waiters, if there may be any."""
        try:
            if self._may_have_changed():
                waiting = [waiter for waiters in self._waiters.values() for waiter in waiters]
                keys = {waiter.key for waiter in waiting if waiter.key is not None}
                last = await self._reader.find_last_events(sorted(keys))
                for waiter in waiting:
                    if waiter.is_met_by(last):
                        waiter.answer()
                    elif waiter.key is None:
                        waiter.woken.set()
        except ServiceError:
            self._version = None  # the error does not concern the waiters: look again later
        finally:
            self._looking = None
            self._look_later()

    def _may_have_changed(self) -> bool:
        """Check whether other connections may have committed since the last look."""
        if self._get_version is None:
            return True
        seen, self._version = self._version, self._get_version()
        return seen != self._version

    def close(self) -> None:
        """Stop polling, and forget all waiters."""
        self._stop_waiting_to_look()
        if self._looking is not None:
            self._looking.cancel()
        self._waiters = {}
