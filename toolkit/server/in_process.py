"""Operations for callers in the same process: what HTTP does around them, without any HTTP.

A request and its answer are values here. Everything that decides, from keys and scopes to limits
and the errors of bodies and queries, is what the endpoints of HTTP call as well.
"""

import logging
import re
import time
from dataclasses import replace
from typing import Any

from pydantic import BaseModel

from toolkit.contract.base import ErrorInfo
from toolkit.contract.errors import (
    AWAY_STATUSES,
    ErrorCode,
    RequestError,
    ServiceError,
    ToolkitError,
)
from toolkit.contract.ids import Prefix, new_id
from toolkit.contract.operations.definitions import ApiOperation
from toolkit.contract.operations.messages import OperationAnswer, OperationRequest
from toolkit.contract.operations.queries import PageQuery
from toolkit.contract.operations.table import OPERATIONS
from toolkit.engine import Engine
from toolkit.server.auth import authenticate_key
from toolkit.server.calls import ANONYMOUS, ApiCall, check_scope
from toolkit.server.errors import (
    UNEXPECTED_MESSAGE,
    find_retry_after_s,
    find_status,
    make_draining_error,
)
from toolkit.server.handlers import dispatch
from toolkit.server.http.body import parse_body
from toolkit.server.http.envelope import find_next_cursor
from toolkit.server.http.paths import PathTable
from toolkit.server.http.query import parse_parameters

log = logging.getLogger(__name__)
LOOPBACK = "127.0.0.1"
# Whatever else a path may hold is left to HTTP, which has rules for it.
_PLAIN_PATH = re.compile(r"(?:/[\w.@:-]+){1,8}", re.ASCII)


def _tabulate_operations() -> PathTable[dict[str, ApiOperation[Any, Any]]]:
    found: dict[str, dict[str, ApiOperation[Any, Any]]] = {}
    for operation in OPERATIONS:
        found.setdefault(operation.path, {})[operation.method] = operation
    return PathTable(found)


_PATHS = _tabulate_operations()  # the operations of each path, by method


def takes_path(method: str, path: str) -> bool:
    """Tell whether an operation can be called without HTTP: bytes and unknown paths cannot."""
    match = _PATHS.find(f"/v1{path}") if _PLAIN_PATH.fullmatch(path) else None
    operation = None if match is None else match.endpoint.get(method)
    return operation is not None and not operation.uploads and operation.form != "bytes"


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

    async def _answer(self, request: OperationRequest) -> OperationAnswer:
        call = await self._make_call(request)
        if not request.needs_events:
            began = time.monotonic()
            run = await self._engine.runs.wait_for_end(call.context, call.id, call.input.wait_s)
            if run is not None:
                return OperationAnswer([], work=dump_record(run))
            left_s = max(0.0, call.input.wait_s - (time.monotonic() - began))
            call = replace(call, input=replace(call.input, wait_s=left_s))
        result = await dispatch(call)
        if call.operation.form == "record":
            return OperationAnswer([dump_record(result)])
        work = None
        if request.is_last is not None and (not result or request.is_last(result)):
            reading, _ = _find_operation("GET", request.path.removesuffix("/events"))
            work = dump_record(await dispatch(replace(call, operation=reading)))
        query = call.input if isinstance(call.input, PageQuery) else None
        records = [dump_record(one) for one in result]
        return OperationAnswer(records, find_next_cursor(result, query), work)

    async def _make_call(self, request: OperationRequest) -> ApiCall[Any]:
        """Make the call that a request asks for, in the order in which HTTP refuses requests.

        Raises:
            RequestError: for a request that is refused.
            ServiceError: where it cannot be answered now.
        """
        engine = self._engine
        if request.method == "POST" and engine.is_draining:
            raise make_draining_error()
        operation, id = _find_operation(request.method, request.path)
        context = ANONYMOUS
        if operation.scope is not None:
            context = await authenticate_key(engine, request.key)
            check_scope(context, operation.scope)
        given = [(name, str(value)) for name, value in request.query.items()]
        taken: object = parse_parameters(given, operation)
        if operation.body is not None:
            body = request.body or (b"{}" if operation.may_omit_body else b"")
            if len(body) > engine.settings.body_limit_bytes:
                raise RequestError(ErrorCode.PAYLOAD_TOO_LARGE)
            taken = await parse_body(body, operation.body, engine, context.account_id or None)
        return ApiCall(operation, engine, context, taken, id=id, address=LOOPBACK)


def dump_record(record: BaseModel) -> bytes:
    """Write a record as the envelope of HTTP has it."""
    return record.model_dump_json(by_alias=True).encode()


def _find_operation(method: str, path: str) -> tuple[ApiOperation[Any, Any], str]:
    """Find an operation, and the id in its path.

    Raises:
        RequestError: `NOT_FOUND`.
    """
    match = _PATHS.find(f"/v1{path}")
    if match is None or method not in match.endpoint:
        raise RequestError(ErrorCode.NOT_FOUND, "There is no such path.")
    return match.endpoint[method], match.id


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
