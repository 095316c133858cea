"""Calls in progress, each made once for all callers that request the same meanwhile."""

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
    """The calls in progress by key; a call is dropped once nobody waits for it."""

    def __init__(self) -> None:
        self._calls: dict[K, SharedCall[T]] = {}

    async def share(self, key: K, call: Coroutine[Any, Any, T]) -> T:
        """Wait for the call of a key that is in progress, or else make it.

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
