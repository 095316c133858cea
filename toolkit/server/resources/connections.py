"""`/v1/providers/connections`."""

from fastapi import APIRouter, Depends, Request, Response

from toolkit.contract.connections import (
    Connection,
    ConnectionCreate,
    ConnectionShare,
    ConnectionTest,
)
from toolkit.contract.errors import ErrorCode
from toolkit.server.auth import AdminCaller, ReadCaller, ServedEngine, WriteCaller, check_scope
from toolkit.server.http.body import read_model
from toolkit.server.http.envelope import render_page, render_resource
from toolkit.server.http.query import parse_page_query, read_query, reject_query
from toolkit.server.openapi.document import PAGE_PARAMS, QueryParam, describe_route

router = APIRouter(prefix="/v1/providers/connections", tags=["connections"])


@router.post(
    "",
    dependencies=[Depends(reject_query)],
    **describe_route(
        "providers_connections_create",
        Connection,
        status=201,
        body=ConnectionCreate,
        errors=[ErrorCode.NOT_FOUND],
    ),
)
async def create(request: Request, engine: ServedEngine, caller: WriteCaller) -> Response:
    """Register a pointer to a secret; an operator may share it at once."""
    body = await read_model(request, ConnectionCreate)
    if body.share is not None:
        check_scope(caller, "admin")
    return render_resource(await engine.connections.create(caller, body), 201)


@router.get(
    "", **describe_route("providers_connections_list", Connection, listed=True, query=PAGE_PARAMS)
)
async def list_page(request: Request, engine: ServedEngine, caller: ReadCaller) -> Response:
    """List them, newest first, those that are shared with the account among them."""
    query = parse_page_query(request)
    return await render_page(
        await engine.connections.list(caller, query.limit, query.before), query
    )


@router.get(
    "/{id}",
    dependencies=[Depends(reject_query)],
    **describe_route("providers_connections_read", Connection, errors=[ErrorCode.NOT_FOUND]),
)
async def read(id: str, engine: ServedEngine, caller: ReadCaller) -> Response:
    """Read one."""
    return render_resource(await engine.connections.get(caller, id))


@router.post(
    "/{id}/test",
    dependencies=[Depends(reject_query)],
    **describe_route("providers_connections_test", ConnectionTest, errors=[ErrorCode.NOT_FOUND]),
)
async def test(id: str, engine: ServedEngine, caller: WriteCaller) -> Response:
    """Say whether the pointer resolves, and whether the vendor takes the key."""
    return render_resource(await engine.connections.test(caller, id))


@router.post(
    "/{id}/trust",
    dependencies=[Depends(reject_query)],
    **describe_route("providers_connections_trust", Connection, errors=[ErrorCode.NOT_FOUND]),
)
async def trust(id: str, engine: ServedEngine, caller: WriteCaller) -> Response:
    """Use models under budgets again that billed more than was reserved for them."""
    return render_resource(await engine.connections.trust(caller, id))


@router.post(
    "/{id}/share",
    dependencies=[Depends(reject_query)],
    **describe_route(
        "providers_connections_share",
        Connection,
        body=ConnectionShare,
        errors=[ErrorCode.NOT_FOUND, ErrorCode.CONFLICT],
    ),
)
async def share(id: str, request: Request, engine: ServedEngine, caller: AdminCaller) -> Response:
    """Have other accounts use an operator's connection, each billed and limited by itself."""
    body = await read_model(request, ConnectionShare)
    return render_resource(await engine.connections.share(caller, id, body.accounts))


@router.delete(
    "/{id}/share",
    **describe_route(
        "providers_connections_share_delete",
        Connection,
        query=(QueryParam("account", "the id of the one that it is shared with no longer"),),
        errors=[ErrorCode.NOT_FOUND, ErrorCode.CONFLICT],
    ),
)
async def unshare(id: str, request: Request, engine: ServedEngine, caller: AdminCaller) -> Response:
    """Share a connection no longer: with one account, or with nobody."""
    member_id = read_query(request, "account").get("account")
    return render_resource(await engine.connections.unshare(caller, id, member_id))


@router.delete(
    "/{id}",
    dependencies=[Depends(reject_query)],
    **describe_route("providers_connections_delete", Connection, errors=[ErrorCode.NOT_FOUND]),
)
async def delete(id: str, engine: ServedEngine, caller: WriteCaller) -> Response:
    """Forget a connection."""
    return render_resource(await engine.connections.delete(caller, id))
