"""`/v1/runs`."""

from fastapi import APIRouter, Depends, Request, Response

from toolkit.contract.errors import ErrorCode
from toolkit.contract.events import Event
from toolkit.contract.ids import Prefix
from toolkit.contract.runs import Run, RunCreate
from toolkit.server.auth import ReadCaller, ServedEngine, WriteCaller
from toolkit.server.http.body import read_model
from toolkit.server.http.envelope import render_page, render_resource
from toolkit.server.http.events import serve_events
from toolkit.server.http.prefer_wait import apply_prefer_wait
from toolkit.server.http.query import (
    parse_page_query,
    reject_query,
)
from toolkit.server.openapi.document import PAGE_PARAMS, POLL_PARAMS, describe_route

router = APIRouter(prefix="/v1/runs", tags=["runs"])


@router.post(
    "",
    dependencies=[Depends(reject_query)],
    **describe_route(
        "runs_create",
        Run,
        status=202,
        body=RunCreate,
        holds=True,
        errors=[
            ErrorCode.NOT_FOUND,
            ErrorCode.CREDENTIALS_MISSING,
            ErrorCode.PROVIDER_NOT_ALLOWED,
            ErrorCode.TARGET_UNSUPPORTED,
            ErrorCode.CAPABILITY_UNAVAILABLE,
            ErrorCode.BUDGET_EXCEEDED,
        ],
    ),
)
async def create(request: Request, engine: ServedEngine, caller: WriteCaller) -> Response:
    """Accept one; `Prefer: wait=N` holds the answer for up to N seconds."""
    accepted = await engine.runs.create(caller, await read_model(request, RunCreate))
    reached = await apply_prefer_wait(request, engine, caller, engine.runs, accepted.id)
    return reached or render_resource(accepted, 202)


@router.get("", **describe_route("runs_list", Run, listed=True, query=PAGE_PARAMS))
async def list_page(request: Request, engine: ServedEngine, caller: ReadCaller) -> Response:
    """List them, newest first."""
    query = parse_page_query(request)
    return await render_page(await engine.runs.list(caller, query.limit, query.before), query)


@router.get(
    "/{id}",
    dependencies=[Depends(reject_query)],
    **describe_route("runs_read", Run, errors=[ErrorCode.NOT_FOUND]),
)
async def read(id: str, engine: ServedEngine, caller: ReadCaller) -> Response:
    """Read one."""
    return render_resource(await engine.runs.get(caller, id))


@router.post(
    "/{id}/cancel",
    dependencies=[Depends(reject_query)],
    **describe_route("runs_cancel", Run, errors=[ErrorCode.NOT_FOUND]),
)
async def cancel(id: str, engine: ServedEngine, caller: WriteCaller) -> Response:
    """End a run; one that has ended is answered as it is."""
    return render_resource(await engine.runs.cancel(caller, id))


@router.get(
    "/{id}/events",
    **describe_route(
        "runs_events", Event, listed=True, query=POLL_PARAMS, errors=[ErrorCode.NOT_FOUND]
    ),
)
async def events(id: str, request: Request, engine: ServedEngine, caller: ReadCaller) -> Response:
    """List events after a number, holding while there is none; or stream them."""
    return await serve_events(request, engine, caller, id, Prefix.RUN)
