"""`Prefer: wait=N`: the answer to accepted work is held for up to N seconds."""

from collections.abc import Awaitable, Callable
from typing import Protocol

from fastapi import Request
from pydantic import BaseModel
from starlette.responses import Response

from toolkit.engine import Engine
from toolkit.engine.request_context import RequestContext
from toolkit.server.http.envelope import render_resource
from toolkit.server.http.query import MAX_WAIT_S, parse_preferred_wait


class ReadableResource(Protocol):
    """A service of the engine whose records can be read again."""

    @property
    def get(self) -> Callable[[RequestContext, str], Awaitable[BaseModel]]:
        """The method that reads one record of an account."""


async def apply_prefer_wait(
    request: Request,
    engine: Engine,
    context: RequestContext,
    area: ReadableResource,
    accepted_id: str,
) -> Response | None:
    """Return the state that was reached within the wait asked for; none where none was."""
    seconds = parse_preferred_wait(request, MAX_WAIT_S)
    if seconds is None:
        return None
    await engine.wait(context, accepted_id, seconds)
    reached = await area.get(context, accepted_id)
    return render_resource(reached, 202, {"Preference-Applied": f"wait={seconds}"})
