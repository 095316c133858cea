"""What one reader puts and others take: by threads for the sync client, by tasks for the async one.

These have two forms as their waiting has; all that is made of them is written once, as async.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Generic, TypeVar

T = TypeVar("T")
MAX_WAITING = 10_000  # items that a taker may leave lying; all are dropped then, and it is told


class _Shelf(Generic[T]):
    """Items in order, up to a bound."""

    def __init__(self) -> None:
        self._items: list[T] = []
        self._has_lost = False

    def add(self, items: Iterable[T]) -> None:
        """Add items; where there are too many, none is kept."""
        self._items.extend(items)
        if len(self._items) > MAX_WAITING:
            self._items.clear()
            self._has_lost = True

    def empty(self) -> tuple[list[T], bool]:
        """Return all items, and whether any were lost since the last time."""
        taken, lost = self._items, self._has_lost
        self._items, self._has_lost = [], False
        return taken, lost


class Mailbox(Generic[T]):
    """Items that one thread puts and another takes."""

    def __init__(self) -> None:
        self._shelf: _Shelf[T] = _Shelf()
        self._changed = threading.Condition()
        self._is_woken = False

    def put(self, *items: T) -> None:
        """Put items, or without any, only wake who takes them."""
        with self._changed:
            self._shelf.add(items)
            self._is_woken = True
            self._changed.notify_all()

    def take(self, timeout_s: float | None = None) -> tuple[list[T], bool]:
        """Take all there are, waiting for so long while there is none; and tell if any were lost.

        Args:
            timeout_s: how long to wait at most; none is as long as it takes.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._is_woken, timeout_s)
            self._is_woken = False
            return self._shelf.empty()


class AsyncMailbox(Generic[T]):
    """Items that one task puts and another takes."""

    def __init__(self) -> None:
        self._shelf: _Shelf[T] = _Shelf()
        self._woken = asyncio.Event()

    def put(self, *items: T) -> None:
        """Put items, or without any, only wake who takes them."""
        self._shelf.add(items)
        self._woken.set()

    async def take(self, timeout_s: float | None = None) -> tuple[list[T], bool]:
        """Take all there are, waiting for so long while there is none; and tell if any were lost.

        Args:
            timeout_s: how long to wait at most; none is as long as it takes.
        """
        try:
            async with asyncio.timeout(timeout_s):
                await self._woken.wait()
        except TimeoutError:
            pass
        self._woken.clear()
        return self._shelf.empty()


class Reader:
    """A thread that reads for others, and does not keep a program from ending.

    Attributes:
        guard: held where the reader and those others decide on who reads.
    """

    def __init__(self) -> None:
        self.guard: AbstractContextManager[object] = threading.RLock()

    def start(self, read: Callable[[], None]) -> None:
        """Start to read."""
        threading.Thread(target=read, name="toolkit-follower", daemon=True).start()

    def cancel(self) -> bool:
        """Tell that it ends only by itself."""
        return False


class AsyncReader:
    """A task that reads for others.

    Attributes:
        guard: of nothing, as tasks take turns by themselves.
    """

    def __init__(self) -> None:
        self.guard: AbstractContextManager[object] = nullcontext()
        self._task: asyncio.Task[None] | None = None

    def start(self, read: Callable[[], Awaitable[None]]) -> None:
        """Start to read."""

        async def run() -> None:
            await read()

        self._task = asyncio.create_task(run(), name="toolkit-follower")

    def cancel(self) -> bool:
        """End the reading now, and tell that it has."""
        if self._task is not None:
            self._task.cancel()
        return True
