"""The caller of a request that is under way: still there, or gone."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.requests import Request


@asynccontextmanager
async def watch_caller(request: Request, hang_up: asyncio.Event | None) -> AsyncIterator[None]:
    """Set an event if the caller leaves while the block runs.

    Args:
        request: the request, whose body was read.
        hang_up: the event to set; None if nobody waits for it.
    """
    if hang_up is None:
        yield
        return

    async def watch() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        hang_up.set()

    watching = asyncio.create_task(watch(), name="watch caller")
    try:
        yield
    finally:
        watching.cancel()
