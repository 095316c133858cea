"""`/v1/agents`."""

from fastapi import APIRouter, Depends, Request, Response

from toolkit.contract.agents import Agent, AgentCreate
from toolkit.contract.errors import ErrorCode
from toolkit.server.auth import ReadCaller, ServedEngine, WriteCaller
from toolkit.server.http.body import read_model
from toolkit.server.http.envelope import render_page, render_resource
from toolkit.server.http.query import parse_page_query, reject_query
from toolkit.server.openapi.document import PAGE_PARAMS, describe_route

router = APIRouter(prefix="/v1/agents", tags=["agents"])


@router.post(
    "",
    dependencies=[Depends(reject_query)],
    **describe_route(
        "agents_create",
        Agent,
        status=201,
        body=AgentCreate,
        errors=[ErrorCode.NOT_FOUND, ErrorCode.CONFLICT, ErrorCode.CAPABILITY_UNAVAILABLE],
    ),
)
async def create(request: Request, engine: ServedEngine, caller: WriteCaller) -> Response:
    """Register a version of an agent; `POST /v1/runs` with `target: agent` runs it."""
    body = await read_model(request, AgentCreate)
    return render_resource(await engine.agents.create(caller, body), 201)


@router.get("", **describe_route("agents_list", Agent, listed=True, query=PAGE_PARAMS))
async def list_page(request: Request, engine: ServedEngine, caller: ReadCaller) -> Response:
    """List them, newest first."""
    query = parse_page_query(request)
    return await render_page(await engine.agents.list(caller, query.limit, query.before), query)


@router.get(
    "/{id}",
    dependencies=[Depends(reject_query)],
    **describe_route("agents_read", Agent, errors=[ErrorCode.NOT_FOUND]),
)
async def read(id: str, engine: ServedEngine, caller: ReadCaller) -> Response:
    """Read one."""
    return render_resource(await engine.agents.get(caller, id))


@router.delete(
    "/{id}",
    dependencies=[Depends(reject_query)],
    **describe_route("agents_delete", Agent, errors=[ErrorCode.NOT_FOUND]),
)
async def delete(id: str, engine: ServedEngine, caller: WriteCaller) -> Response:
    """Take one back; its runs stay."""
    return render_resource(await engine.agents.delete(caller, id))
