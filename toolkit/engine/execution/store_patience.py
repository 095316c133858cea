"""Patience with an unavailable store: work in progress asks again instead of ending.

A job that ended here would end its siblings, too, and the results of their paid calls with them.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar, TypeVarTuple, Unpack

from toolkit.engine.context import EngineContext
from toolkit.store import StoreUnavailableError
from toolkit.store.writing.writer import WORK_WAIT_S

T = TypeVar("T")
Args = TypeVarTuple("Args")
RETRY_INTERVAL_S: Final = 0.25


async def ask_store(
    core: EngineContext, ask: Callable[[Unpack[Args]], Awaitable[T]], *args: *Args
) -> T:
    """Return the result of `ask(*args)`, repeating it while the store is unavailable.

    Args:
        core: the engine's parts.
        ask: asks once; it must change nothing, or at least nothing if it fails.

    Raises:
        StoreUnavailableError: no answer within the time that results wait, or the engine ends.
    """
    deadline: float | None = None
    while True:
        try:
            return await ask(*args)
        except StoreUnavailableError:
            if deadline is None:
                deadline = time.monotonic() + WORK_WAIT_S
            if core.is_draining or time.monotonic() > deadline:
                raise
        await asyncio.sleep(RETRY_INTERVAL_S)
