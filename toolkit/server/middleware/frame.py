"""The frame around every request: the common steps, in one pass and not in layers."""

import asyncio

from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolkit.contract.errors import ErrorCode, RequestError, ServiceError, ToolkitError
from toolkit.contract.ids import Prefix, new_id
from toolkit.engine import Engine
from toolkit.server.http.responses import render_error
from toolkit.server.middleware.telemetry import (
    UNKNOWN_ROUTE,
    HttpExchange,
    RequestObserver,
    begin_exchange,
    end_exchange,
    record_message,
)
from toolkit.server.operations import check_accepting
from toolkit.server.paths import PathTable
from toolkit.settings import Settings

MIN_BYTES_PER_S = 16 * 1024  # of a body, once its first deadline is over
_NOSNIFF = (b"x-content-type-options", b"nosniff")
_CLOSE = (b"connection", b"close")
_ALLOWED_HEADERS = ("Authorization", "Content-Type", "Idempotency-Key", "Last-Event-ID", "Prefer")
_EXPOSED_HEADERS = (
    "Idempotency-Replayed", "Preference-Applied", "RateLimit-Policy", "Retry-After", "X-Request-Id",
)  # fmt: skip
_CUT_OFF = (
    "The service stopped before it answered, and may have done the work: retry, with the same"
    " `Idempotency-Key` if the request had one."
)


class RequestFrame:
    """ASGI middleware with the steps that every request needs.

    It gives the request its `req_` id, which every response carries, and has an observer watch it.
    It admits browsers from the origins that the operator names. It rejects heads that are too large
    and, during shutdown, new work, and cuts bodies that are too slow.

    Args:
        app: app that answers; its scope has the id and the path's match in `state`.
        engine: the engine that is served.
        table: the paths that are served.
        observer: the observer of requests, if there is one.
        is_last_word: also answer cancelled requests, as a stopping server does; if the caller
            cancelled, nobody would read the answer.
    """

    def __init__(
        self,
        app: ASGIApp,
        engine: Engine,
        table: PathTable[object],
        observer: RequestObserver | None,
        *,
        is_last_word: bool,
    ) -> None:
        self._app = app
        self._engine = engine
        self._settings = engine.settings
        self._table = table
        self._observer = observer
        self._is_last_word = is_last_word
        self._origins = {origin.encode() for origin in engine.settings.cors_origins}
        # Web pages of exact origins get the headers that they need, without cookies.
        self._cors_app = CORSMiddleware(
            self._answer,
            allow_origins=sorted(engine.settings.cors_origins),
            allow_methods=("GET", "POST", "DELETE"),
            allow_headers=_ALLOWED_HEADERS,
            expose_headers=_EXPOSED_HEADERS,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, and have the observer record it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = new_id(Prefix.REQUEST)
        match = self._table.find(scope["path"].removeprefix(scope.get("root_path", "")))
        scope.setdefault("state", {}).update(request_id=request_id, match=match)
        app = self._cors_app if self._has_allowed_origin(scope) else self._answer
        if self._observer is None:
            await app(scope, receive, _ResponseSender(send, scope, None))
            return
        exchange = begin_exchange(scope, request_id, match.template if match else UNKNOWN_ROUTE)
        with self._observer.request(exchange):
            try:
                await app(scope, receive, _ResponseSender(send, scope, exchange))
            finally:
                end_exchange(exchange, scope)

    def _has_allowed_origin(self, scope: Scope) -> bool:
        """Check whether a web page with an allowed origin asks."""
        if not self._origins:
            return False
        origins = (value for name, value in scope["headers"] if name == b"origin")
        return next(origins, b"") in self._origins

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Reject a request, or have it answered."""
        method = scope["method"]
        try:
            check_head(scope, self._settings)
            check_accepting(self._engine, method)
        except ToolkitError as error:
            await render_error(error, scope["state"]["request_id"])(scope, receive, send)
            return
        if method not in ("GET", "HEAD"):
            receive = scope["state"]["body"] = TimedBody(receive, self._settings.body_timeout_s)
        try:
            await self._app(scope, receive, send)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or not self._is_last_word or scope["state"].get("is_answered"):
                raise
            task.uncancel()
            cut_off = ServiceError(ErrorCode.UNAVAILABLE, _CUT_OFF)
            response = render_error(cut_off, scope["state"]["request_id"])
            await response(scope, receive, send)


class _ResponseSender:
    """Sends the parts of a response, with the headers of every response."""

    __slots__ = ("_exchange", "_has_body", "_send", "_state")

    def __init__(self, send: Send, scope: Scope, exchange: HttpExchange | None) -> None:
        self._send = send
        self._state = scope["state"]
        self._has_body = scope["method"] != "HEAD"
        self._exchange = exchange

    async def __call__(self, message: Message) -> None:
        """Send one part of a response: its headers get the request's id, and HEAD gets no body."""
        if message["type"] == "http.response.start":
            self._state["is_answered"] = True
            request_id = self._state["request_id"].encode()
            headers = [*message["headers"], (b"x-request-id", request_id), _NOSNIFF]
            body: TimedBody | None = self._state.get("body")
            if body is not None and body.is_late:
                headers.append(_CLOSE)
            message["headers"] = headers
        if self._exchange is not None:
            record_message(self._exchange, message)
        if not self._has_body and message.get("body"):
            message = {**message, "body": b""}
        await self._send(message)


def check_head(scope: Scope, settings: Settings) -> None:
    """Reject a target or headers that are too large, and more or fewer hosts than one.

    Raises:
        RequestError: `INVALID_REQUEST`.
    """
    headers = scope["headers"]
    hosts = size = 0
    for name, value in headers:
        size += len(name) + len(value)
        hosts += name == b"host"
    if hosts > 1 or (not hosts and scope["http_version"] != "1.0"):
        raise _make_error("Send one Host header.")
    target = scope.get("raw_path") or scope["path"].encode()
    if len(target) + len(scope["query_string"]) > settings.target_limit_bytes:
        raise _make_error(f"Send a path and query of at most {settings.target_limit_bytes} bytes.")
    if len(headers) > settings.max_headers:
        raise _make_error(f"Send at most {settings.max_headers} headers.")
    if size > settings.head_limit_bytes:
        raise _make_error(f"Send at most {settings.head_limit_bytes} bytes of headers.")


class TimedBody:
    """A body whose deadline moves by a second with each MIN_BYTES_PER_S bytes received.

    Attributes:
        is_late: whether it missed its deadline.
    """

    def __init__(self, receive: Receive, timeout_s: float) -> None:
        self._receive = receive
        self._until = asyncio.get_running_loop().time() + timeout_s
        self._complete = False
        self.is_late = False

    async def __call__(self) -> Message:
        """Receive the next part of the body; after its end, any message, whenever it comes.

        Raises:
            RequestError: `INVALID_REQUEST` if it misses its deadline.
        """
        if self._complete:
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._until):
                message = await self._receive()
        except TimeoutError:
            self.is_late = True
            raise _make_error("The body did not arrive in time: send it faster.") from None
        self._complete = not message.get("more_body", False)
        self._until += len(message.get("body", b"")) / MIN_BYTES_PER_S
        return message


def _make_error(message: str) -> RequestError:
    return RequestError(ErrorCode.INVALID_REQUEST, message)
