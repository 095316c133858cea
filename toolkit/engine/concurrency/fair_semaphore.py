"""A semaphore whose waiters are served fairly by group."""

import asyncio
from collections import OrderedDict, deque


class FairSemaphore:
    """A semaphore whose waiters are served round-robin by group, so that none starves another.

    >>> limiter = FairSemaphore(8)
    >>> limiter.is_full
    False
    """

    def __init__(self, limit: int) -> None:
        self._limit = self._free = limit
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @property
    def is_full(self) -> bool:
        """True when whoever comes next has to wait."""
        return self._free <= 0

    @property
    def limit(self) -> int:
        """The number of places."""
        return self._limit

    @property
    def used_count(self) -> int:
        """The number of places that are taken; above the limit where that was lowered."""
        return self._limit - self._free

    @property
    def waiting_count(self) -> int:
        """The number of those who wait for a place."""
        return sum(map(len, self._waiting.values()))

    def set_limit(self, limit: int) -> None:
        """Set the number of places; those that are taken stay so until they are released."""
        self._free += limit - self._limit
        self._limit = limit
        self._serve()

    def try_acquire(self) -> bool:
        """Take a place if one is free, without waiting; return whether one was."""
        if self._free > 0:
            self._free -= 1
            return True
        return False

    async def acquire(self, group: str) -> None:
        """Wait for a place; waiting groups are served round-robin, each in its own order."""
        if self.try_acquire():
            return
        place = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(group, deque()).append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self.release()  # it got the place just before it was cancelled
            raise

    def release(self) -> None:
        """Release a place, to whoever waits next."""
        self._free += 1
        self._serve()

    def _serve(self) -> None:
        """Let in those who wait, as long as places are free."""
        while self._free > 0 and self._waiting:
            group, queue = self._waiting.popitem(last=False)
            place = queue.popleft()
            if queue:
                self._waiting[group] = queue  # behind the other groups
            if not place.done():
                self._free -= 1
                place.set_result(None)
