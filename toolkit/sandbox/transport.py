"""The transport to a cloud in this process: answers arrive as the app sends them."""

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import httpx

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Scope


class AppTransport(httpx.AsyncBaseTransport):
    """A transport to an ASGI app that passes on each part of an answer as the app sends it.

    The transport of httpx waits until an answer is complete. If the app fails, or ends without an
    answer, the caller sees a broken connection.
    """

    def __init__(self, app: "ASGIApp") -> None:
        self._app = app

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Have the app answer a request.

        Raises:
            httpx.ReadError: the app failed before it began to answer.
        """
        url = request.url
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": request.method,
            "headers": [(name.lower(), value) for name, value in request.headers.raw],
            "scheme": url.scheme,
            "path": url.path,
            "raw_path": url.raw_path.partition(b"?")[0],
            "query_string": url.query,
            "server": (url.host, url.port),
            "client": ("127.0.0.1", 123),
            "root_path": "",
        }
        exchange = _Exchange(self._app, scope, await request.aread())
        try:
            return await exchange.wait_for_head()
        except BaseException:
            await exchange.aclose()
            raise


class _Exchange(httpx.AsyncByteStream):
    """A request and its answer, whose body is read while the app makes it."""

    def __init__(self, app: "ASGIApp", scope: "Scope", body: bytes) -> None:
        self._body: bytes | None = body
        # The parts of the answer; None when the app has ended.
        self._parts: asyncio.Queue[Message | None] = asyncio.Queue()
        self._closed = asyncio.Event()
        self._is_complete = False
        self._task = asyncio.ensure_future(app(scope, self._receive, self._send))
        self._task.add_done_callback(lambda _: self._parts.put_nowait(None))

    async def wait_for_head(self) -> httpx.Response:
        """Wait until the answer begins, and return it."""
        head = await self._parts.get()
        if head is None:
            fault = None if self._task.cancelled() else self._task.exception()
            raise fault or httpx.ReadError("the app ended without an answer")
        return httpx.Response(head["status"], headers=head.get("headers", []), stream=self)

    async def _receive(self) -> "Message":
        """Return the request's body to the app once, then wait until the answer is closed."""
        if self._body is None:
            await self._closed.wait()
            return {"type": "http.disconnect"}
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}

    async def _send(self, part: "Message") -> None:
        is_body = part["type"] == "http.response.body"
        self._is_complete = is_body and not part.get("more_body", False)
        self._parts.put_nowait(part)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield the pieces of the body as they arrive.

        Raises:
            httpx.ReadError: the app failed in the middle of its answer.
        """
        while (part := await self._parts.get()) is not None:
            yield part.get("body", b"")
            if not part.get("more_body", False):
                return
        raise httpx.ReadError("the app failed in the middle of its answer")

    async def aclose(self) -> None:
        """End the app's work, unless it is done."""
        self._closed.set()
        if not self._task.done():
            if not self._is_complete:
                self._task.cancel()
            await asyncio.wait([self._task])
        if not self._task.cancelled():
            self._task.exception()  # retrieved, as nobody may have waited for it
