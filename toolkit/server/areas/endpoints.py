"""`/v1/endpoints`."""

from fastapi import APIRouter, Depends, Request, Response

from toolkit.contract.endpoints import Endpoint, EndpointCreate
from toolkit.contract.errors import ErrorCode
from toolkit.server.auth import Reader, TheEngine, Writer
from toolkit.server.body import read_model
from toolkit.server.envelope import one, page
from toolkit.server.openapi import PAGED, described
from toolkit.server.paging import (
    no_query,
    page_query,
)

router = APIRouter(prefix="/v1/endpoints", tags=["endpoints"])


@router.post(
    "",
    dependencies=[Depends(no_query)],
    **described(
        "endpoints_create",
        Endpoint,
        status=201,
        body=EndpointCreate,
        errors=[ErrorCode.NOT_FOUND, ErrorCode.CONFLICT, ErrorCode.CREDENTIALS_MISSING],
    ),
)
async def create(request: Request, engine: TheEngine, caller: Writer) -> Response:
    """Create a serverless endpoint."""
    body = await read_model(request, EndpointCreate)
    return one(await engine.endpoints.create(caller.account_id, body, key_id=caller.key_id), 201)


@router.get("", **described("endpoints_list", Endpoint, listed=True, query=PAGED))
async def list_page(request: Request, engine: TheEngine, caller: Reader) -> Response:
    """List them, newest first."""
    query = page_query(request)
    return await page(
        await engine.endpoints.list(caller.account_id, query.limit, query.before), query
    )


@router.get(
    "/{id}",
    dependencies=[Depends(no_query)],
    **described("endpoints_read", Endpoint, errors=[ErrorCode.NOT_FOUND]),
)
async def read(id: str, engine: TheEngine, caller: Reader) -> Response:  # noqa: A002
    """Read one."""
    return one(await engine.endpoints.get(caller.account_id, id))


@router.delete(
    "/{id}",
    dependencies=[Depends(no_query)],
    **described(
        "endpoints_delete",
        Endpoint,
        errors=[ErrorCode.NOT_FOUND, ErrorCode.CONFLICT, ErrorCode.CREDENTIALS_MISSING],
    ),
)
async def delete(id: str, engine: TheEngine, caller: Writer) -> Response:  # noqa: A002
    """Destroy an endpoint."""
    return one(await engine.endpoints.delete(caller.account_id, id))
