"""`/v1/plans`."""

from fastapi import APIRouter, Depends, Request, Response

from toolkit.contract.errors import ErrorCode
from toolkit.contract.plans import Plan, PlanCreate
from toolkit.server.auth import ReadCaller, ServedEngine, WriteCaller
from toolkit.server.http.body import read_model
from toolkit.server.http.envelope import render_page, render_resource
from toolkit.server.http.query import (
    parse_page_query,
    reject_query,
)
from toolkit.server.openapi.document import PAGE_PARAMS, describe_route

router = APIRouter(prefix="/v1/plans", tags=["plans"])


@router.post(
    "",
    dependencies=[Depends(reject_query)],
    **describe_route(
        "plans_create",
        Plan,
        status=202,
        body=PlanCreate,
        errors=[ErrorCode.NOT_FOUND],
    ),
)
async def create(request: Request, engine: ServedEngine, caller: WriteCaller) -> Response:
    """Plan an objective without doing it."""
    body = await read_model(request, PlanCreate)
    return render_resource(await engine.plans.create(caller, body), 202)


@router.get("", **describe_route("plans_list", Plan, listed=True, query=PAGE_PARAMS))
async def list_page(request: Request, engine: ServedEngine, caller: ReadCaller) -> Response:
    """List them, newest first."""
    query = parse_page_query(request)
    return await render_page(await engine.plans.list(caller, query.limit, query.before), query)


@router.get(
    "/{id}",
    dependencies=[Depends(reject_query)],
    **describe_route("plans_read", Plan, errors=[ErrorCode.NOT_FOUND]),
)
async def read(id: str, engine: ServedEngine, caller: ReadCaller) -> Response:
    """Read one."""
    return render_resource(await engine.plans.get(caller, id))
