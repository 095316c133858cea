"""`/v1/jobs`."""

from fastapi import APIRouter, Depends, Request, Response

from toolkit.contract.errors import ErrorCode
from toolkit.contract.events import Event
from toolkit.contract.ids import Prefix
from toolkit.contract.jobs import Job
from toolkit.server.auth import Reader, TheEngine
from toolkit.server.envelope import one, page
from toolkit.server.openapi import PAGED, POLLED, described
from toolkit.server.paging import (
    LONGEST_POLL_S,
    events_query,
    no_query,
    of_kind,
    page_query,
)

router = APIRouter(prefix="/jobs", tags=["jobs"])


@router.get("", **described("jobs_list", Job, listed=True, query=PAGED))
async def list_page(request: Request, engine: TheEngine, caller: Reader) -> Response:
    """List them, newest first."""
    query = page_query(request)
    return page(await engine.jobs.list(caller.account_id, query.limit, query.before), query)


@router.get(
    "/{id}",
    dependencies=[Depends(no_query)],
    **described("jobs_read", Job, errors=[ErrorCode.NOT_FOUND]),
)
async def read(id: str, engine: TheEngine, caller: Reader) -> Response:  # noqa: A002
    """Read one."""
    return one(await engine.jobs.get(caller.account_id, id))


@router.get(
    "/{id}/events",
    **described("jobs_events", Event, listed=True, query=POLLED, errors=[ErrorCode.NOT_FOUND]),
)
async def events(id: str, request: Request, engine: TheEngine, caller: Reader) -> Response:  # noqa: A002
    """List events after a number, holding while there is none."""
    after, wait_s = events_query(request, LONGEST_POLL_S)
    of_kind(id, Prefix.JOB)
    found = await engine.events.list(caller.account_id, id, after=after, wait_s=wait_s)
    return page(found)
