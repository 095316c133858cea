"""The operation layer: in which order any request is refused, and how it becomes a call.

HTTP and clients in the same process translate to it, and neither decides anything of its own.
"""

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

from pydantic import BaseModel

from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.contract.operations.definitions import ApiOperation
from toolkit.contract.operations.queries import (
    OperationQuery,
    PageQuery,
    make_cursor,
    make_query_error,
)
from toolkit.engine import Engine
from toolkit.engine.concurrency.pacing import note_activity
from toolkit.engine.request_context import RequestContext
from toolkit.server.bodies import parse_body
from toolkit.server.calls import ANONYMOUS, ApiCall, check_scope

UPLOAD_RETRY_AFTER_S = 5.0


async def admit(
    engine: Engine,
    operation: ApiOperation[Any, Any],
    key: str,
    parameters: Iterable[tuple[str, str]],
    note_caller: Callable[[RequestContext], None] | None = None,
) -> tuple[RequestContext, OperationQuery | None]:
    """Check who asks, whether the key may, and the query: before any body is read.

    A stored answer must not be shown either to a key that could not have asked for it.

    Args:
        engine: the engine that carries the operation out.
        operation: what is asked for.
        key: the key of the caller; not looked at where the operation needs none.
        parameters: those of the query.
        note_caller: takes the caller as soon as it is known, before it is refused.

    Raises:
        RequestError: `UNAUTHENTICATED`, `FORBIDDEN`, `INVALID_REQUEST`.
        ServiceError: `RATE_LIMITED`.
    """
    context = ANONYMOUS
    if operation.scope is not None:
        context = await engine.accounts.authenticate(key)
        note_activity(context.account_id)
        if note_caller is not None:
            note_caller(context)
        check_scope(context, operation)
    return context, parse_parameters(parameters, operation)


async def make_call(
    engine: Engine,
    operation: ApiOperation[Any, Any],
    context: RequestContext,
    query: OperationQuery | None,
    body: bytes,
    resource_id: str,
    address: str,
) -> ApiCall[Any]:
    """Make the call of a request that was admitted, by its body where the operation takes one.

    Raises:
        RequestError: `INVALID_REQUEST`, `INVALID_WORKFLOW`.
    """
    taken: object = query
    if operation.body is not None:
        taken = await parse_body(body, operation.body, engine, context.account_id or None)
    return ApiCall(operation, engine, context, taken, resource_id, address)


def parse_parameters(
    parameters: Iterable[tuple[str, str]], operation: ApiOperation[object, object]
) -> OperationQuery | None:
    """Parse query parameters, refusing any that is unknown or given twice.

    Raises:
        RequestError: `INVALID_REQUEST`.
    """
    names = {one.name for one in operation.query.PARAMETERS} if operation.query else set()
    given: dict[str, str] = {}
    for name, value in parameters:
        if name not in names:
            raise make_query_error(name[:64], "is not a parameter of this path")
        if name in given:
            raise make_query_error(name, "is given twice")
        given[name] = value
    return operation.query.parse(given, operation.resource.prefix) if operation.query else None


def find_next_cursor(records: Sequence[BaseModel], query: PageQuery | None) -> str | None:
    """Find the cursor of the page after some records; none where they are the last."""
    if query is None or len(records) != query.limit:
        return None
    last: str | None = getattr(records[-1], "id", None)
    return last and make_cursor(last)


@contextmanager
def open_upload_file(engine: Engine) -> Iterator[IO[bytes]]:
    """Open a temporary file for an upload; it is gone when that is answered.

    Raises:
        ServiceError: `UNAVAILABLE`.
    """
    # In the data directory, as other folders may be in memory; without a name, so that it is
    # removed when this process ends.
    try:
        with tempfile.TemporaryFile(dir=engine.settings.data_dir) as file:
            yield file
    except OSError as error:
        raise ServiceError(
            ErrorCode.UNAVAILABLE,
            f"The upload cannot be taken in: {error.strerror}.",
            retry_after=UPLOAD_RETRY_AFTER_S,
        ) from error
