"""`/v1/plans`."""

from fastapi import APIRouter, Depends, Request, Response

from toolkit.contract.errors import ErrorCode
from toolkit.contract.plans import Plan, PlanCreate
from toolkit.server.auth import Reader, TheEngine, Writer
from toolkit.server.body import read_model
from toolkit.server.envelope import one, page
from toolkit.server.openapi import PAGED, described
from toolkit.server.paging import (
    no_query,
    page_query,
)

router = APIRouter(prefix="/v1/plans", tags=["plans"])


@router.post(
    "",
    dependencies=[Depends(no_query)],
    **described(
        "plans_create",
        Plan,
        status=202,
        body=PlanCreate,
        errors=[ErrorCode.NOT_FOUND],
    ),
)
async def create(request: Request, engine: TheEngine, caller: Writer) -> Response:
    """Plan an objective without doing it."""
    body = await read_model(request, PlanCreate)
    return one(await engine.plans.create(caller.account_id, body), 202)


@router.get("", **described("plans_list", Plan, listed=True, query=PAGED))
async def list_page(request: Request, engine: TheEngine, caller: Reader) -> Response:
    """List them, newest first."""
    query = page_query(request)
    return await page(await engine.plans.list(caller.account_id, query.limit, query.before), query)


@router.get(
    "/{id}",
    dependencies=[Depends(no_query)],
    **described("plans_read", Plan, errors=[ErrorCode.NOT_FOUND]),
)
async def read(id: str, engine: TheEngine, caller: Reader) -> Response:  # noqa: A002
    """Read one."""
    return one(await engine.plans.get(caller.account_id, id))
