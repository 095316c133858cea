"""Authentication: the sender of a request, by the key that it carries."""

from starlette.requests import Request

from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.engine import Engine
from toolkit.engine.concurrency.pacing import note_activity
from toolkit.engine.request_context import RequestContext


def read_bearer(request: Request) -> str:
    """Return the key that a request carries.

    Raises:
        RequestError: `UNAUTHENTICATED` for one that cannot be a key.
    """
    kind, _, key = request.headers.get("authorization", "").partition(" ")
    if kind.lower() != "bearer" or not key.isascii() or not key.startswith("sk_live_"):
        raise RequestError(ErrorCode.UNAUTHENTICATED)
    return key.strip()


async def authenticate_request(request: Request, engine: Engine) -> RequestContext:
    """Authenticate the key that a request carries, and note who sent it for whoever observes.

    Raises:
        RequestError: `UNAUTHENTICATED`.
        ServiceError: `RATE_LIMITED`.
    """
    context = request.state.caller = await authenticate_key(engine, read_bearer(request))
    return context


async def authenticate_key(engine: Engine, key: str) -> RequestContext:
    """Authenticate a key, and note that its account is active.

    Raises:
        RequestError: `UNAUTHENTICATED`.
        ServiceError: `RATE_LIMITED`.
    """
    context = await engine.accounts.authenticate(key)
    note_activity(context.account_id)
    return context
