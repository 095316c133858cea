"""`/v1/providers/connections`."""

from fastapi import APIRouter, Depends, Request, Response

from toolkit.contract.connections import (
    Connection,
    ConnectionCreate,
    ConnectionShare,
    ConnectionTest,
)
from toolkit.contract.errors import ErrorCode
from toolkit.server.auth import Admin, Reader, TheEngine, Writer, check_scope
from toolkit.server.body import read_model
from toolkit.server.envelope import one, page
from toolkit.server.openapi import PAGED, Query, described
from toolkit.server.paging import known, no_query, page_query

router = APIRouter(prefix="/v1/providers/connections", tags=["connections"])


@router.post(
    "",
    dependencies=[Depends(no_query)],
    **described(
        "providers_connections_create",
        Connection,
        status=201,
        body=ConnectionCreate,
        errors=[ErrorCode.NOT_FOUND],
    ),
)
async def create(request: Request, engine: TheEngine, caller: Writer) -> Response:
    """Register a pointer to a secret; an operator may share it at once."""
    body = await read_model(request, ConnectionCreate)
    if body.share is not None:
        check_scope(caller, "admin")
    return one(await engine.connections.create(caller.account_id, body), 201)


@router.get("", **described("providers_connections_list", Connection, listed=True, query=PAGED))
async def list_page(request: Request, engine: TheEngine, caller: Reader) -> Response:
    """List them, newest first, those that are shared with the account among them."""
    query = page_query(request)
    return await page(
        await engine.connections.list(caller.account_id, query.limit, query.before), query
    )


@router.get(
    "/{id}",
    dependencies=[Depends(no_query)],
    **described("providers_connections_read", Connection, errors=[ErrorCode.NOT_FOUND]),
)
async def read(id: str, engine: TheEngine, caller: Reader) -> Response:  # noqa: A002
    """Read one."""
    return one(await engine.connections.get(caller.account_id, id))


@router.post(
    "/{id}/test",
    dependencies=[Depends(no_query)],
    **described("providers_connections_test", ConnectionTest, errors=[ErrorCode.NOT_FOUND]),
)
async def test(id: str, engine: TheEngine, caller: Writer) -> Response:  # noqa: A002
    """Say whether the pointer resolves, and whether the vendor takes the key."""
    return one(await engine.connections.test(caller.account_id, id))


@router.post(
    "/{id}/trust",
    dependencies=[Depends(no_query)],
    **described("providers_connections_trust", Connection, errors=[ErrorCode.NOT_FOUND]),
)
async def trust(id: str, engine: TheEngine, caller: Writer) -> Response:  # noqa: A002
    """Use models under budgets again that billed more than was reserved for them."""
    return one(await engine.connections.trust(caller.account_id, id))


@router.post(
    "/{id}/share",
    dependencies=[Depends(no_query)],
    **described(
        "providers_connections_share",
        Connection,
        body=ConnectionShare,
        errors=[ErrorCode.NOT_FOUND, ErrorCode.CONFLICT],
    ),
)
async def share(id: str, request: Request, engine: TheEngine, caller: Admin) -> Response:  # noqa: A002
    """Have other accounts use an operator's connection, each billed and limited by itself."""
    body = await read_model(request, ConnectionShare)
    return one(await engine.connections.share(caller.account_id, id, body.accounts))


@router.delete(
    "/{id}/share",
    **described(
        "providers_connections_share_delete",
        Connection,
        query=(Query("account", "the id of the one that it is shared with no longer"),),
        errors=[ErrorCode.NOT_FOUND, ErrorCode.CONFLICT],
    ),
)
async def unshare(id: str, request: Request, engine: TheEngine, caller: Admin) -> Response:  # noqa: A002
    """Share a connection no longer: with one account, or with nobody."""
    member_id = known(request, "account").get("account")
    return one(await engine.connections.unshare(caller.account_id, id, member_id))


@router.delete(
    "/{id}",
    dependencies=[Depends(no_query)],
    **described("providers_connections_delete", Connection, errors=[ErrorCode.NOT_FOUND]),
)
async def delete(id: str, engine: TheEngine, caller: Writer) -> Response:  # noqa: A002
    """Forget a connection."""
    return one(await engine.connections.delete(caller.account_id, id))
