"""A memory of what was read in the present turn of the event loop."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import TypeVar, cast

T = TypeVar("T")


class TurnMemo:
    """Remembers values that were read in a turn of the event loop, for the rest of that turn.

    Many requests are often served in one turn, and ask for the same. The first reading puts its
    own end into the loop's queue: all that runs before that was queued before the reading, so
    nobody is answered by what had changed by the time they asked, and who waited for a commit reads
    what it wrote. This needs requests to be queued when they are received (`call_soon`), as servers
    do unless told to start tasks at once.
    """

    def __init__(self) -> None:
        self._values: dict[Hashable, object] = {}
        self._turn = 0
        self._is_ending = False

    async def find(self, key: Hashable, read: Callable[[], Awaitable[T]]) -> T:
        """Return the value of a key, which is read unless it was in this turn."""
        values = self._values
        if key in values:
            return cast("T", values[key])
        if not self._is_ending:
            self._is_ending = True
            asyncio.get_running_loop().call_soon(self.forget)
        turn = self._turn
        value = await read()
        if turn == self._turn:  # a read that had to wait is older than what is asked for now
            values[key] = value
        return value

    def forget(self) -> None:
        """Forget all values: the turn is over."""
        self._values.clear()
        self._turn += 1
        self._is_ending = False
