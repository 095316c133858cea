"""`/v1/workflows`."""

from fastapi import APIRouter, Depends, Request, Response

from toolkit.contract.errors import ErrorCode
from toolkit.contract.events import Event
from toolkit.contract.ids import Prefix
from toolkit.contract.workflows import Workflow, WorkflowCreate, WorkflowFork
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

router = APIRouter(prefix="/v1/workflows", tags=["workflows"])


@router.post(
    "",
    dependencies=[Depends(reject_query)],
    **describe_route(
        "workflows_create",
        Workflow,
        status=202,
        body=WorkflowCreate,
        holds=True,
        errors=[
            ErrorCode.NOT_FOUND,
            ErrorCode.INVALID_WORKFLOW,
            ErrorCode.CREDENTIALS_MISSING,
            ErrorCode.PROVIDER_NOT_ALLOWED,
            ErrorCode.CAPABILITY_UNAVAILABLE,
            ErrorCode.BUDGET_EXCEEDED,
        ],
    ),
)
async def create(request: Request, engine: ServedEngine, caller: WriteCaller) -> Response:
    """Accept one; `Prefer: wait=N` holds the answer for up to N seconds."""
    accepted = await engine.workflows.create(caller, await read_model(request, WorkflowCreate))
    reached = await apply_prefer_wait(request, engine, caller, engine.workflows, accepted.id)
    return reached or render_resource(accepted, 202)


@router.get("", **describe_route("workflows_list", Workflow, listed=True, query=PAGE_PARAMS))
async def list_page(request: Request, engine: ServedEngine, caller: ReadCaller) -> Response:
    """List them, newest first."""
    query = parse_page_query(request)
    return await render_page(await engine.workflows.list(caller, query.limit, query.before), query)


@router.get(
    "/{id}",
    dependencies=[Depends(reject_query)],
    **describe_route("workflows_read", Workflow, errors=[ErrorCode.NOT_FOUND]),
)
async def read(id: str, engine: ServedEngine, caller: ReadCaller) -> Response:
    """Read one."""
    return render_resource(await engine.workflows.get(caller, id))


@router.post(
    "/{id}/cancel",
    dependencies=[Depends(reject_query)],
    **describe_route("workflows_cancel", Workflow, errors=[ErrorCode.NOT_FOUND]),
)
async def cancel(id: str, engine: ServedEngine, caller: WriteCaller) -> Response:
    """End a workflow; one that has ended is answered as it is."""
    return render_resource(await engine.workflows.cancel(caller, id))


@router.post(
    "/{id}/retry",
    dependencies=[Depends(reject_query)],
    **describe_route(
        "workflows_retry",
        Workflow,
        status=202,
        errors=[ErrorCode.NOT_FOUND, ErrorCode.CONFLICT, ErrorCode.BUDGET_EXCEEDED],
    ),
)
async def retry(id: str, engine: ServedEngine, caller: WriteCaller) -> Response:
    """Run one that did not complete again, from its failed nodes on; id and results stay."""
    again = await engine.reruns.retry(caller, id)
    return render_resource(again, 202)


@router.post(
    "/{id}/fork",
    dependencies=[Depends(reject_query)],
    **describe_route(
        "workflows_fork",
        Workflow,
        status=202,
        body=WorkflowFork,
        errors=[
            ErrorCode.NOT_FOUND,
            ErrorCode.CREDENTIALS_MISSING,
            ErrorCode.PROVIDER_NOT_ALLOWED,
            ErrorCode.BUDGET_EXCEEDED,
        ],
    ),
)
async def fork(id: str, request: Request, engine: ServedEngine, caller: WriteCaller) -> Response:
    """Run a node and what depends on it again, in a new one that keeps the other results."""
    body = await read_model(request, WorkflowFork)
    return render_resource(await engine.reruns.fork(caller, id, body), 202)


@router.get(
    "/{id}/events",
    **describe_route(
        "workflows_events", Event, listed=True, query=POLL_PARAMS, errors=[ErrorCode.NOT_FOUND]
    ),
)
async def events(id: str, request: Request, engine: ServedEngine, caller: ReadCaller) -> Response:
    """List events after a number, holding while there is none; or stream them."""
    return await serve_events(request, engine, caller, id, Prefix.WORKFLOW)
