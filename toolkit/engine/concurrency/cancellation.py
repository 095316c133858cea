"""Delay of a task's cancellation until a short step, such as recording an outcome, is finished."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


async def finish_before_cancel(step: Awaitable[T]) -> T:
    """Finish a short step of the current task even if the task is cancelled meanwhile.

    Returns the step's result, or raises its error. The cancellation is raised when the task next
    waits for something.
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
