"""Operations for callers in the same process: what HTTP does around them, without any HTTP.

A request and its answer are values here. Everything that decides, from keys and scopes to limits
and the errors of bodies and queries, is what the endpoints of HTTP call as well.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from typing import IO, Any

from toolkit.contract.artifacts import Artifact
from toolkit.contract.base import ErrorInfo, RecordDocument
from toolkit.contract.errors import (
    AWAY_STATUSES,
    ErrorCode,
    RequestError,
    ServiceError,
    ToolkitError,
)
from toolkit.contract.events import Event, TextDelta
from toolkit.contract.ids import Prefix, new_id
from toolkit.contract.operations.definitions import ApiOperation
from toolkit.contract.operations.messages import OperationAnswer, OperationRequest
from toolkit.contract.operations.queries import PageQuery
from toolkit.contract.operations.table import OPERATIONS
from toolkit.engine import Engine
from toolkit.engine.services.artifacts import make_missing_bytes_error
from toolkit.server.calls import ApiCall, Upload
from toolkit.server.errors import (
    UNEXPECTED_MESSAGE,
    find_retry_after_s,
    find_status,
    make_draining_error,
    make_range_error,
    make_upload_error,
)
from toolkit.server.event_streams import follow_events
from toolkit.server.handlers import count_records, dispatch, hold
from toolkit.server.operations import admit, find_next_cursor, make_call, open_upload_file
from toolkit.server.paths import PathTable
from toolkit.store import Content, FileSection

log = logging.getLogger(__name__)
LOOPBACK = "127.0.0.1"
COPY_BYTES = 256 * 1024  # of a file that is uploaded, at a time


def _tabulate_operations() -> PathTable[dict[str, ApiOperation[Any, Any]]]:
    found: dict[str, dict[str, ApiOperation[Any, Any]]] = {}
    for operation in OPERATIONS:
        found.setdefault(operation.path, {})[operation.method] = operation
    return PathTable(found)


_PATHS = _tabulate_operations()  # the operations of each path, by method
_READINGS = {one.resource: one for one in OPERATIONS if one.verb == "read"}


class LocalOperations:
    """The operations over an engine, for callers in its process; called on the engine's loop.

    Args:
        engine: the engine that carries them out.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def call(self, request: OperationRequest) -> OperationAnswer:
        """Carry out one operation.

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
        if request.file is not None:
            return await self._answer_upload(call, request.file)
        if request.hold_s and call.operation.method == "GET":
            return OperationAnswer([RecordDocument.of(await hold(call, call.id, request.hold_s))])
        result = await dispatch(call)
        if request.hold_s:
            result = await hold(call, result.id, request.hold_s)
        if call.operation.form == "record":
            return OperationAnswer([RecordDocument.of(result)])
        if call.operation.form == "bytes":
            return OperationAnswer(content=await self._read_bytes(call, result, request.span))
        work = None
        if request.is_last is not None and (not result or request.is_last(result)):
            reading = _READINGS[call.operation.resource]
            work = RecordDocument.of(await dispatch(replace(call, operation=reading)))
        query = call.input if isinstance(call.input, PageQuery) else None
        records = [RecordDocument.of(one) for one in result]
        total = await count_records(call, result)
        return OperationAnswer(
            records, find_next_cursor(result, query), total, is_page=True, work=work
        )

    async def _answer_upload(self, call: ApiCall[Any], file: bytes | IO[bytes]) -> OperationAnswer:
        """Store a file, which may change while it is read: so a copy is what is stored."""
        if isinstance(file, bytes):
            return await self._store_upload(call, file)
        limit = self._engine.settings.upload_limit_bytes
        with open_upload_file(self._engine) as kept:
            size = await asyncio.to_thread(_copy_upload, file, kept, limit)
            return await self._store_upload(call, FileSection(kept, 0, size))

    async def _store_upload(self, call: ApiCall[Any], content: Content) -> OperationAnswer:
        if not content:
            raise make_upload_error("file", "is empty")
        stored = await dispatch(replace(call, input=Upload(content, {})))
        return OperationAnswer([RecordDocument.of(stored)])

    async def _read_bytes(
        self, call: ApiCall[Any], artifact: Artifact, span: tuple[int, int | None]
    ) -> bytes:
        """Read the bytes of an artifact, or a span of them.

        Raises:
            RequestError: `INVALID_REQUEST` for one that begins after the last byte.
            ServiceError: `UNAVAILABLE` where there are fewer than there should be.
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
            RequestError: for a request that is refused.
            ServiceError: where it cannot be answered now.
        """
        engine, match = self._engine, _PATHS.find(f"/v1{request.path}")
        if request.method == "POST" and engine.is_draining:
            raise make_draining_error()
        if match is None:
            raise RequestError(ErrorCode.NOT_FOUND, "There is no such path.")
        operation = match.endpoint.get(request.method)
        if operation is None:
            raise RequestError(ErrorCode.METHOD_NOT_ALLOWED)
        given = [(name, str(value)) for name, value in request.query.items()]
        context, query = await admit(engine, operation, request.key, given)
        body = request.body or (b"{}" if operation.may_omit_body else b"")
        if operation.body is not None and len(body) > engine.settings.body_limit_bytes:
            raise RequestError(ErrorCode.PAYLOAD_TOO_LARGE)
        if request.watches_text:
            context = replace(context, watches_text=True)
        return await make_call(engine, operation, context, query, body, match.id, LOOPBACK)


def _copy_upload(source: IO[bytes], target: IO[bytes], limit: int) -> int:
    """Copy a file of at most `limit` bytes, and return its size; blocks.

    Raises:
        RequestError: `PAYLOAD_TOO_LARGE`.
    """
    size = 0
    while chunk := source.read(COPY_BYTES):
        size += len(chunk)
        if size > limit:
            raise RequestError(ErrorCode.PAYLOAD_TOO_LARGE)
        target.write(chunk)
    return size


def _make_caller_error(error: Exception) -> Exception:
    """Make the error that a client raises where HTTP would have answered with this one."""
    request_id = new_id(Prefix.REQUEST)
    if not isinstance(error, ToolkitError):
        log.error("%s failed", request_id, exc_info=error)
        error = ServiceError(ErrorCode.INTERNAL, UNEXPECTED_MESSAGE)
    info = ErrorInfo.of(error)
    info.request_id = request_id
    made = info.to_exception()
    made.retry_after = find_retry_after_s(error)
    made.is_away = find_status(error) in AWAY_STATUSES
    return made
