"""The HTTP transport that vendors are called over."""

from collections.abc import AsyncIterable, AsyncIterator
from typing import cast

import httpx

from toolkit.engine.transport.http_connection import (
    HttpConnection,
    HttpReply,
    RequestBody,
    RequestNotSentError,
)
from toolkit.engine.transport.http_connection_pool import HttpConnectionPool, Origin
from toolkit.engine.transport.send_check import SEND_CHECK
from toolkit.engine.transport.tls_sessions import load_tls_context
from toolkit.plugins import PUBLIC_ONLY

# Those that may be sent again where a kept connection turns out to be closed.
_REPEATABLE_METHODS = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PUT", "TRACE"})
_USUAL_HEADERS = (
    (b"accept", b"*/*"),
    (b"accept-encoding", b"gzip, deflate"),
    (b"user-agent", b"capability-toolkit"),
)


class NetworkTransport(httpx.AsyncBaseTransport):
    """A transport of HTTP/1.1 with kept connections, in a fifth of the CPU time of aiohttp's.

    The check of a request (`SEND_CHECK`) is run when it has a connection, right before its first
    byte: to connect may take long. A request that is marked `PUBLIC_ONLY` is sent to a global
    address or not at all: a host name in a vendor's answer must not lead into the internal network.
    Of the timeouts in a request's extensions, it is the one to connect that is kept here.
    """

    def __init__(self) -> None:
        self._pool = HttpConnectionPool()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request, and wait for the head of its answer.

        Raises:
            LeaseLost: nothing was sent, as the work is another process's by now.
            ProviderError: `PROVIDER_BAD_RESPONSE` for a link that leads to no global address.
            httpx.TransportError: it could not be sent, or was not answered.
        """
        origin = Origin.of(request.url, is_public=bool(request.extensions.get(PUBLIC_ONLY)))
        while True:
            connection = await self._pool.acquire(origin, _get_connect_timeout(request))
            was_kept = connection.exchanges > 0
            try:
                reply = await _send(request, connection)
            except RequestNotSentError:
                self._pool.release(origin, connection)
                if not was_kept:
                    raise httpx.ConnectError(f"{origin.host} closed the connection") from None
            except httpx.ReadError:
                connection.abort()
                self._pool.release(origin, connection)
                if not was_kept or request.method not in _REPEATABLE_METHODS:
                    raise
            except BaseException:
                connection.abort()
                self._pool.release(origin, connection)
                raise
            else:
                stream = _ReplyStream(self._pool, origin, connection, reply)
                return httpx.Response(
                    reply.status, headers=reply.headers, stream=stream, request=request
                )

    def open_ahead(self, url: httpx.URL, connect_s: float | None) -> None:
        """Begin to connect to where a request is about to be sent."""
        self._pool.open_ahead(Origin.of(url), connect_s)

    async def aclose(self) -> None:
        """Close every connection."""
        await self._pool.aclose()


class _ReplyStream(httpx.AsyncByteStream):
    """The body of an answer; its end gives the connection back."""

    def __init__(
        self,
        pool: HttpConnectionPool,
        origin: Origin,
        connection: HttpConnection,
        reply: HttpReply,
    ) -> None:
        self._pool, self._origin = pool, origin
        self._connection: HttpConnection | None = connection
        self._reply = reply

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._reply.iter_chunks()

    async def aclose(self) -> None:
        connection, self._connection = self._connection, None
        if connection is None:
            return
        if connection.exchanges == 1 and connection.tls is not None:
            load_tls_context().keep_session(connection.tls)
        connection.finish_reply(self._reply)
        self._pool.release(self._origin, connection)


async def _send(request: httpx.Request, connection: HttpConnection) -> HttpReply:
    head, body = _encode_request(request)
    check = request.extensions.get(SEND_CHECK)
    if check is not None:
        await check()
    return await connection.send_request(head, body, is_head=request.method == "HEAD")


def _get_connect_timeout(request: httpx.Request) -> float | None:
    return cast("float | None", request.extensions.get("timeout", {}).get("connect"))


def _encode_request(request: httpx.Request) -> tuple[bytes, RequestBody]:
    """Encode a request's first line and headers, and its body as its headers tell.

    Raises:
        httpx.LocalProtocolError: a line break or a null would make other lines of them.
    """
    given = request.headers.raw
    names = {name.lower() for name, _ in given}
    lines = [
        b"%b %b HTTP/1.1" % (request.method.encode(), request.url.raw_path),
        *[b"%b: %b" % header for header in given],
        *[b"%b: %b" % header for header in _USUAL_HEADERS if header[0] not in names],
    ]
    head = b"\r\n".join(lines)
    breaks = len(lines) - 1
    if head.count(b"\n") != breaks or head.count(b"\r") != breaks or b"\0" in head:
        raise httpx.LocalProtocolError("A line break or a null in a header.")
    try:
        body: RequestBody = request.content
    except httpx.RequestNotRead:  # it is made as it is sent, such as an upload
        stream = cast("AsyncIterable[bytes]", request.stream)
        body = _frame_chunks(stream) if b"transfer-encoding" in names else stream
    return head + b"\r\n\r\n", body


async def _frame_chunks(stream: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    async for chunk in stream:
        if chunk:
            yield b"%x\r\n%b\r\n" % (len(chunk), chunk)
    yield b"0\r\n\r\n"
