"""`/v1/runs` in plain FastAPI, as its documentation shows: the baseline for the server.

It does less than the server: JSON is parsed by the standard library (which accepts a member named
twice, NaN and unlimited nesting), sizes within a body have no limits, an error in a large body is
listed on the event loop, unknown query parameters are ignored, and `Idempotency-Key`, `Prefer` and
event streams are missing. Bodies are not strict: FastAPI parses JSON before pydantic sees it.
"""

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Depends, FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from starlette.responses import Response

from toolkit.contract.base import Envelope, Page, PageEnvelope
from toolkit.contract.choices import Scope
from toolkit.contract.errors import Detail, ErrorCode, RequestError, ToolkitError
from toolkit.contract.events import Event
from toolkit.contract.operations.queries import make_cursor
from toolkit.contract.runs import Run, RunCreate
from toolkit.engine import Engine
from toolkit.engine.concurrency.pacing import note_activity
from toolkit.engine.request_context import RequestContext
from toolkit.server.http.endpoint import read_bearer
from toolkit.server.http.responses import render_error
from toolkit.server.middleware.frame import RequestFrame
from toolkit.server.paths import PathTable


def create_native_app(engine: Engine) -> FastAPI:
    """Create the app, with the server's own middleware, authentication and engine."""
    app = FastAPI(openapi_url=None)

    def require(scope: Scope) -> Callable[[Request], Awaitable[RequestContext]]:
        async def authorize(request: Request) -> RequestContext:
            context = await engine.accounts.authenticate(read_bearer(request))
            note_activity(context.account_id)
            request.state.caller = context
            if scope not in context.scopes:
                raise RequestError(ErrorCode.FORBIDDEN, f"The key lacks the scope `{scope}`.")
            return context

        return authorize

    reader = Annotated[RequestContext, Depends(require("read"))]
    writer = Annotated[RequestContext, Depends(require("write"))]

    @app.post("/v1/runs", status_code=202, tags=["runs"], operation_id="runs_create")
    async def create(body: RunCreate, context: writer) -> Envelope[Run]:
        """Accept a run; `Prefer: wait=N` holds the response for up to N seconds."""
        run = await engine.runs.create(context, body)
        return Envelope(id=run.id, status=run.status, data=run)

    @app.get("/v1/runs", tags=["runs"], operation_id="runs_list")
    async def list_page(
        context: reader,
        limit: Annotated[int, Query(ge=1, le=200)] = 50,
        cursor: str | None = None,
    ) -> PageEnvelope[Run]:
        """List runs, newest first."""
        runs = await engine.runs.list(context, limit, cursor)
        next_cursor = make_cursor(runs[-1].id) if len(runs) == limit else None
        return PageEnvelope(data=Page(items=runs, count=len(runs), next_cursor=next_cursor))

    @app.get("/v1/runs/{id}", tags=["runs"], operation_id="runs_read")
    async def read(id: str, context: reader) -> Envelope[Run]:
        """Read a run."""
        run = await engine.runs.get(context, id)
        return Envelope(id=run.id, status=run.status, data=run)

    @app.post("/v1/runs/{id}/cancel", tags=["runs"], operation_id="runs_cancel")
    async def cancel(id: str, context: writer) -> Envelope[Run]:
        """Cancel a run; a run that has ended is returned unchanged."""
        run = await engine.runs.cancel(context, id)
        return Envelope(id=run.id, status=run.status, data=run)

    @app.get("/v1/runs/{id}/events", tags=["runs"], operation_id="runs_events")
    async def events(
        id: str,
        context: reader,
        after: Annotated[int, Query(ge=0)] = 0,
        wait: Annotated[int, Query(ge=0, le=30)] = 0,
    ) -> PageEnvelope[Event]:
        """List events after a number, and wait while there are none."""
        events = await engine.events.list(context, id, after=after, wait_s=wait)
        return PageEnvelope(data=Page(items=events, count=len(events)))

    @app.exception_handler(ToolkitError)
    async def refuse(request: Request, error: ToolkitError) -> Response:
        return render_error(error, request.state.request_id)

    @app.exception_handler(RequestValidationError)
    async def refuse_body(request: Request, error: RequestValidationError) -> Response:
        faults = [
            Detail(".".join(map(str, fault["loc"])), fault["msg"]) for fault in error.errors()
        ]
        refused = RequestError(ErrorCode.INVALID_REQUEST, details=faults)
        return render_error(refused, request.state.request_id)

    frame = {"table": PathTable[object]({}), "observer": None, "is_last_word": False}
    app.add_middleware(RequestFrame, engine=engine, **frame)
    return app
