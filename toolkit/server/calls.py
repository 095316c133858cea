"""Calls of operations, as values: nothing here or in a handler knows HTTP."""

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from toolkit.contract.base import JsonObject
from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.contract.operations.definitions import ApiOperation
from toolkit.engine import Engine
from toolkit.engine.request_context import RequestContext
from toolkit.store import Content

In = TypeVar("In")
# The context of a caller of an operation that needs no key: it has no scope at all.
ANONYMOUS = RequestContext("")


@dataclass(frozen=True, slots=True)
class ApiCall(Generic[In]):
    """One call of an operation.

    Attributes:
        operation: operation of the call.
        engine: the engine that carries it out.
        context: context of the caller.
        input: parsed body or query; None for an operation that takes neither.
        id: id in the path; empty without an id.
        address: address of the caller; empty if the call did not come over a network.
    """

    operation: ApiOperation[In, Any]
    engine: Engine
    context: RequestContext
    input: In
    id: str = ""
    address: str = ""


@dataclass(frozen=True, slots=True)
class Upload:
    """The input of an upload: the bytes, and the caller's metadata of them."""

    file: Content
    metadata: JsonObject


def check_scope(context: RequestContext, operation: ApiOperation[Any, Any]) -> None:
    """Check that the caller's key has the scope of an operation, if it needs any.

    The scope `work` suffices for operations on work.

    Raises:
        RequestError: `FORBIDDEN`.
    """
    scope = operation.scope
    if operation.is_work and "work" in context.scopes:
        return
    if scope is not None and scope not in context.scopes:
        scopes = ", ".join(sorted(context.scopes)) or "none"
        raise RequestError(
            ErrorCode.FORBIDDEN,
            f"The key lacks the scope `{scope}` (it has {scopes}): use a key with this scope.",
        )
