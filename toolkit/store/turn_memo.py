"""A memory of what was read in the present turn of the event loop."""

import asyncio
from collections.abc import Callable, Hashable
from typing import TypeVar, cast

T = TypeVar("T")


class TurnMemo:
    """Remembers values that were read in a turn of the event loop, for the rest of that turn.

    Many requests are often served in one turn, and ask for the same. What is served in a turn was
    received before that turn's reading, so nobody is answered by what was changed before they
    asked. And who waits for a commit of this process goes on in a later turn, after the memory is
    gone, so they read what they wrote.
    """

    def __init__(self) -> None:
        self._values: dict[Hashable, object] = {}

    def find(self, key: Hashable, read: Callable[[], T]) -> T:
        """Return the value of a key, which is read unless it was in this turn."""
        values = self._values
        if key in values:
            return cast("T", values[key])
        value = read()
        if not values:
            asyncio.get_running_loop().call_soon(self.forget)
        values[key] = value
        return value

    def forget(self) -> None:
        """Forget all values."""
        self._values.clear()
