"""The transport to a cloud in this process: answers arrive as the app sends them."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable
from typing import TYPE_CHECKING

import httpx

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message


class AppTransport(httpx.AsyncBaseTransport):
    """A transport to an ASGI app that passes on each part of an answer as the app sends it.

    The transport of httpx waits until an answer is complete. If the app fails, or ends without an
    answer, the caller sees a broken connection.

    Args:
        app: the app, run on the caller's event loop.
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
        exchange = _Exchange(await request.aread())
        exchange.begin(self._app(scope, exchange.receive, exchange.send))
        try:
            return await exchange.wait_for_head()
        except BaseException:
            await exchange.aclose()
            raise


class _Exchange(httpx.AsyncByteStream):
    """A request and its answer, whose body is read while the app makes it.

    Args:
        body: body of the request.
    """

    def __init__(self, body: bytes) -> None:
        self._body: bytes | None = body
        self._head: asyncio.Future[httpx.Response] = asyncio.get_running_loop().create_future()
        self._pieces: deque[bytes] = deque()
        self._is_complete = False
        self._changed = asyncio.Event()
        self._closed = asyncio.Event()
        self._task: asyncio.Future[None] | None = None

    def begin(self, answering: Awaitable[None]) -> None:
        """Start the task that answers the request."""
        self._task = asyncio.ensure_future(answering)
        self._task.add_done_callback(self._note_end)

    async def wait_for_head(self) -> httpx.Response:
        """Wait until the answer begins, and return it."""
        return await self._head

    async def receive(self) -> "Message":
        """Return the request's body to the app once, then wait until the answer is closed."""
        if self._body is None:
            await self._closed.wait()
            return {"type": "http.disconnect"}
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(self, message: "Message") -> None:
        """Take a part of the answer from the app."""
        if message["type"] == "http.response.start":
            headers = message.get("headers", [])
            if not self._head.done():  # the waiting caller may have been cancelled
                response = httpx.Response(message["status"], headers=headers, stream=self)
                self._head.set_result(response)
            return
        self._pieces.append(message.get("body", b""))
        self._is_complete = not message.get("more_body", False)
        self._changed.set()

    def _note_end(self, task: "asyncio.Future[None]") -> None:
        self._changed.set()
        if not self._head.done():
            fault = None if task.cancelled() else task.exception()
            self._head.set_exception(fault or httpx.ReadError("the app ended without an answer"))

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield the pieces of the body as they arrive.

        Raises:
            httpx.ReadError: the app failed in the middle of its answer.
        """
        while True:
            while self._pieces:
                yield self._pieces.popleft()
            if self._is_complete:
                return
            if self._task is not None and self._task.done():
                raise httpx.ReadError("the app failed in the middle of its answer")
            self._changed.clear()
            await self._changed.wait()

    async def aclose(self) -> None:
        """End the app's work, unless it is done."""
        self._closed.set()
        if self._task is not None and not self._task.done():
            if not self._is_complete:
                self._task.cancel()
            await asyncio.wait([self._task])
        if self._head.done() and not self._head.cancelled():
            self._head.exception()  # retrieved, as the waiting caller may have been cancelled
