"""`/v1/providers/connections`."""

from fastapi import APIRouter, Depends, Request, Response

from toolkit.contract.connections import Connection, ConnectionCreate, ConnectionTest
from toolkit.contract.errors import ErrorCode
from toolkit.server.auth import Reader, TheEngine, Writer
from toolkit.server.body import read_model
from toolkit.server.envelope import one, page
from toolkit.server.openapi import PAGED, described
from toolkit.server.paging import (
    no_query,
    page_query,
)

router = APIRouter(prefix="/v1/providers/connections", tags=["connections"])


@router.post(
    "",
    dependencies=[Depends(no_query)],
    **described(
        "providers_connections_create",
        Connection,
        status=201,
        body=ConnectionCreate,
        errors=[],
    ),
)
async def create(request: Request, engine: TheEngine, caller: Writer) -> Response:
    """Register a pointer to a secret."""
    body = await read_model(request, ConnectionCreate)
    return one(await engine.connections.create(caller.account_id, body), 201)


@router.get("", **described("providers_connections_list", Connection, listed=True, query=PAGED))
async def list_page(request: Request, engine: TheEngine, caller: Reader) -> Response:
    """List them, newest first."""
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


@router.delete(
    "/{id}",
    dependencies=[Depends(no_query)],
    **described("providers_connections_delete", Connection, errors=[ErrorCode.NOT_FOUND]),
)
async def delete(id: str, engine: TheEngine, caller: Writer) -> Response:  # noqa: A002
    """Forget a connection."""
    return one(await engine.connections.delete(caller.account_id, id))
