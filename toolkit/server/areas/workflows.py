"""`/v1/workflows`."""

from fastapi import APIRouter, Depends, Request, Response

from toolkit.contract.errors import ErrorCode
from toolkit.contract.events import Event
from toolkit.contract.ids import Prefix
from toolkit.contract.workflows import Workflow, WorkflowCreate, WorkflowFork
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

router = APIRouter(prefix="/v1/workflows", tags=["workflows"])


@router.post(
    "",
    dependencies=[Depends(no_query)],
    **described(
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
async def create(request: Request, engine: TheEngine, caller: Writer) -> Response:
    """Accept one; `Prefer: wait=N` holds the answer for up to N seconds."""
    accepted = await engine.workflows.create(
        caller.account_id, await read_model(request, WorkflowCreate), key_id=caller.key_id
    )
    reached = await held(request, engine, caller.account_id, engine.workflows, accepted.id)
    return reached or one(accepted, 202)


@router.get("", **described("workflows_list", Workflow, listed=True, query=PAGED))
async def list_page(request: Request, engine: TheEngine, caller: Reader) -> Response:
    """List them, newest first."""
    query = page_query(request)
    return await page(
        await engine.workflows.list(caller.account_id, query.limit, query.before), query
    )


@router.get(
    "/{id}",
    dependencies=[Depends(no_query)],
    **described("workflows_read", Workflow, errors=[ErrorCode.NOT_FOUND]),
)
async def read(id: str, engine: TheEngine, caller: Reader) -> Response:  # noqa: A002
    """Read one."""
    return one(await engine.workflows.get(caller.account_id, id))


@router.post(
    "/{id}/cancel",
    dependencies=[Depends(no_query)],
    **described("workflows_cancel", Workflow, errors=[ErrorCode.NOT_FOUND]),
)
async def cancel(id: str, engine: TheEngine, caller: Writer) -> Response:  # noqa: A002
    """End a workflow; one that has ended is answered as it is."""
    return one(await engine.workflows.cancel(caller.account_id, id))


@router.post(
    "/{id}/retry",
    dependencies=[Depends(no_query)],
    **described(
        "workflows_retry",
        Workflow,
        status=202,
        errors=[ErrorCode.NOT_FOUND, ErrorCode.CONFLICT, ErrorCode.BUDGET_EXCEEDED],
    ),
)
async def retry(id: str, engine: TheEngine, caller: Writer) -> Response:  # noqa: A002
    """Run one that did not complete again, from its failed nodes on; id and results stay."""
    again = await engine.reruns.retry(caller.account_id, id, key_id=caller.key_id)
    return one(again, 202)


@router.post(
    "/{id}/fork",
    dependencies=[Depends(no_query)],
    **described(
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
async def fork(id: str, request: Request, engine: TheEngine, caller: Writer) -> Response:  # noqa: A002
    """Run a node and what depends on it again, in a new one that keeps the other results."""
    body = await read_model(request, WorkflowFork)
    return one(await engine.reruns.fork(caller.account_id, id, body, key_id=caller.key_id), 202)


@router.get(
    "/{id}/events",
    **described("workflows_events", Event, listed=True, query=POLLED, errors=[ErrorCode.NOT_FOUND]),
)
async def events(id: str, request: Request, engine: TheEngine, caller: Reader) -> Response:  # noqa: A002
    """List events after a number, holding while there is none; or stream them."""
    return await events_of(request, engine, caller, id, Prefix.WORKFLOW)
