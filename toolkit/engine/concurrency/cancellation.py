"""Cancels that come before the work could record its own end."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def finish_before_cancel(step: Coroutine[Any, Any, T]) -> T:
    """Finish a short step of the current task even where the task is cancelled meanwhile.

    The cancel comes again as soon as the task next waits for something.
    """
    under_way = asyncio.ensure_future(step)
    try:
        return await asyncio.shield(under_way)
    except asyncio.CancelledError:
        finished = await under_way
        current = asyncio.current_task()
        if current is not None:
            current.cancel()
        return finished
