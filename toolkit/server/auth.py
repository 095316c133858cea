"""Authentication and scopes: the sender of a request, and what its key allows."""

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Depends, Request
from starlette.datastructures import Headers
from starlette.types import Scope as Connection

from toolkit.contract.choices import Scope
from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.engine import Engine
from toolkit.engine.concurrency.pacing import note_activity
from toolkit.engine.request_context import RequestContext


def get_engine(request: Request) -> Engine:
    """Return the engine that this app serves."""
    engine: Engine = request.app.state.engine
    return engine


async def provide_engine(request: Request) -> Engine:
    """Provide the engine as a dependency: FastAPI would run a plain function in a thread."""
    return get_engine(request)


def read_bearer(headers: Headers) -> str:
    """Return the key that a request carries.

    Raises:
        RequestError: `UNAUTHENTICATED` for one that cannot be a key.
    """
    kind, _, key = headers.get("authorization", "").partition(" ")
    if kind.lower() != "bearer" or not key.isascii() or not key.startswith("sk_live_"):
        raise RequestError(ErrorCode.UNAUTHENTICATED)
    return key.strip()


async def authenticate_request(scope: Connection, engine: Engine) -> RequestContext:
    """Authenticate the key that a request carries, once for each request, as it is counted.

    Raises:
        RequestError: `UNAUTHENTICATED`.
        ServiceError: `RATE_LIMITED`.
    """
    state = scope.setdefault("state", {})
    if "caller" not in state:
        state["caller"] = await engine.accounts.authenticate(read_bearer(Headers(scope=scope)))
        note_activity(state["caller"].account_id)
    found: RequestContext = state["caller"]
    return found


def check_scope(caller: RequestContext, scope: Scope) -> None:
    """Check that the caller's key has a scope.

    Raises:
        RequestError: `FORBIDDEN`.
    """
    if scope not in caller.scopes:
        had = ", ".join(sorted(caller.scopes)) or "none"
        raise RequestError(
            ErrorCode.FORBIDDEN,
            f"This needs the scope `{scope}`, and the key has {had}: use a key that has it.",
        )


def require_scope(scope: Scope) -> Callable[[Request], Awaitable[RequestContext]]:
    """Return a dependency that requires a key with this scope."""

    async def authorize(request: Request) -> RequestContext:
        found = await authenticate_request(request.scope, get_engine(request))
        check_scope(found, scope)
        return found

    return authorize


ReadCaller = Annotated[RequestContext, Depends(require_scope("read"))]
WriteCaller = Annotated[RequestContext, Depends(require_scope("write"))]
AdminCaller = Annotated[RequestContext, Depends(require_scope("admin"))]
ServedEngine = Annotated[Engine, Depends(provide_engine)]
