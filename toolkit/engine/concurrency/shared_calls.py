"""Sharing of calls: callers that ask for the same at the same time wait for one call."""

import asyncio
from collections.abc import Coroutine, Hashable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


@dataclass(slots=True)
class SharedCall(Generic[T]):
    """A call in progress, and the number of its waiters."""

    task: asyncio.Task[T]
    waiting: int = 0


class SharedCalls(Generic[K, T]):
    """The calls in progress by key; a call is cancelled once nobody waits for it."""

    def __init__(self) -> None:
        self._calls: dict[K, SharedCall[T]] = {}

    async def share(self, key: K, call: Coroutine[Any, Any, T]) -> T:
        """Return the result of the key's call that is in progress, or of `call` if there is none.

        The call goes on for as long as any caller waits for it, even if its first caller has gone.

        Args:
            key: identifies everything that the call depends on.
            call: the call that is made if there is none yet.
        """
        shared = self._calls.get(key)
        if shared is None:
            shared = self._calls[key] = SharedCall(asyncio.create_task(call))
        else:
            call.close()
        shared.waiting += 1
        try:
            return await asyncio.shield(shared.task)
        finally:
            shared.waiting -= 1
            if not shared.waiting:
                del self._calls[key]
                shared.task.cancel()
