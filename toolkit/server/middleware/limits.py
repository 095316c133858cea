"""Limits on a request before it is handled: its target, its headers, and how slow its body is."""

import asyncio

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolkit.contract.errors import ErrorCode, RequestError, ToolkitError
from toolkit.engine import Engine
from toolkit.server.errors import render_error

MIN_BYTES_PER_S = 16 * 1024


class LimitsMiddleware:
    """ASGI middleware that refuses targets and headers that are too large, and cuts slow bodies."""

    def __init__(self, app: ASGIApp, engine: Engine) -> None:
        self._app = app
        self._settings = engine.settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            self._check_head(scope)
        except ToolkitError as error:
            await render_error(error, scope["state"]["request_id"])(scope, receive, send)
            return
        if scope["method"] in ("GET", "HEAD"):
            await self._app(scope, receive, send)
            return
        body = _TimedBody(receive, self._settings.body_timeout_s)

        async def last(message: Message) -> None:
            if message["type"] == "http.response.start" and body.late:
                MutableHeaders(scope=message)["Connection"] = "close"
            await send(message)

        await self._app(scope, body, last)

    def _check_head(self, scope: Scope) -> None:
        """Refuse what is too large.

        Raises:
            RequestError: `INVALID_REQUEST`.
        """
        settings, headers = self._settings, scope["headers"]
        hosts = sum(name == b"host" for name, _ in headers)
        if hosts > 1 or (not hosts and scope["http_version"] != "1.0"):
            raise _make_error("Send one Host header.")
        target = scope.get("raw_path") or scope["path"].encode()
        if len(target) + len(scope["query_string"]) > settings.target_limit_bytes:
            raise _make_error(
                f"Send a path and query of at most {settings.target_limit_bytes} bytes."
            )
        if len(headers) > settings.max_headers:
            raise _make_error(f"Send at most {settings.max_headers} headers.")
        if sum(len(name) + len(value) for name, value in headers) > settings.head_limit_bytes:
            raise _make_error(f"Send at most {settings.head_limit_bytes} bytes of headers.")


class _TimedBody:
    """A body with a deadline, which is put off by a second for each so many bytes received.

    Attributes:
        late: whether it missed its deadline.
    """

    def __init__(self, receive: Receive, timeout_s: float) -> None:
        self._receive = receive
        self._until = asyncio.get_running_loop().time() + timeout_s
        self._complete = False
        self.late = False

    async def __call__(self) -> Message:
        """Receive the next part of it; after its end, any message, whenever it comes.

        Raises:
            RequestError: `INVALID_REQUEST` when it misses its deadline.
        """
        if self._complete:
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._until):
                message = await self._receive()
        except TimeoutError:
            self.late = True
            raise _make_error("The body did not come in time: send it faster.") from None
        self._complete = not message.get("more_body", False)
        self._until += len(message.get("body", b"")) / MIN_BYTES_PER_S
        return message


def _make_error(message: str) -> RequestError:
    return RequestError(ErrorCode.INVALID_REQUEST, message)
