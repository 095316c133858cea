"""`/v1/jobs`."""

from fastapi import APIRouter, Depends, Request, Response

from toolkit.contract.errors import ErrorCode
from toolkit.contract.events import Event
from toolkit.contract.ids import Prefix
from toolkit.contract.jobs import Job, JobCreate
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

router = APIRouter(prefix="/v1/jobs", tags=["jobs"])


@router.post(
    "",
    dependencies=[Depends(no_query)],
    **described(
        "jobs_create",
        Job,
        status=202,
        body=JobCreate,
        holds=True,
        errors=[
            ErrorCode.NOT_FOUND,
            ErrorCode.CREDENTIALS_MISSING,
            ErrorCode.PROVIDER_NOT_ALLOWED,
            ErrorCode.BUDGET_EXCEEDED,
        ],
    ),
)
async def create(request: Request, engine: TheEngine, caller: Writer) -> Response:
    """Accept one; `Prefer: wait=N` holds the answer for up to N seconds."""
    accepted = await engine.jobs.create(
        caller.account_id, await read_model(request, JobCreate), key_id=caller.key_id
    )
    reached = await held(request, engine, caller.account_id, engine.jobs, accepted.id)
    return reached or one(accepted, 202)


@router.get("", **described("jobs_list", Job, listed=True, query=PAGED))
async def list_page(request: Request, engine: TheEngine, caller: Reader) -> Response:
    """List them, newest first."""
    query = page_query(request)
    return await page(await engine.jobs.list(caller.account_id, query.limit, query.before), query)


@router.get(
    "/{id}",
    dependencies=[Depends(no_query)],
    **described("jobs_read", Job, errors=[ErrorCode.NOT_FOUND]),
)
async def read(id: str, engine: TheEngine, caller: Reader) -> Response:  # noqa: A002
    """Read one."""
    return one(await engine.jobs.get(caller.account_id, id))


@router.post(
    "/{id}/cancel",
    dependencies=[Depends(no_query)],
    **described("jobs_cancel", Job, errors=[ErrorCode.NOT_FOUND, ErrorCode.CONFLICT]),
)
async def cancel(id: str, engine: TheEngine, caller: Writer) -> Response:  # noqa: A002
    """End one asked for alone; one that has ended is answered as it is."""
    return one(await engine.jobs.cancel(caller.account_id, id))


@router.get(
    "/{id}/events",
    **described("jobs_events", Event, listed=True, query=POLLED, errors=[ErrorCode.NOT_FOUND]),
)
async def events(id: str, request: Request, engine: TheEngine, caller: Reader) -> Response:  # noqa: A002
    """List events after a number, holding while there is none; or stream them."""
    return await events_of(request, engine, caller, id, Prefix.JOB)
