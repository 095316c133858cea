"""`/v1/account`."""

from fastapi import APIRouter, Depends, Request, Response

from toolkit.contract.account import (
    AccountCreate,
    AccountCreated,
    ApiKey,
    CallerAccount,
    KeyCreate,
    KeyCreated,
    KeyRotate,
)
from toolkit.contract.errors import ErrorCode
from toolkit.server.auth import AdminCaller, ReadCaller, ServedEngine
from toolkit.server.http.body import read_model
from toolkit.server.http.envelope import render_page, render_resource
from toolkit.server.http.query import parse_page_query, reject_query
from toolkit.server.openapi.document import PAGE_PARAMS, describe_route

router = APIRouter(prefix="/v1/account", tags=["account"])


@router.post(
    "",
    dependencies=[Depends(reject_query)],
    **describe_route(
        "account_create",
        AccountCreated,
        status=201,
        body=AccountCreate,
        errors=[ErrorCode.CONFLICT],
    ),
)
async def create(request: Request, engine: ServedEngine) -> Response:
    """Open an account; its key is shown this once."""
    body = await read_model(request, AccountCreate)
    address = request.client.host if request.client else ""
    return render_resource(await engine.accounts.sign_up(body, address), 201)


@router.get(
    "", dependencies=[Depends(reject_query)], **describe_route("account_read", CallerAccount)
)
async def read(engine: ServedEngine, caller: ReadCaller) -> Response:
    """Read the caller's account, and what is known of the key that was sent."""
    return render_resource(await engine.accounts.get_caller(caller))


@router.get("/keys", **describe_route("account_keys_list", ApiKey, listed=True, query=PAGE_PARAMS))
async def keys(request: Request, engine: ServedEngine, caller: AdminCaller) -> Response:
    """List keys: their last four characters only."""
    query = parse_page_query(request)
    return await render_page(await engine.keys.list(caller, query.limit, query.before), query)


@router.post(
    "/keys",
    dependencies=[Depends(reject_query)],
    **describe_route("account_keys_create", KeyCreated, status=201, body=KeyCreate),
)
async def create_key(request: Request, engine: ServedEngine, caller: AdminCaller) -> Response:
    """Make another key, with its scopes and what it may spend in a day; it is shown this once."""
    return render_resource(
        await engine.keys.create(caller, await read_model(request, KeyCreate)), 201
    )


@router.get(
    "/keys/{id}",
    dependencies=[Depends(reject_query)],
    **describe_route("account_keys_read", ApiKey, errors=[ErrorCode.NOT_FOUND]),
)
async def read_key(id: str, engine: ServedEngine, caller: AdminCaller) -> Response:
    """Read what is known of a key: its last four characters only."""
    return render_resource(await engine.keys.get(caller, id))


@router.post(
    "/keys/{id}/rotate",
    dependencies=[Depends(reject_query)],
    **describe_route(
        "account_keys_rotate",
        KeyCreated,
        status=201,
        body=KeyRotate,
        errors=[ErrorCode.NOT_FOUND, ErrorCode.CONFLICT],
    ),
)
async def rotate(id: str, request: Request, engine: ServedEngine, caller: AdminCaller) -> Response:
    """Make a key in the place of another, which is good for a while yet; it is shown this once."""
    body = await read_model(request, KeyRotate)
    return render_resource(await engine.keys.rotate(caller, id, body), 201)


@router.delete(
    "/keys/{id}",
    dependencies=[Depends(reject_query)],
    **describe_route("account_keys_delete", ApiKey, errors=[ErrorCode.NOT_FOUND]),
)
async def revoke(id: str, engine: ServedEngine, caller: AdminCaller) -> Response:
    """Revoke a key at once."""
    return render_resource(await engine.keys.revoke(caller, id))
