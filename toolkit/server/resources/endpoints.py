"""`/v1/endpoints`."""

from fastapi import APIRouter, Depends, Request, Response

from toolkit.contract.endpoints import Endpoint, EndpointCreate
from toolkit.contract.errors import ErrorCode
from toolkit.server.auth import ReadCaller, ServedEngine, WriteCaller
from toolkit.server.http.body import read_model
from toolkit.server.http.envelope import render_page, render_resource
from toolkit.server.http.query import (
    parse_page_query,
    reject_query,
)
from toolkit.server.openapi.document import PAGE_PARAMS, describe_route

router = APIRouter(prefix="/v1/endpoints", tags=["endpoints"])


@router.post(
    "",
    dependencies=[Depends(reject_query)],
    **describe_route(
        "endpoints_create",
        Endpoint,
        status=201,
        body=EndpointCreate,
        errors=[ErrorCode.NOT_FOUND, ErrorCode.CONFLICT, ErrorCode.CREDENTIALS_MISSING],
    ),
)
async def create(request: Request, engine: ServedEngine, caller: WriteCaller) -> Response:
    """Create a serverless endpoint."""
    body = await read_model(request, EndpointCreate)
    return render_resource(await engine.endpoints.create(caller, body), 201)


@router.get("", **describe_route("endpoints_list", Endpoint, listed=True, query=PAGE_PARAMS))
async def list_page(request: Request, engine: ServedEngine, caller: ReadCaller) -> Response:
    """List them, newest first."""
    query = parse_page_query(request)
    return await render_page(await engine.endpoints.list(caller, query.limit, query.before), query)


@router.get(
    "/{id}",
    dependencies=[Depends(reject_query)],
    **describe_route("endpoints_read", Endpoint, errors=[ErrorCode.NOT_FOUND]),
)
async def read(id: str, engine: ServedEngine, caller: ReadCaller) -> Response:
    """Read one."""
    return render_resource(await engine.endpoints.get(caller, id))


@router.delete(
    "/{id}",
    dependencies=[Depends(reject_query)],
    **describe_route(
        "endpoints_delete",
        Endpoint,
        errors=[ErrorCode.NOT_FOUND, ErrorCode.CONFLICT, ErrorCode.CREDENTIALS_MISSING],
    ),
)
async def delete(id: str, engine: ServedEngine, caller: WriteCaller) -> Response:
    """Destroy an endpoint."""
    return render_resource(await engine.endpoints.delete(caller, id))
