"""Who sent a request, and whether the key allows it: decided in each route."""

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Depends, Request
from starlette.datastructures import Headers

from toolkit.contract.account import Scope
from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.engine import Engine
from toolkit.engine.accounts import Principal


def engine_of(request: Request) -> Engine:
    """The engine that this app serves."""
    engine: Engine = request.app.state.engine
    return engine


def bearer_of(headers: Headers) -> str:
    """The key that a request carries.

    Raises:
        RequestError: `UNAUTHENTICATED` for one that cannot be a key.
    """
    kind, _, key = headers.get("authorization", "").partition(" ")
    if kind.lower() != "bearer" or not key.isascii() or not key.startswith("sk_live_"):
        raise RequestError(ErrorCode.UNAUTHENTICATED)
    return key.strip()


def needs(scope: Scope) -> Callable[[Request], Awaitable[Principal]]:
    """A dependency that lets in whoever has a key with this scope."""

    async def principal(request: Request) -> Principal:
        found = await engine_of(request).accounts.authenticate(bearer_of(request.headers))
        request.state.caller = found
        if scope not in found.scopes:
            raise RequestError(ErrorCode.FORBIDDEN)
        return found

    return principal


Reader = Annotated[Principal, Depends(needs("read"))]
Writer = Annotated[Principal, Depends(needs("write"))]
Admin = Annotated[Principal, Depends(needs("admin"))]
TheEngine = Annotated[Engine, Depends(engine_of)]
