"""A memory of what was read in the present turn of the event loop."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Final, TypeVar, cast

T = TypeVar("T")
_GIVEN_UP: Final = object()  # instead of the value, where whoever read it was cancelled


class TurnMemo:
    """Remembers values that were read in a turn of the event loop, for the rest of that turn.

    Many requests are often served in one turn, and ask for the same. The first reading puts its
    own end into the loop's queue: all that runs before that was queued before the reading, so
    nobody is answered by what had changed by the time they asked, and who waited for a commit reads
    what it wrote. This needs requests to be queued when they are received (`call_soon`), as servers
    do unless told to start tasks at once.

    A reading that has to wait for its answer is waited for by all who asked in the turn in which it
    was begun.
    """

    def __init__(self) -> None:
        self._values: dict[Hashable, object] = {}
        self._is_ending = False

    async def find(self, key: Hashable, read: Callable[[], Awaitable[T]]) -> T:
        """Return the value of a key, which is read unless it was in this turn."""
        while key in self._values:
            known = self._values[key]
            # Shielded, as the others wait on when one of them is cancelled.
            value = await asyncio.shield(known) if isinstance(known, asyncio.Future) else known
            if value is not _GIVEN_UP:
                return cast("T", value)
        loop = asyncio.get_running_loop()
        if not self._is_ending:
            self._is_ending = True
            loop.call_soon(self.forget)
        reading: asyncio.Future[object] = loop.create_future()
        self._values[key] = reading
        try:
            found = await read()
        except BaseException as error:
            if self._values.get(key) is reading:
                del self._values[key]
            if isinstance(error, Exception):
                reading.set_exception(error)
                reading.exception()  # marks it as retrieved, as nobody else may have asked
            else:
                reading.set_result(_GIVEN_UP)
            raise
        reading.set_result(found)
        if self._values.get(key) is reading:
            self._values[key] = found
        return found

    def forget(self) -> None:
        """Forget all values: the turn is over."""
        self._values.clear()
        self._is_ending = False
