"""Operations over HTTP: a request is read, carried out and answered as the table says."""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.contract.operations.definitions import ApiOperation
from toolkit.contract.operations.queries import OperationQuery, PageQuery
from toolkit.engine import Engine
from toolkit.engine.request_context import RequestContext
from toolkit.server.calls import ApiCall
from toolkit.server.handlers import count_records, dispatch, hold
from toolkit.server.http.auth import note_caller, read_bearer
from toolkit.server.http.body import check_media_type, read_bytes
from toolkit.server.http.downloads import DownloadReader
from toolkit.server.http.envelope import render_page, render_resource
from toolkit.server.http.errors import render_error
from toolkit.server.http.events import respond_events
from toolkit.server.http.idempotency import IdempotentResponder, make_claim, read_idempotency_key
from toolkit.server.http.preferences import (
    MAX_WAIT_S,
    parse_preferred_wait,
    prefers_text_stream,
)
from toolkit.server.http.uploads import UploadReader
from toolkit.server.load_shedding import LoadShedder
from toolkit.server.operations import admit, make_call
from toolkit.store import Content, FileSection


class OperationResponder:
    """Answers requests for operations: the one way from HTTP to a handler and back.

    Args:
        engine: the engine that is served.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._idempotent = IdempotentResponder(engine)
        self._uploads = UploadReader(engine)
        self._downloads = DownloadReader(engine)
        self._shedder = LoadShedder(engine.settings.max_admitting)

    async def respond(self, operation: ApiOperation[Any, Any], request: Request) -> Response:
        """Answer one request.

        Raises:
            RequestError: for a request that is refused.
            ServiceError: where it cannot be answered now.
        """
        bearer = read_bearer(request) if operation.scope is not None else ""
        parameters = request.query_params.multi_items()
        context, query = await admit(
            self._engine, operation, bearer, parameters, partial(note_caller, request)
        )
        key = read_idempotency_key(request.headers) if operation.method == "POST" else None
        if not operation.replays:
            key = None  # one that is no key was refused all the same
        if operation.uploads:
            async with self._uploads.receive(request, context) as file:
                return await self._answer_once(operation, request, context, query, file, key)
        body = await self._receive_body(operation, request, is_compared=key is not None)
        return await self._answer_once(operation, request, context, query, body, key)

    async def _receive_body(
        self, operation: ApiOperation[Any, Any], request: Request, *, is_compared: bool
    ) -> bytes:
        """Receive the body, as it was sent, if it is read: be it only to compare requests by it."""
        if operation.body is not None and not operation.may_omit_body:
            check_media_type(request)
        body = b""
        if operation.body is not None or is_compared:
            body = await read_bytes(request, self._engine.settings.body_limit_bytes)
        if operation.may_omit_body:
            if body:
                check_media_type(request)
            body = body or b"{}"
        return body

    async def _answer_once(
        self,
        operation: ApiOperation[Any, Any],
        request: Request,
        context: RequestContext,
        query: OperationQuery | None,
        body: Content,
        key: str | None,
    ) -> Response:
        """Answer a request, once for each of its idempotency keys."""
        if key is None:
            return await self._answer(operation, request, context, query, body)
        claim = await make_claim(request, context, key, operation.status, body)
        claiming = replace(context, claim=claim)
        return await self._idempotent.respond(
            claim, lambda: self._answer(operation, request, claiming, query, body)
        )

    async def _answer(
        self,
        operation: ApiOperation[Any, Any],
        request: Request,
        context: RequestContext,
        query: OperationQuery | None,
        body: Content,
    ) -> Response:
        """Have the operation carried out, and render what comes of it."""
        if operation.holds and operation.method == "POST":
            if prefers_text_stream(request):
                context = replace(context, watches_text=True)
            with self._shedder.take_place(context.account_id):
                call = await self._make_call(operation, request, context, query, body)
                accepted = await dispatch(call)
            return await self._answer_held(request, call, accepted.id, accepted)
        call = await self._make_call(operation, request, context, query, body)
        if operation.form == "events":
            return await respond_events(request, call)
        if operation.holds:
            return await self._answer_held(request, call, call.id)
        result = await dispatch(call)
        if operation.form == "bytes":
            return await self._downloads.respond(request, context, result)
        if operation.form == "page":
            paged = query if isinstance(query, PageQuery) else None
            total = await count_records(call, result)
            return await render_page(result, operation.status, paged, total)
        return render_resource(result, operation.status)

    async def _make_call(
        self,
        operation: ApiOperation[Any, Any],
        request: Request,
        context: RequestContext,
        query: OperationQuery | None,
        body: Content,
    ) -> ApiCall[Any]:
        resource_id: str = request.state.match.id
        address = request.client.host if request.client else ""
        if isinstance(body, FileSection):
            upload = await self._uploads.parse(request, body, context)
            return ApiCall(operation, self._engine, context, upload, resource_id, address)
        return await make_call(
            self._engine, operation, context, query, bytes(body), resource_id, address
        )

    async def _answer_held(
        self, request: Request, call: ApiCall[Any], work_id: str, accepted: Any = None
    ) -> Response:
        """Answer with work: at once, or held as `Prefer: wait` asks for it.

        Args:
            request: the request.
            call: the call of the operation.
            work_id: the id of the work.
            accepted: its record, if it was accepted just now.
        """
        status, seconds = call.operation.status, parse_preferred_wait(request, MAX_WAIT_S)
        applied = ["stream"] if call.context.watches_text else []
        if seconds is not None:
            work = await hold(call, work_id, seconds)
            applied.insert(0, f"wait={seconds}")
        else:
            work = accepted or await dispatch(call)
        headers = {"Preference-Applied": ", ".join(applied)} if applied else {}
        return render_resource(work, status, headers)


class PathEndpoint:
    """The endpoint of one path: finds the operation by the method.

    Args:
        operations: those that have this path.
        responder: what answers them.
    """

    def __init__(
        self, operations: Iterable[ApiOperation[Any, Any]], responder: OperationResponder
    ) -> None:
        self._operations: dict[str, ApiOperation[Any, Any]] = {
            one.method: one for one in operations
        }
        self._responder = responder

    async def respond(self, request: Request) -> Response:
        """Answer one request.

        Raises:
            RequestError: for a request that is refused.
            ServiceError: where it cannot be answered now.
        """
        operation = self._operations.get(request.method)
        if operation is None and request.method == "HEAD":
            operation = self._operations.get("GET")  # the frame leaves out the body
        if operation is not None:
            return await self._responder.respond(operation, request)
        return render_wrong_method(request, self._operations)


def render_wrong_method(request: Request, allowed: Iterable[str]) -> Response:
    """Render the refusal of a method that a path does not have."""
    error = RequestError(ErrorCode.METHOD_NOT_ALLOWED)
    methods = list(allowed)
    headers = {"Allow": ", ".join(methods + ["HEAD"] * ("GET" in methods))}
    return render_error(error, request.state.request_id, headers=headers)
