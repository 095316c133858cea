"""Mailboxes and readers of followers: threads in the sync client, tasks in the async client.

They have two forms because waiting differs; all code that uses them is written once, as async.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Generic, TypeVar

T = TypeVar("T")
MAX_WAITING = 10_000  # unread items; above this number all are dropped, and the taker is notified


class _Shelf(Generic[T]):
    """A list of unread items in order; all are dropped if there are more than 10,000."""

    def __init__(self) -> None:
        self._items: list[T] = []
        self._has_lost = False

    def add(self, items: Iterable[T]) -> None:
        """Add items; if there are too many, drop all."""
        self._items.extend(items)
        if len(self._items) > MAX_WAITING:
            self._items.clear()
            self._has_lost = True

    def empty(self) -> tuple[list[T], bool]:
        """Remove and return all items, with whether any were dropped since the last call."""
        items, lost = self._items, self._has_lost
        self._items, self._has_lost = [], False
        return items, lost


class Mailbox(Generic[T]):
    """A queue of items from one thread to another."""

    def __init__(self) -> None:
        self._shelf: _Shelf[T] = _Shelf()
        self._changed = threading.Condition()
        self._is_woken = False

    def put(self, *items: T) -> None:
        """Put items; a call without items only wakes the taker."""
        with self._changed:
            self._shelf.add(items)
            self._is_woken = True
            self._changed.notify_all()

    def take(self, timeout_s: float | None = None) -> tuple[list[T], bool]:
        """Take all items, waiting for the first; return them, and whether any were lost.

        There may be no item: after the timeout, or if a `put` without items wakes the taker.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._is_woken, timeout_s)
            self._is_woken = False
            return self._shelf.empty()


class AsyncMailbox(Generic[T]):
    """A queue of items from one task to another."""

    def __init__(self) -> None:
        self._shelf: _Shelf[T] = _Shelf()
        self._woken = asyncio.Event()

    def put(self, *items: T) -> None:
        """Put items; a call without items only wakes the taker."""
        self._shelf.add(items)
        self._woken.set()

    async def take(self, timeout_s: float | None = None) -> tuple[list[T], bool]:
        """Take all items, waiting for the first; return them, and whether any were lost.

        There may be no item: after the timeout, or if a `put` without items wakes the taker.
        """
        try:
            async with asyncio.timeout(timeout_s):
                await self._woken.wait()
        except TimeoutError:
            pass
        self._woken.clear()
        return self._shelf.empty()


class Reader:
    """A thread that reads for followers, and does not keep a program from ending.

    Attributes:
        guard: lock that is held while the state of the reader or of followers changes.
    """

    def __init__(self) -> None:
        self.guard: AbstractContextManager[object] = threading.RLock()

    def start(self, read: Callable[[], None]) -> None:
        """Run `read` in a new thread."""
        threading.Thread(target=read, name="toolkit-follower", daemon=True).start()

    def cancel(self) -> bool:
        """Return False, because a thread ends only by itself."""
        return False


class AsyncReader:
    """A task that reads for followers.

    Attributes:
        guard: null context, because tasks take turns by themselves.
    """

    def __init__(self) -> None:
        self.guard: AbstractContextManager[object] = nullcontext()
        self._task: asyncio.Task[None] | None = None

    def start(self, read: Callable[[], Awaitable[None]]) -> None:
        """Run `read` in a new task."""

        async def run() -> None:
            await read()

        self._task = asyncio.create_task(run(), name="toolkit-follower")

    def cancel(self) -> bool:
        """End the reading now, and return True."""
        if self._task is not None:
            self._task.cancel()
        return True
