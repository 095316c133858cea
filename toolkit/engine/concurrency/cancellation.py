"""Cancels that come before the work could record its own end."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


async def finish_before_cancel(step: Awaitable[T]) -> T:
    """Finish a short step of the current task even if the task is cancelled meanwhile.

    The cancel is raised when the task next waits for something, even if the step fails.
    """
    under_way = asyncio.ensure_future(step)
    current, cancels = asyncio.current_task(), 0
    while not under_way.done():
        try:
            await asyncio.shield(under_way)
        except asyncio.CancelledError:
            cancels += not under_way.cancelled()
        except Exception:
            break  # the cancel is raised again below
    if current is not None:
        for _ in range(cancels):
            current.uncancel()  # the same cancel must not count twice: a time limit counts its own
            current.cancel()
    return under_way.result()
