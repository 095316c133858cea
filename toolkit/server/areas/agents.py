"""`/v1/agents`."""

from fastapi import APIRouter, Depends, Request, Response

from toolkit.contract.agents import Agent, AgentCreate
from toolkit.contract.errors import ErrorCode
from toolkit.server.auth import Reader, TheEngine, Writer
from toolkit.server.body import read_model
from toolkit.server.envelope import one, page
from toolkit.server.openapi import PAGED, described
from toolkit.server.paging import no_query, page_query

router = APIRouter(prefix="/v1/agents", tags=["agents"])


@router.post(
    "",
    dependencies=[Depends(no_query)],
    **described(
        "agents_create",
        Agent,
        status=201,
        body=AgentCreate,
        errors=[ErrorCode.NOT_FOUND, ErrorCode.CONFLICT, ErrorCode.CAPABILITY_UNAVAILABLE],
    ),
)
async def create(request: Request, engine: TheEngine, caller: Writer) -> Response:
    """Register a version of an agent; `POST /v1/runs` with `target: agent` runs it."""
    body = await read_model(request, AgentCreate)
    return one(await engine.agents.create(caller.account_id, body), 201)


@router.get("", **described("agents_list", Agent, listed=True, query=PAGED))
async def list_page(request: Request, engine: TheEngine, caller: Reader) -> Response:
    """List them, newest first."""
    query = page_query(request)
    return await page(await engine.agents.list(caller.account_id, query.limit, query.before), query)


@router.get(
    "/{id}",
    dependencies=[Depends(no_query)],
    **described("agents_read", Agent, errors=[ErrorCode.NOT_FOUND]),
)
async def read(id: str, engine: TheEngine, caller: Reader) -> Response:  # noqa: A002
    """Read one."""
    return one(await engine.agents.get(caller.account_id, id))


@router.delete(
    "/{id}",
    dependencies=[Depends(no_query)],
    **described("agents_delete", Agent, errors=[ErrorCode.NOT_FOUND]),
)
async def delete(id: str, engine: TheEngine, caller: Writer) -> Response:  # noqa: A002
    """Take one back; its runs stay."""
    return one(await engine.agents.delete(caller.account_id, id))
