"""The operation layer: the order of the checks of a request, and the content of its answer.

HTTP and clients in the same process translate to it; neither decides anything itself.
"""

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import groupby
from typing import IO, Any

from pydantic import BaseModel

from toolkit.contract.base import RecordDocument
from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.contract.operations.definitions import ApiOperation
from toolkit.contract.operations.messages import OperationAnswer
from toolkit.contract.operations.queries import (
    OperationQuery,
    PageQuery,
    make_cursor,
    make_query_error,
)
from toolkit.contract.operations.table import OPERATIONS
from toolkit.engine import Engine
from toolkit.engine.concurrency.pacing import Pacer, note_activity
from toolkit.engine.request_context import RequestContext
from toolkit.server.bodies import parse_body
from toolkit.server.calls import ANONYMOUS, ApiCall, check_scope
from toolkit.server.handlers import count_records

UPLOAD_RETRY_AFTER_S = 5.0
OPERATIONS_BY_PATH: Mapping[str, Mapping[str, ApiOperation[Any, Any]]] = {
    path: {operation.method: operation for operation in operations}
    for path, operations in groupby(
        sorted(OPERATIONS, key=lambda operation: operation.path),
        key=lambda operation: operation.path,
    )
}


def check_accepting(engine: Engine, method: str) -> None:
    """Reject new work during shutdown.

    Raises:
        ServiceError: `UNAVAILABLE`.
    """
    if method == "POST" and engine.is_draining:
        raise ServiceError(ErrorCode.UNAVAILABLE, "The service is stopping.")


async def admit(
    call: ApiCall[None],
    key: str,
    parameters: Iterable[tuple[str, str]],
    note_caller: Callable[[RequestContext], None] | None = None,
) -> ApiCall[Any]:
    """Check the caller, the scope of the key, and the query, before any body is read.

    A stored answer, too, must not reach a key that could not have asked for it.

    Args:
        call: call that a request asks for, still without a caller.
        key: key of the caller; ignored if the operation needs no key.
        parameters: parameters of the query.
        note_caller: function that receives the caller once known, even if it is then rejected.

    Returns:
        the call of that caller, with the query as its input.

    Raises:
        RequestError: `UNAUTHENTICATED`, `FORBIDDEN`, `INVALID_REQUEST`.
        ServiceError: `RATE_LIMITED`.
    """
    context = ANONYMOUS
    if call.operation.scope is not None:
        context = await call.engine.accounts.authenticate(key)
        note_activity(context.account_id)
        if note_caller is not None:
            note_caller(context)
        check_scope(context, call.operation)
    query: Any = parse_parameters(parameters, call.operation)
    return replace(call, context=context, input=query)


async def take_body(call: ApiCall[Any], body: bytes) -> ApiCall[Any]:
    """Use the body of an admitted request as the input, if the operation has a body.

    Raises:
        RequestError: `INVALID_REQUEST`, `INVALID_WORKFLOW`.
    """
    model = call.operation.body
    if model is None:
        return call
    account_id = call.context.account_id or None
    return replace(call, input=await parse_body(body, model, call.engine, account_id))


async def answer_page(call: ApiCall[Any], records: Sequence[BaseModel]) -> OperationAnswer:
    """Make the answer of a page; a full page has a cursor to the next."""
    documents = []
    async with Pacer() as pacer:
        for record in records:
            documents.append(RecordDocument.of(record))
            await pacer.pause()
    query, next_cursor = call.input, None
    if isinstance(query, PageQuery) and len(records) == query.limit:
        last: str | None = getattr(records[-1], "id", None)
        next_cursor = last and make_cursor(last)
    total = await count_records(call, records)
    return OperationAnswer(documents, next_cursor, total, is_page=True)


def parse_parameters(
    parameters: Iterable[tuple[str, str]], operation: ApiOperation[Any, Any]
) -> OperationQuery | None:
    """Parse query parameters; return None for an operation without parameters.

    Raises:
        RequestError: `INVALID_REQUEST` for an unknown, repeated or invalid parameter.
    """
    names = {item.name for item in operation.query.PARAMETERS} if operation.query else set()
    values: dict[str, str] = {}
    for name, value in parameters:
        if name not in names:
            raise make_query_error(name[:64], "is not a parameter of this path")
        if name in values:
            raise make_query_error(name, "is given twice")
        values[name] = value
    return operation.query.parse(values, operation.resource.prefix) if operation.query else None


@contextmanager
def open_upload_file(engine: Engine) -> Iterator[IO[bytes]]:
    """Open a temporary file for an upload; it is removed when the upload is answered.

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
            f"The upload cannot be stored: {error.strerror}.",
            retry_after=UPLOAD_RETRY_AFTER_S,
        ) from error
