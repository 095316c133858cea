"""Operations for callers in the same process: the same steps as around HTTP, without HTTP.

A request and its answer are values here. All that decides is shared with the endpoints of HTTP:
keys and scopes, limits, and the errors of bodies and queries.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from typing import IO, Any

from toolkit.contract.artifacts import Artifact
from toolkit.contract.base import ErrorInfo, RecordDocument
from toolkit.contract.errors import AWAY_STATUSES, ErrorCode, RequestError
from toolkit.contract.events import Event, TextDelta
from toolkit.contract.ids import Prefix, new_id
from toolkit.contract.operations.messages import OperationAnswer, OperationRequest
from toolkit.contract.operations.table import OPERATIONS
from toolkit.engine import Engine
from toolkit.engine.services.artifacts import make_missing_bytes_error
from toolkit.server.calls import ANONYMOUS, ApiCall, Upload
from toolkit.server.errors import (
    convert_error,
    find_retry_after_s,
    make_range_error,
    make_upload_error,
)
from toolkit.server.event_streams import follow_events
from toolkit.server.handlers import accept, dispatch, hold
from toolkit.server.operations import (
    OPERATIONS_BY_PATH,
    admit,
    answer_page,
    check_accepting,
    open_upload_file,
    take_body,
)
from toolkit.server.paths import PathTable
from toolkit.store import Content, FileSection

LOOPBACK = "127.0.0.1"
COPY_BYTES = 256 * 1024  # of a file that is uploaded, at a time
_PATHS = PathTable(OPERATIONS_BY_PATH)
_READINGS = {operation.resource: operation for operation in OPERATIONS if operation.verb == "read"}


class LocalOperations:
    """The operations over an engine, for callers in its process; called on the engine's loop."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def call(self, request: OperationRequest) -> OperationAnswer:
        """Carry out one operation, and return its answer.

        Raises:
            ToolkitError: as a client gets it over HTTP.
        """
        try:
            return await self._answer(request)
        except Exception as error:
            failed = error
        raise _make_caller_error(failed)  # here, so that nothing of the engine hangs on it

    async def stream(self, request: OperationRequest) -> AsyncIterator[Event | TextDelta]:
        """Yield the events and texts of a resource as they come, until it has ended.

        Raises:
            ToolkitError: as a client gets it over HTTP.
        """
        try:
            call = await self._make_call(request)
            await dispatch(call)  # refused before anything is waited for
            items = follow_events(call.engine, call.context, call.id, call.input.after)
            async with aclosing(items):
                async for item in items:
                    if item is not None:
                        yield item
        except Exception as error:
            failed = error
        else:
            return
        raise _make_caller_error(failed)

    async def _answer(self, request: OperationRequest) -> OperationAnswer:
        call = await self._make_call(request)
        operation = call.operation
        if request.file is not None:
            return await self._answer_upload(call, request.file)
        if request.hold_s:
            work_id = call.id if operation.method == "GET" else await accept(call)
            return OperationAnswer([RecordDocument.of(await hold(call, work_id, request.hold_s))])
        result = await dispatch(call)
        if operation.form == "record":
            return OperationAnswer([RecordDocument.of(result)])
        if operation.form == "bytes":
            return OperationAnswer(content=await self._read_bytes(call, result, request.span))
        answer = await answer_page(call, result)
        if request.is_last is None or (result and not request.is_last(result)):
            return answer
        work = await dispatch(replace(call, operation=_READINGS[operation.resource]))
        return replace(answer, work=RecordDocument.of(work))

    async def _answer_upload(self, call: ApiCall[Any], file: bytes | IO[bytes]) -> OperationAnswer:
        """Store a copy of a file, because the file may change while it is read."""
        if isinstance(file, bytes):
            return await self._store_upload(call, file)
        limit = self._engine.settings.upload_limit_bytes
        with open_upload_file(self._engine) as upload_file:
            size = await asyncio.to_thread(_copy_upload, file, upload_file, limit)
            return await self._store_upload(call, FileSection(upload_file, 0, size))

    async def _store_upload(self, call: ApiCall[Any], content: Content) -> OperationAnswer:
        if not content:
            raise make_upload_error("file", "is empty")
        record = await dispatch(replace(call, input=Upload(content, {})))
        return OperationAnswer([RecordDocument.of(record)])

    async def _read_bytes(
        self, call: ApiCall[Any], artifact: Artifact, span: tuple[int, int | None]
    ) -> bytes:
        """Read the bytes of an artifact, or a span of them.

        Raises:
            RequestError: `INVALID_REQUEST` for a span that begins after the last byte.
            ServiceError: `UNAVAILABLE` if the bytes end too early.
        """
        start, size = span[0], artifact.size_bytes
        end = size if span[1] is None else min(span[1], size)
        if start and start >= end:
            raise make_range_error()
        data = await self._engine.artifacts.read_content(call.context, artifact.id, start, end)
        if len(data) < end - start:
            raise make_missing_bytes_error()
        return data

    async def _make_call(self, request: OperationRequest) -> ApiCall[Any]:
        """Make the call that a request asks for, in the order in which HTTP refuses requests.

        Raises:
            RequestError: if the request is rejected.
            ServiceError: if it cannot be answered now.
        """
        engine, match = self._engine, _PATHS.find(f"/v1{request.path}")
        check_accepting(engine, request.method)
        if match is None:
            raise RequestError(ErrorCode.NOT_FOUND, "There is no such path.")
        operation = match.endpoint.get(request.method)
        if operation is None:
            raise RequestError(ErrorCode.METHOD_NOT_ALLOWED)
        call = await admit(
            ApiCall(operation, engine, ANONYMOUS, None, match.id, LOOPBACK),
            request.key,
            [(name, str(value)) for name, value in request.query.items()],
        )
        body = request.body or (b"{}" if operation.may_omit_body else b"")
        if operation.body is not None and len(body) > engine.settings.body_limit_bytes:
            raise RequestError(ErrorCode.PAYLOAD_TOO_LARGE)
        if request.watches_text:
            call = replace(call, context=replace(call.context, watches_text=True))
        return await take_body(call, body)


def _copy_upload(source: IO[bytes], target: IO[bytes], limit: int) -> int:
    """Copy a file and return its size; blocks.

    Raises:
        RequestError: `PAYLOAD_TOO_LARGE` for more than `limit` bytes.
    """
    size = 0
    while chunk := source.read(COPY_BYTES):
        size += len(chunk)
        if size > limit:
            raise RequestError(ErrorCode.PAYLOAD_TOO_LARGE)
        target.write(chunk)
    return size


def _make_caller_error(error: Exception) -> Exception:
    """Make the error that a client would raise after the same failure over HTTP."""
    request_id = new_id(Prefix.REQUEST)
    service_error = convert_error(error, request_id)
    info = ErrorInfo.of(service_error)
    info.request_id = request_id
    caller_error = info.to_exception()
    caller_error.retry_after = find_retry_after_s(service_error)
    caller_error.is_away = service_error.code.http_status in AWAY_STATUSES
    return caller_error
