"""`/v1/tasks`."""

from fastapi import APIRouter, Depends, Request, Response

from toolkit.contract.errors import ErrorCode
from toolkit.contract.events import Event
from toolkit.contract.ids import Prefix
from toolkit.contract.tasks import ReviewCreate, Task, TaskCreate
from toolkit.server.auth import Reader, TheEngine, Writer
from toolkit.server.body import read_model
from toolkit.server.envelope import one, page
from toolkit.server.events import events_of
from toolkit.server.openapi import PAGED, POLLED, described
from toolkit.server.paging import (
    no_query,
    page_query,
)
from toolkit.server.waiting import held

router = APIRouter(prefix="/v1/tasks", tags=["tasks"])


@router.post(
    "",
    dependencies=[Depends(no_query)],
    **described(
        "tasks_create",
        Task,
        status=202,
        body=TaskCreate,
        holds=True,
        errors=[ErrorCode.NOT_FOUND, ErrorCode.BUDGET_EXCEEDED],
    ),
)
async def create(request: Request, engine: TheEngine, caller: Writer) -> Response:
    """Accept one; `Prefer: wait=N` holds the answer for up to N seconds."""
    accepted = await engine.tasks.create(
        caller.account_id, await read_model(request, TaskCreate), key_id=caller.key_id
    )
    reached = await held(request, engine, caller.account_id, engine.tasks, accepted.id)
    return reached or one(accepted, 202)


@router.get("", **described("tasks_list", Task, listed=True, query=PAGED))
async def list_page(request: Request, engine: TheEngine, caller: Reader) -> Response:
    """List them, newest first."""
    query = page_query(request)
    return await page(await engine.tasks.list(caller.account_id, query.limit, query.before), query)


@router.get(
    "/{id}",
    dependencies=[Depends(no_query)],
    **described("tasks_read", Task, errors=[ErrorCode.NOT_FOUND]),
)
async def read(id: str, engine: TheEngine, caller: Reader) -> Response:  # noqa: A002
    """Read one."""
    return one(await engine.tasks.get(caller.account_id, id))


@router.post(
    "/{id}/cancel",
    dependencies=[Depends(no_query)],
    **described("tasks_cancel", Task, errors=[ErrorCode.NOT_FOUND]),
)
async def cancel(id: str, engine: TheEngine, caller: Writer) -> Response:  # noqa: A002
    """End a task; one that has ended is answered as it is."""
    return one(await engine.tasks.cancel(caller.account_id, id))


@router.post(
    "/{id}/resume",
    dependencies=[Depends(no_query)],
    **described(
        "tasks_resume",
        Task,
        errors=[ErrorCode.NOT_FOUND, ErrorCode.CONFLICT, ErrorCode.BUDGET_EXCEEDED],
    ),
)
async def resume(id: str, engine: TheEngine, caller: Writer) -> Response:  # noqa: A002
    """Take a blocked task back to planning."""
    return one(await engine.tasks.resume(caller.account_id, id, key_id=caller.key_id))


@router.post(
    "/{id}/reviews",
    dependencies=[Depends(no_query)],
    **described(
        "tasks_reviews_create",
        Task,
        body=ReviewCreate,
        errors=[ErrorCode.NOT_FOUND, ErrorCode.CONFLICT, ErrorCode.BUDGET_EXCEEDED],
    ),
)
async def review(id: str, request: Request, engine: TheEngine, caller: Writer) -> Response:  # noqa: A002
    """Have a person pass or fail a task that has ended, or run part of it again."""
    body = await read_model(request, ReviewCreate)
    judged = await engine.reviews.create(caller.account_id, id, body, key_id=caller.key_id)
    return one(judged)


@router.get(
    "/{id}/events",
    **described("tasks_events", Event, listed=True, query=POLLED, errors=[ErrorCode.NOT_FOUND]),
)
async def events(id: str, request: Request, engine: TheEngine, caller: Reader) -> Response:  # noqa: A002
    """List events after a number, holding while there is none; or stream them."""
    return await events_of(request, engine, caller, id, Prefix.TASK)
