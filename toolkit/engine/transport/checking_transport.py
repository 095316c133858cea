"""The aiohttp transport that vendors are called over; slow to import."""

import os
import ssl
from collections.abc import AsyncIterator
from functools import lru_cache
from types import SimpleNamespace
from typing import cast

import aiohttp
import httpx
from httpx_aiohttp import AiohttpTransport
from httpx_aiohttp.transport import map_aiohttp_exceptions

from toolkit.engine.transport.send_check import SEND_CHECK, SendCheck

CHUNK_BYTES = 64 * 1024
# Vendors close a connection that is idle after a minute or more: one that is taken just then would
# be lost with a request on it, so ours end before.
KEEPALIVE_S = 30.0


class _PendingRequest:
    """A request about to be sent: its last check, and the error if that refused it."""

    def __init__(self, check: SendCheck, *, has_body: bool) -> None:
        self.check = check
        self.has_body = has_body
        self.refusal: Exception | None = None


class _ReplyStream(httpx.AsyncByteStream):
    """The body of an answer, as aiohttp reads it."""

    def __init__(self, reply: aiohttp.ClientResponse) -> None:
        self._reply = reply

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._reply.content.iter_chunked(CHUNK_BYTES):
                yield chunk
        except Exception:
            with map_aiohttp_exceptions():
                raise

    async def aclose(self) -> None:
        self._reply.release()
        await self._reply.wait_for_close()


class CheckingTransport(AiohttpTransport):
    """An aiohttp transport that runs the check of a request (`SEND_CHECK`) right before its bytes.

    To connect may take long, and a busy loop may run other tasks between that and the write.
    """

    def __init__(self) -> None:
        files = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
        super().__init__(verify=_load_ssl_context(*files))
        self._session: aiohttp.ClientSession | None = None

    def get_client(self) -> aiohttp.ClientSession:
        """Return the session that all requests share; it is opened by the first."""
        if self._session is None:
            tracing = aiohttp.TraceConfig()
            # Despite their names, both are called before what they are named by.
            tracing.on_request_headers_sent.append(_check_headers)
            tracing.on_request_chunk_sent.append(_check_body)
            connector = aiohttp.TCPConnector(
                limit=cast("int", self.limits.max_connections),
                keepalive_timeout=KEEPALIVE_S,
                ssl=self.ssl_context,
            )
            # A cookie of one account's call must not go with the next one's.
            jar = aiohttp.DummyCookieJar()
            self.client = self._session = aiohttp.ClientSession(
                connector=connector, cookie_jar=jar, trace_configs=[tracing], auto_decompress=False
            )
        return self._session

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request.

        Raises:
            LeaseLost: nothing was sent, as the work is another process's by now.
        """
        check = request.extensions.get(SEND_CHECK)
        body = _get_body(request)
        pending = None if check is None else _PendingRequest(check, has_body=body is not None)
        try:
            return await self._send(request, body, pending)
        except Exception:
            if pending is not None and pending.refusal is not None:
                raise pending.refusal from None
            with map_aiohttp_exceptions():
                raise

    async def _send(
        self,
        request: httpx.Request,
        body: bytes | httpx.AsyncByteStream | None,
        pending: _PendingRequest | None,
    ) -> httpx.Response:
        timeouts = request.extensions.get("timeout", {})
        reply = await self.get_client().request(
            request.method,
            str(request.url),
            headers=[(k.decode("latin-1"), v.decode("latin-1")) for k, v in request.headers.raw],
            data=body,
            allow_redirects=False,
            timeout=_make_timeout(
                timeouts.get("connect"), timeouts.get("read"), timeouts.get("pool")
            ),
            trace_request_ctx=pending,
        )
        return httpx.Response(
            reply.status,
            headers=list(reply.raw_headers),
            stream=_ReplyStream(reply),
            request=request,
        )

    async def aclose(self) -> None:
        """Close every connection."""
        if self._session is not None:
            await self._session.close()


@lru_cache(maxsize=4)
def _load_ssl_context(_file: str | None, _folder: str | None) -> ssl.SSLContext:
    """Load the certificates of authorities: once for all vendors, as that takes 20 ms.

    Args:
        _file: the variable `SSL_CERT_FILE`, which httpx reads; another value loads others.
        _folder: `SSL_CERT_DIR`, likewise.
    """
    return httpx.create_ssl_context()


@lru_cache(maxsize=64)
def _make_timeout(
    connect_s: float | None, read_s: float | None, pool_s: float | None
) -> aiohttp.ClientTimeout:
    """Make aiohttp's form of the timeouts of a request; the settings allow for few of them."""
    return aiohttp.ClientTimeout(
        total=None, sock_connect=connect_s, sock_read=read_s, connect=pool_s
    )


def _get_body(request: httpx.Request) -> bytes | httpx.AsyncByteStream | None:
    try:
        return request.content or None
    except httpx.RequestNotRead:  # it is made as it is sent, such as an upload
        request.headers.pop("transfer-encoding", None)  # aiohttp's own to say
        return cast("httpx.AsyncByteStream", request.stream)


async def _check_headers(
    session: aiohttp.ClientSession, context: SimpleNamespace, params: object
) -> None:
    pending: _PendingRequest | None = context.trace_request_ctx
    if pending is not None and not pending.has_body:  # a body is later, and sent with them
        await _check_body(session, context, params)


async def _check_body(
    _session: aiohttp.ClientSession, context: SimpleNamespace, _params: object
) -> None:
    pending: _PendingRequest | None = context.trace_request_ctx
    if pending is None:
        return
    try:
        await pending.check()
    except Exception as error:
        pending.refusal = error
        raise
