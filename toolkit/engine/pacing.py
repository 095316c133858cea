"""Long work on the event loop, done in slices: between two of them, everybody else has a turn."""

import asyncio
import time
from types import TracebackType
from typing import Self
from weakref import WeakKeyDictionary

SLICE_S = 0.015
BUSY_S = 0.001  # in a turn of the loop that took as long, others had something to do
# What others do takes several turns, and waits for threads between them.
PAUSE_S = 0.03


class Pacer:
    """Divides one piece of long work into slices.

    The first slice is free. Whoever needs more queues with all other long work of the loop, so
    that one turn of the loop holds one slice, however many callers ask for much at once. While
    others have something to do, two thirds of the loop's time are theirs.

    >>> async def add(numbers: list[int]) -> int:
    ...     total = 0
    ...     async with Pacer() as pacer:
    ...         for number in numbers:
    ...             total += number
    ...             await pacer.pause()
    ...     return total
    """

    def __init__(self) -> None:
        self._began = time.perf_counter()
        self._turn = _turn_of(asyncio.get_running_loop())
        self._has_turn = False

    async def __aenter__(self) -> Self:
        """Begin the first slice."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave the queue."""
        self._leave()

    async def pause(self) -> None:
        """Let others have their turns, where this slice has lasted long enough."""
        if time.perf_counter() - self._began >= SLICE_S:
            await self.end_slice()

    async def end_slice(self) -> None:
        """Let others have their turns before something that cannot be divided."""
        self._leave()
        # Without it a lock that nobody waits for would be taken again in the same turn.
        await asyncio.sleep(0)
        await self._turn.acquire()
        self._has_turn = True
        before = time.perf_counter()
        await asyncio.sleep(0)
        if time.perf_counter() - before >= BUSY_S:
            await asyncio.sleep(PAUSE_S)
        self._began = time.perf_counter()

    def _leave(self) -> None:
        if self._has_turn:
            self._has_turn = False
            self._turn.release()


_TURNS: "WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock]" = WeakKeyDictionary()


def _turn_of(loop: asyncio.AbstractEventLoop) -> asyncio.Lock:
    turn = _TURNS.get(loop)
    if turn is None:
        turn = _TURNS[loop] = asyncio.Lock()
    return turn
