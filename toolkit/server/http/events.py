"""Events of a resource, as a list by long polling, or as a stream of server-sent events.

Both have the same events with the same numbers, without gaps or repeats (decisions, "Events").
"""

import re
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from toolkit.contract.errors import Detail, ErrorCode, RequestError
from toolkit.contract.events import Event, TextDelta
from toolkit.contract.operations.queries import EventsQuery
from toolkit.engine import Engine
from toolkit.engine.request_context import RequestContext
from toolkit.server.calls import ApiCall
from toolkit.server.event_streams import follow_events
from toolkit.server.handlers import dispatch
from toolkit.server.http.responses import render_page
from toolkit.server.operations import answer_page
from toolkit.store import StoreUnavailableError

STREAM_MEDIA_TYPE = "text/event-stream"
# Characters that end no line of a stream, but end one for readers that follow Unicode.
_LINE_ENDS = {code: f"\\u{code:04x}" for code in (0x85, 0x2028, 0x2029)}


async def respond_events(request: Request, call: ApiCall[EventsQuery]) -> Response:
    """Answer with the events of one resource, in the requested form.

    Raises:
        RequestError: `NOT_FOUND`, `INVALID_REQUEST`.
    """
    last_seen = _read_last_event_id(request)
    if STREAM_MEDIA_TYPE not in request.headers.get("accept", ""):
        return render_page(await answer_page(call, await dispatch(call)), call.operation.status)
    after = max(call.input.after, last_seen)
    await dispatch(replace(call, input=EventsQuery(after)))  # refused before anything is sent
    is_read = request.method != "HEAD"
    return StreamingResponse(
        _stream_events(call.engine, call.context, call.id, after) if is_read else iter(()),
        media_type=STREAM_MEDIA_TYPE,
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


async def _stream_events(
    engine: Engine, context: RequestContext, resource_id: str, after: int
) -> AsyncIterator[str]:
    """Yield server-sent events, up to and including the terminal event.

    It also ends early if the store is lost: readers resume after the last event.
    """
    with suppress(StoreUnavailableError):
        async for item in follow_events(engine, context, resource_id, after):
            match item:
                case Event():
                    yield _format_event(item)
                case TextDelta():
                    yield _format_delta(item)
                case None:
                    yield ": nothing new\n\n"


def _format_delta(delta: TextDelta) -> str:
    data = delta.model_dump_json(exclude_none=True).translate(_LINE_ENDS)
    return f"event: {delta.event_type}\ndata: {data}\n\n"


def _format_event(event: Event) -> str:
    data = event.model_dump_json().translate(_LINE_ENDS)
    return f"id: {event.n}\nevent: {event.type}\ndata: {data}\n\n"


def _read_last_event_id(request: Request) -> int:
    """Read the number of the event after which a broken stream continues; 0 without the header.

    Raises:
        RequestError: `INVALID_REQUEST` if it is no number.
    """
    header = request.headers.get("last-event-id", "0")
    if not re.fullmatch(r"\d{1,15}", header, re.A):
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            "Send the id of an event of this stream as Last-Event-ID.",
            details=[Detail("Last-Event-ID", "is not the number of an event")],
        )
    return int(header)
