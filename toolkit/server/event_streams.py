"""Events and texts of a resource as they arrive, for streams over HTTP or in process."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator

from toolkit.contract.events import Event, TextDelta
from toolkit.engine import Engine
from toolkit.engine.request_context import RequestContext
from toolkit.engine.text_streams import TextWatch

KEY_CHECK_S = 2.0  # a revoked key gets nothing for longer than this
KEEPALIVE_S = 15.0  # proxies close streams that are silent for long


async def follow_events(
    engine: Engine, context: RequestContext, resource_id: str, after: int
) -> AsyncGenerator[Event | TextDelta | None]:
    """Yield events and texts, up to the terminal event that nothing comes after.

    The stream ends early if its key is revoked, even by another process, and when the engine shuts
    down: readers resume after the last event. It yields None after each `KEEPALIVE_S` of silence.

    Raises:
        RequestError: `NOT_FOUND`.
    """
    with engine.texts.watch(resource_id) as watch:
        silent_since, wait_s = time.monotonic(), 0.0  # stored events come first
        while not engine.is_draining and await engine.accounts.is_valid(context):
            query = asyncio.ensure_future(
                engine.events.list(context, resource_id, after=after, wait_s=wait_s)
            )
            try:
                if wait_s:
                    async for delta in _take_texts(watch, query):
                        silent_since = time.monotonic()
                        yield delta
                events = await query
            finally:
                query.cancel()
            ends = [place for place, event in enumerate(events) if _ends_work(event)]
            first_end = ends[0] if ends else len(events)
            for event in events[:first_end]:
                yield event
            for delta in watch.take():
                yield delta
            for event in events[first_end:]:
                yield event
            if events:
                after, silent_since = events[-1].n, time.monotonic()
                if events[-1].terminal:
                    return
            if await engine.events.is_exhausted(context, resource_id, after):
                return
            if time.monotonic() - silent_since >= KEEPALIVE_S:
                silent_since = time.monotonic()
                yield None
            wait_s = KEY_CHECK_S


def _ends_work(event: Event) -> bool:
    """Check whether an event ends a node or all the work, whose text must come before it."""
    return event.type.endswith((".completed", ".failed", ".cancelled"))


async def _take_texts(
    watch: TextWatch, query: "asyncio.Future[list[Event]]"
) -> AsyncIterator[TextDelta]:
    """Yield text as it is written, until the next events arrive."""
    waiting = asyncio.ensure_future(watch.wait())
    try:
        while not query.done():
            await asyncio.wait((query, waiting), return_when=asyncio.FIRST_COMPLETED)
            if waiting.done():
                for delta in watch.take():
                    yield delta
                waiting = asyncio.ensure_future(watch.wait())
    finally:
        waiting.cancel()
