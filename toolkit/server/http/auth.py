"""Authentication: the sender of a request, by the key that it carries."""

from starlette.requests import Request

from toolkit.contract.errors import ErrorCode, RequestError
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


def note_caller(request: Request, context: RequestContext) -> None:
    """Note who sent a request, for whoever observes."""
    request.state.caller = context
