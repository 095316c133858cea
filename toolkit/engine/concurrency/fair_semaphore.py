"""A semaphore whose waiters are served fairly, by group and within a group by member."""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class FairSemaphore:
    """A semaphore whose places go to the waiting groups in turn, and within a group to its members.

    A group at its own limit waits until it releases a place, and delays no other group.

    >>> slots = FairSemaphore(8, per_group=4)
    >>> slots.can_start("acc_1")
    True

    Attributes:
        limit: the number of places.
        used_count: the number of places that are taken; above the limit after that was lowered.
        waiting_count: the number of waiters.

    Args:
        limit: the number of places.
        per_group: maximum number of places of a group; None for no such limit.
        reserved: the number of further places, which only a group without any place may take.
    """

    def __init__(self, limit: int, *, per_group: int | None = None, reserved: int = 0) -> None:
        self.limit = limit
        self.used_count = self.waiting_count = 0
        self._per_group = per_group
        self._reserved = reserved
        self._used: Counter[str] = Counter()
        # By group and member. No group in it can start: it would have been served.
        self._waiting: OrderedDict[str, OrderedDict[str, deque[asyncio.Future[None]]]]
        self._waiting = OrderedDict()

    @property
    def is_full(self) -> bool:
        """True if all places are taken, apart from the reserved places."""
        return self.used_count >= self.limit

    def can_start(self, group: str) -> bool:
        """Check whether a group could take a place now, without waiting."""
        if self.is_full:
            has_reserve = self.used_count < self.limit + self._reserved
            return has_reserve and not self._used[group]
        return self._per_group is None or self._used[group] < self._per_group

    def set_limit(self, limit: int) -> None:
        """Set the number of places; places already taken stay taken until they are released."""
        self.limit = limit
        self._serve()

    @asynccontextmanager
    async def hold(self, group: str, member: str = "") -> AsyncIterator[None]:
        """Wait for a place, and hold it until the block ends."""
        await self.acquire(group, member)
        try:
            yield
        finally:
            self.release(group)

    async def acquire(self, group: str, member: str = "") -> None:
        """Wait for a place and take it; a member's own waiters are served first in, first out."""
        if self.can_start(group):
            self._take(group)
            return
        place = asyncio.get_running_loop().create_future()
        members = self._waiting.setdefault(group, OrderedDict())
        members.setdefault(member, deque()).append(place)
        self.waiting_count += 1
        try:
            await place
        except asyncio.CancelledError:
            if place.cancelled():
                self.waiting_count -= 1
            else:
                self.release(group)  # the place was granted just before the cancellation
            raise

    def release(self, group: str) -> None:
        """Release a place of a group, and grant it to the waiter whose turn it is."""
        self.used_count -= 1
        self._used[group] -= 1
        if not self._used[group]:
            del self._used[group]
        self._serve()

    def _take(self, group: str) -> None:
        self.used_count += 1
        self._used[group] += 1

    def _serve(self) -> None:
        """Grant free places to waiters."""
        while self.used_count < self.limit + self._reserved:
            group = next(filter(self.can_start, self._waiting), None)
            if group is None:
                break
            place = self._pop_waiter(group)
            if place is not None:
                self.waiting_count -= 1
                self._take(group)
                place.set_result(None)

    def _pop_waiter(self, group: str) -> "asyncio.Future[None] | None":
        """Remove and return a group's next waiter; the group and the member go behind the others.

        Returns None if all waiters of the group were cancelled.
        """
        members = self._waiting.pop(group)
        while members:
            member, queue = members.popitem(last=False)
            place = queue.popleft()
            if queue:
                members[member] = queue
            if not place.done():  # else it was cancelled
                if members:
                    self._waiting[group] = members
                return place
        return None
