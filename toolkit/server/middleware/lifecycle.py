"""Middleware around every request: an id for it, and no new work during shutdown."""

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.contract.ids import Prefix, new_id
from toolkit.engine import Engine
from toolkit.server.errors import render_error


class RequestIdMiddleware:
    """ASGI middleware that gives each request its `req_` id, which every response carries."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = new_id(Prefix.REQUEST)
        scope.setdefault("state", {})["request_id"] = request_id

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["X-Request-Id"] = request_id
                headers["X-Content-Type-Options"] = "nosniff"
            await send(message)

        await self._app(scope, receive, send_with_id)


class DrainingMiddleware:
    """ASGI middleware that refuses new work once the engine shuts down; reading goes on."""

    def __init__(self, app: ASGIApp, engine: Engine) -> None:
        self._app = app
        self._engine = engine

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "http" and scope["method"] == "POST" and self._engine.is_draining:
            error = make_draining_error()
            await render_error(error, scope["state"]["request_id"])(scope, receive, send)
            return
        await self._app(scope, receive, send)


def make_draining_error() -> ServiceError:
    """Make the error of new work that comes during shutdown."""
    return ServiceError(ErrorCode.UNAVAILABLE, "The service is stopping.")
