"""A lock by key: those who would do the same wait for each other."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class KeyedLock:
    """A lock for each key, for as long as somebody holds or wants it.

    >>> async def twice() -> list[str]:
    ...     turns, seen = KeyedLock(), []
    ...     async def one(name: str) -> None:
    ...         async with turns.hold("key"):
    ...             seen.append(name)
    ...             await asyncio.sleep(0)
    ...             seen.append(name)
    ...     await asyncio.gather(one("a"), one("b"))
    ...     return seen
    >>> asyncio.run(twice())
    ['a', 'a', 'b', 'b']
    """

    def __init__(self) -> None:
        self._locks: dict[str, asyncio.Lock] = {}
        self._waiting: Counter[str] = Counter()

    @asynccontextmanager
    async def hold(self, key: str) -> AsyncIterator[None]:
        """Hold the lock of a key."""
        lock = self._locks.setdefault(key, asyncio.Lock())
        self._waiting[key] += 1
        try:
            async with lock:
                yield
        finally:
            self._waiting[key] -= 1
            if not self._waiting[key]:
                del self._waiting[key], self._locks[key]
