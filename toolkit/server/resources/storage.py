"""`/v1/storage`."""

from fastapi import APIRouter, Depends, Request, Response

from toolkit.contract.errors import ErrorCode
from toolkit.contract.storage import Storage, StorageCreate
from toolkit.server.auth import ReadCaller, ServedEngine, WriteCaller
from toolkit.server.http.body import read_model
from toolkit.server.http.envelope import render_page, render_resource
from toolkit.server.http.query import parse_page_query, reject_query
from toolkit.server.openapi.document import PAGE_PARAMS, describe_route

router = APIRouter(prefix="/v1/storage", tags=["storage"])


@router.post(
    "",
    dependencies=[Depends(reject_query)],
    **describe_route(
        "storage_create",
        Storage,
        status=201,
        body=StorageCreate,
        errors=[ErrorCode.CREDENTIALS_MISSING],
    ),
)
async def create(request: Request, engine: ServedEngine, caller: WriteCaller) -> Response:
    """Rent a network volume."""
    body = await read_model(request, StorageCreate)
    return render_resource(await engine.storage.create(caller, body), 201)


@router.get("", **describe_route("storage_list", Storage, listed=True, query=PAGE_PARAMS))
async def list_page(request: Request, engine: ServedEngine, caller: ReadCaller) -> Response:
    """List them, newest first."""
    query = parse_page_query(request)
    return await render_page(await engine.storage.list(caller, query.limit, query.before), query)


@router.get(
    "/{id}",
    dependencies=[Depends(reject_query)],
    **describe_route("storage_read", Storage, errors=[ErrorCode.NOT_FOUND]),
)
async def read(id: str, engine: ServedEngine, caller: ReadCaller) -> Response:
    """Read one."""
    return render_resource(await engine.storage.get(caller, id))


@router.delete(
    "/{id}",
    dependencies=[Depends(reject_query)],
    **describe_route(
        "storage_delete",
        Storage,
        errors=[ErrorCode.NOT_FOUND, ErrorCode.CONFLICT, ErrorCode.CREDENTIALS_MISSING],
    ),
)
async def delete(id: str, engine: ServedEngine, caller: WriteCaller) -> Response:
    """Delete a volume, with all that is on it."""
    return render_resource(await engine.storage.delete(caller, id))
