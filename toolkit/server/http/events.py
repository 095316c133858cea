"""Events of a resource, as a list by long polling, or as a stream of server-sent events.

Both have the same events with the same numbers, without gaps or repeats (decisions, "Events").
"""

import asyncio
import re
import time
from collections.abc import AsyncIterator
from dataclasses import replace

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from toolkit.contract.errors import Detail, ErrorCode, RequestError
from toolkit.contract.events import Event, TextDelta
from toolkit.contract.operations.queries import EventsQuery
from toolkit.engine import Engine
from toolkit.engine.request_context import RequestContext
from toolkit.engine.text_streams import TextWatch
from toolkit.server.calls import ApiCall
from toolkit.server.handlers import dispatch
from toolkit.server.http.envelope import render_page

STREAM_MEDIA_TYPE = "text/event-stream"
# Characters that end no line of a stream, but do so for readers that follow Unicode.
_LINE_ENDS = {code: f"\\u{code:04x}" for code in (0x85, 0x2028, 0x2029)}
KEY_CHECK_S = 2.0  # a revoked key gets nothing for longer than this
KEEPALIVE_S = 15.0  # proxies close streams that are silent for long


async def respond_events(request: Request, call: ApiCall[EventsQuery]) -> Response:
    """Answer with the events of one resource, in the form that was asked for.

    Raises:
        RequestError: `NOT_FOUND`, `INVALID_REQUEST`.
    """
    last_seen = _read_last_event_id(request)
    if STREAM_MEDIA_TYPE not in request.headers.get("accept", ""):
        return await render_page(await dispatch(call), call.operation.status)
    after = max(call.input.after, last_seen)
    await dispatch(replace(call, input=EventsQuery(after)))  # refused before anything is sent
    return StreamingResponse(
        _stream_events(call.engine, call.context, call.id, after),
        media_type=STREAM_MEDIA_TYPE,
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


async def _stream_events(
    engine: Engine, context: RequestContext, resource_id: str, after: int
) -> AsyncIterator[str]:
    """Yield server-sent events, up to the terminal one that nothing comes after.

    It ends early if the key that asked for it is revoked, even by another process.
    """
    with engine.texts.watch(resource_id) as watch:
        async for line in _stream_watched(engine, context, resource_id, after, watch):
            yield line


async def _stream_watched(
    engine: Engine, context: RequestContext, resource_id: str, after: int, watch: TextWatch
) -> AsyncIterator[str]:
    silent_since = time.monotonic()
    while await engine.accounts.is_valid(context):
        asking = asyncio.ensure_future(
            engine.events.list(context, resource_id, after=after, wait_s=KEY_CHECK_S)
        )
        try:
            async for delta in _take_texts(watch, asking):
                silent_since = time.monotonic()
                yield _format_delta(delta)
            events = await asking
        finally:
            asking.cancel()
        for event in events:
            yield _format_event(event)
            after = event.n
        if events and events[-1].terminal:
            return
        if await engine.events.is_exhausted(context, resource_id, after):
            return
        if events:
            silent_since = time.monotonic()
        elif time.monotonic() - silent_since >= KEEPALIVE_S:
            silent_since = time.monotonic()
            yield ": nothing new\n\n"


async def _take_texts(
    watch: TextWatch, asking: "asyncio.Future[list[Event]]"
) -> AsyncIterator[TextDelta]:
    """Yield what is written until the next events are there: it comes before them."""
    waiting = asyncio.ensure_future(watch.wait())
    try:
        while not asking.done():
            await asyncio.wait((asking, waiting), return_when=asyncio.FIRST_COMPLETED)
            if waiting.done():
                for delta in watch.take():
                    yield delta
                waiting = asyncio.ensure_future(watch.wait())
    finally:
        waiting.cancel()
    for delta in watch.take():
        yield delta


def _format_delta(delta: TextDelta) -> str:
    data = delta.model_dump_json(exclude_none=True).translate(_LINE_ENDS)
    return f"event: delta\ndata: {data}\n\n"


def _format_event(event: Event) -> str:
    data = event.model_dump_json().translate(_LINE_ENDS)
    return f"id: {event.n}\nevent: {event.type}\ndata: {data}\n\n"


def _read_last_event_id(request: Request) -> int:
    """Read the number of the event after which a broken stream continues.

    Raises:
        RequestError: `INVALID_REQUEST`.
    """
    given = request.headers.get("last-event-id", "0")
    if not re.fullmatch(r"\d{1,15}", given, re.A):
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            "Send Last-Event-ID as a stream gave it.",
            details=[Detail("Last-Event-ID", "is no number of an event")],
        )
    return int(given)
