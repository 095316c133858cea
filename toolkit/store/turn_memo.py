"""A memory of values that were read in the current turn of the event loop."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Final, TypeVar, cast

T = TypeVar("T")
_GIVEN_UP: Final = object()  # replaces the value if its reader was cancelled


class TurnMemo:
    """Remembers values that were read in a turn of the event loop, for the rest of that turn.

    Many requests are often served in one turn, and read the same values. The first read queues
    the memory's end in the loop. Every callback that runs before the end was queued before the
    read. So no request gets a value from before it asked, and a caller that waited for a commit
    reads its rows. Requests must be queued when they are received (`call_soon`), as servers do
    unless they start tasks at once.

    If a read has to wait for its answer, all callers of the turn in which it began wait for it.
    """

    def __init__(self) -> None:
        self._values: dict[Hashable, object] = {}
        self._is_ending = False

    async def find(self, key: Hashable, read: Callable[[], Awaitable[T]]) -> T:
        """Return the value of a key, which is read at most once in a turn of the event loop."""
        while key in self._values:
            entry = self._values[key]
            # Shielded, as the others wait on when one of them is cancelled.
            value = await asyncio.shield(entry) if isinstance(entry, asyncio.Future) else entry
            if value is not _GIVEN_UP:
                return cast("T", value)
        loop = asyncio.get_running_loop()
        if not self._is_ending:
            self._is_ending = True
            loop.call_soon(self.forget)
        reading: asyncio.Future[object] = loop.create_future()
        self._values[key] = reading
        try:
            answer = await read()
        except BaseException as error:
            if self._values.get(key) is reading:
                del self._values[key]
            if isinstance(error, Exception):
                reading.set_exception(error)
                reading.exception()  # marks it as retrieved, as nobody else may have asked
            else:
                reading.set_result(_GIVEN_UP)
            raise
        reading.set_result(answer)
        if self._values.get(key) is reading:
            self._values[key] = answer
        return answer

    def forget(self) -> None:
        """Forget all values: the turn is over."""
        self._values.clear()
        self._is_ending = False
