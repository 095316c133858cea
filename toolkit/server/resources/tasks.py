"""`/v1/tasks`."""

from fastapi import APIRouter, Depends, Request, Response

from toolkit.contract.errors import ErrorCode
from toolkit.contract.events import Event
from toolkit.contract.ids import Prefix
from toolkit.contract.tasks import ReviewCreate, Task, TaskCreate
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

router = APIRouter(prefix="/v1/tasks", tags=["tasks"])


@router.post(
    "",
    dependencies=[Depends(reject_query)],
    **describe_route(
        "tasks_create",
        Task,
        status=202,
        body=TaskCreate,
        holds=True,
        errors=[ErrorCode.NOT_FOUND, ErrorCode.BUDGET_EXCEEDED],
    ),
)
async def create(request: Request, engine: ServedEngine, caller: WriteCaller) -> Response:
    """Accept one; `Prefer: wait=N` holds the answer for up to N seconds."""
    accepted = await engine.tasks.create(caller, await read_model(request, TaskCreate))
    reached = await apply_prefer_wait(request, engine, caller, engine.tasks, accepted.id)
    return reached or render_resource(accepted, 202)


@router.get("", **describe_route("tasks_list", Task, listed=True, query=PAGE_PARAMS))
async def list_page(request: Request, engine: ServedEngine, caller: ReadCaller) -> Response:
    """List them, newest first."""
    query = parse_page_query(request)
    return await render_page(await engine.tasks.list(caller, query.limit, query.before), query)


@router.get(
    "/{id}",
    dependencies=[Depends(reject_query)],
    **describe_route("tasks_read", Task, errors=[ErrorCode.NOT_FOUND]),
)
async def read(id: str, engine: ServedEngine, caller: ReadCaller) -> Response:
    """Read one."""
    return render_resource(await engine.tasks.get(caller, id))


@router.post(
    "/{id}/cancel",
    dependencies=[Depends(reject_query)],
    **describe_route("tasks_cancel", Task, errors=[ErrorCode.NOT_FOUND]),
)
async def cancel(id: str, engine: ServedEngine, caller: WriteCaller) -> Response:
    """End a task; one that has ended is answered as it is."""
    return render_resource(await engine.tasks.cancel(caller, id))


@router.post(
    "/{id}/resume",
    dependencies=[Depends(reject_query)],
    **describe_route(
        "tasks_resume",
        Task,
        errors=[ErrorCode.NOT_FOUND, ErrorCode.CONFLICT, ErrorCode.BUDGET_EXCEEDED],
    ),
)
async def resume(id: str, engine: ServedEngine, caller: WriteCaller) -> Response:
    """Take a blocked task back to planning."""
    return render_resource(await engine.tasks.resume(caller, id))


@router.post(
    "/{id}/reviews",
    dependencies=[Depends(reject_query)],
    **describe_route(
        "tasks_reviews_create",
        Task,
        body=ReviewCreate,
        errors=[ErrorCode.NOT_FOUND, ErrorCode.CONFLICT, ErrorCode.BUDGET_EXCEEDED],
    ),
)
async def review(id: str, request: Request, engine: ServedEngine, caller: WriteCaller) -> Response:
    """Have a person pass or fail a task that has ended, or run part of it again."""
    body = await read_model(request, ReviewCreate)
    judged = await engine.reviews.create(caller, id, body)
    return render_resource(judged)


@router.get(
    "/{id}/events",
    **describe_route(
        "tasks_events", Event, listed=True, query=POLL_PARAMS, errors=[ErrorCode.NOT_FOUND]
    ),
)
async def events(id: str, request: Request, engine: ServedEngine, caller: ReadCaller) -> Response:
    """List events after a number, holding while there is none; or stream them."""
    return await serve_events(request, engine, caller, id, Prefix.TASK)
