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
from toolkit.server.auth import Admin, Reader, TheEngine
from toolkit.server.body import read_model
from toolkit.server.envelope import one, page
from toolkit.server.openapi import PAGED, described
from toolkit.server.paging import no_query, page_query

router = APIRouter(prefix="/v1/account", tags=["account"])


@router.post(
    "",
    dependencies=[Depends(no_query)],
    **described(
        "account_create",
        AccountCreated,
        status=201,
        body=AccountCreate,
        errors=[ErrorCode.CONFLICT],
    ),
)
async def create(request: Request, engine: TheEngine) -> Response:
    """Open an account; its key is shown this once."""
    body = await read_model(request, AccountCreate)
    address = request.client.host if request.client else ""
    return one(await engine.accounts.sign_up(body, address), 201)


@router.get("", dependencies=[Depends(no_query)], **described("account_read", CallerAccount))
async def read(engine: TheEngine, caller: Reader) -> Response:
    """Read the caller's account, and what is known of the key that was sent."""
    return one(await engine.accounts.me(caller))


@router.get("/keys", **described("account_keys_list", ApiKey, listed=True, query=PAGED))
async def keys(request: Request, engine: TheEngine, caller: Admin) -> Response:
    """List keys: their last four characters only."""
    query = page_query(request)
    return await page(await engine.keys.list(caller.account_id, query.limit, query.before), query)


@router.post(
    "/keys",
    dependencies=[Depends(no_query)],
    **described("account_keys_create", KeyCreated, status=201, body=KeyCreate),
)
async def create_key(request: Request, engine: TheEngine, caller: Admin) -> Response:
    """Make another key, with its scopes and what it may spend in a day; it is shown this once."""
    return one(await engine.keys.create(caller, await read_model(request, KeyCreate)), 201)


@router.get(
    "/keys/{id}",
    dependencies=[Depends(no_query)],
    **described("account_keys_read", ApiKey, errors=[ErrorCode.NOT_FOUND]),
)
async def read_key(id: str, engine: TheEngine, caller: Admin) -> Response:  # noqa: A002
    """Read what is known of a key: its last four characters only."""
    return one(await engine.keys.get(caller.account_id, id))


@router.post(
    "/keys/{id}/rotate",
    dependencies=[Depends(no_query)],
    **described(
        "account_keys_rotate",
        KeyCreated,
        status=201,
        body=KeyRotate,
        errors=[ErrorCode.NOT_FOUND, ErrorCode.CONFLICT],
    ),
)
async def rotate(id: str, request: Request, engine: TheEngine, caller: Admin) -> Response:  # noqa: A002
    """Make a key in the place of another, which is good for a while yet; it is shown this once."""
    body = await read_model(request, KeyRotate)
    return one(await engine.keys.rotate(caller, id, body), 201)


@router.delete(
    "/keys/{id}",
    dependencies=[Depends(no_query)],
    **described("account_keys_delete", ApiKey, errors=[ErrorCode.NOT_FOUND]),
)
async def revoke(id: str, engine: TheEngine, caller: Admin) -> Response:  # noqa: A002
    """Revoke a key at once."""
    return one(await engine.keys.revoke(caller.account_id, id))
