"""The aiohttp transport that vendors are called over; slow to import."""

import os
import socket
import ssl
from collections.abc import AsyncIterable, AsyncIterator
from contextlib import suppress
from contextvars import ContextVar
from functools import lru_cache
from ipaddress import ip_address
from typing import TYPE_CHECKING, TypeAlias, cast

import aiohttp
import httpx
from aiohttp.abc import AbstractStreamWriter, ResolveResult
from httpx_aiohttp import AiohttpTransport
from httpx_aiohttp.transport import AiohttpResponseStream, map_aiohttp_exceptions
from yarl import URL

from toolkit.contract.errors import ErrorCode
from toolkit.engine.transport.decoding import CODING
from toolkit.engine.transport.send_check import SEND_CHECK, SendCheck
from toolkit.plugins import PUBLIC_ONLY, ProviderError
from toolkit.plugins.streaming import STREAM_READER

if TYPE_CHECKING:
    from aiohttp.connector import Connection

_Body: TypeAlias = bytes | aiohttp.BytesPayload | AsyncIterable[bytes] | None
# Vendors close a connection that is idle after a minute or more: one that is taken just then would
# be lost with a request on it, so ours end before.
KEEPALIVE_S = 30.0


class _PendingRequest:
    """A request about to be sent: its last check, and the error if that refused it."""

    def __init__(self, check: SendCheck) -> None:
        self._check = check
        self.refusal: Exception | None = None

    async def run_check(self) -> None:
        """Run the check; keep its error, because aiohttp wraps it."""
        try:
            await self._check()
        except Exception as error:
            self.refusal = error
            raise


# The request without a body that the running task sends.
_BODILESS: ContextVar[_PendingRequest | None] = ContextVar("bodiless", default=None)


class _CheckedRequest(aiohttp.ClientRequest):
    """A request that runs its check once it has a connection, if it has no body that runs it."""

    async def send(self, conn: "Connection") -> aiohttp.ClientResponse:
        pending = _BODILESS.get()
        if pending is not None:
            await pending.run_check()
        return await super().send(conn)


class _CheckedBody(aiohttp.BytesPayload):
    """A body that is checked before it is written; the headers go out with it."""

    def __init__(self, body: bytes, pending: _PendingRequest) -> None:
        super().__init__(body)
        self._pending = pending

    async def write_with_length(
        self, writer: AbstractStreamWriter, content_length: int | None
    ) -> None:
        await self._pending.run_check()
        await super().write_with_length(writer, content_length)


class _ReplyStream(AiohttpResponseStream):
    """The body of an answer, in larger pieces, so that fewer must be unpacked."""

    CHUNK_SIZE = 64 * 1024


class CheckingTransport(AiohttpTransport):
    """An aiohttp transport that runs the check of a request (`SEND_CHECK`) right before its bytes.

    To connect may take long, and a busy loop may run other tasks between that and the write.
    """

    def __init__(self) -> None:
        self._tls = _load_tls_context(
            os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
        )
        super().__init__(verify=self._tls)
        # Sessions by whether they connect to global addresses alone.
        self._sessions: dict[bool, aiohttp.ClientSession] = {}

    def get_client(self, *, is_public: bool = False) -> aiohttp.ClientSession:
        """Return the session that requests share; it is opened by the first.

        Args:
            is_public: whether it connects to global addresses alone.
        """
        session = self._sessions.get(is_public)
        if session is None:
            connector = aiohttp.TCPConnector(
                limit=cast("int", self.limits.max_connections),
                keepalive_timeout=KEEPALIVE_S,
                ssl=self._tls,
                resolver=_PublicResolver() if is_public else None,
            )
            # A cookie of one account's call must not go with the next account's call.
            jar = aiohttp.DummyCookieJar()
            session = self._sessions[is_public] = aiohttp.ClientSession(
                connector=connector,
                cookie_jar=jar,
                request_class=_CheckedRequest,
                headers={"Accept-Encoding": CODING},
                auto_decompress=False,
            )
        return session

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request, after its check if it has one, and return the head of the answer.

        Raises:
            LeaseLost: nothing was sent, because another process has taken over the work.
        """
        check = request.extensions.get(SEND_CHECK)
        pending = None if check is None else _PendingRequest(check)
        body = _get_body(request, pending)
        token = _BODILESS.set(pending if body is None else None)
        try:
            return await self._send(request, body)
        except Exception:
            if pending is not None and pending.refusal is not None:
                raise pending.refusal from None
            with map_aiohttp_exceptions():
                raise
        finally:
            _BODILESS.reset(token)

    async def _send(self, request: httpx.Request, body: _Body) -> httpx.Response:
        is_public = bool(request.extensions.get(PUBLIC_ONLY))
        if is_public:
            _check_literal(request.url.host)
        reply = await self.get_client(is_public=is_public).request(
            request.method,
            _convert_url(request.url),
            headers=[(k.decode("latin-1"), v.decode("latin-1")) for k, v in request.headers.raw],
            data=body,
            allow_redirects=False,
            timeout=_make_timeout(request.extensions.get("timeout", {}).get("connect")),
        )
        headers, length = list(reply.raw_headers), reply.content_length
        if (
            length is not None
            and length <= _ReplyStream.CHUNK_SIZE
            and "Content-Encoding" not in reply.headers
            and STREAM_READER not in request.extensions
        ):
            # To read a short body as a stream takes longer than the rest of this function.
            body = await reply.read()
            return httpx.Response(reply.status, headers=headers, content=body, request=request)
        return httpx.Response(
            reply.status, headers=headers, stream=_ReplyStream(reply), request=request
        )

    async def aclose(self) -> None:
        """Close every connection."""
        for session in self._sessions.values():
            await session.close()


@lru_cache(maxsize=4)
def _load_tls_context(*_environment: str | None) -> ssl.SSLContext:
    """Load the certificates of authorities: once for all vendors, because that takes 20 ms.

    Args:
        _environment: the variables by which httpx finds certificates to trust.
    """
    context = httpx.create_ssl_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


class _PublicResolver(aiohttp.ThreadedResolver):
    """A resolver that returns only global addresses, so that only checked addresses are used."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Find the addresses of a host.

        Raises:
            ProviderError: `PROVIDER_BAD_RESPONSE` if an address is not global.
        """
        addresses = await super().resolve(host, port, family)
        for address in addresses:
            _check_global(host, address["host"])
        return addresses


def _convert_url(url: httpx.URL) -> URL:
    """Return a URL as aiohttp takes it, spelled as it is.

    By default yarl spells it anew (`%3A` becomes `:`), but a signature covers the spelling.
    """
    return URL(str(url), encoded=True)


def _check_literal(host: str) -> None:
    """Check a host that is an IP address itself, which nothing resolves.

    Raises:
        ProviderError: `PROVIDER_BAD_RESPONSE` if it is not global.
    """
    with suppress(ValueError):
        _check_global(host, str(ip_address(host)))


def _check_global(host: str, address: str) -> None:
    if not ip_address(address).is_global:
        raise ProviderError(
            ErrorCode.PROVIDER_BAD_RESPONSE,
            f"{host} has an address that is not public: results are fetched only from public"
            " addresses.",
            retryable=False,
        )


@lru_cache(maxsize=64)
def _make_timeout(connect_s: float | None) -> aiohttp.ClientTimeout:
    """Make aiohttp's form of the connect timeout; the driver enforces the other timeouts."""
    return aiohttp.ClientTimeout(total=None, sock_connect=connect_s)


def _get_body(request: httpx.Request, pending: _PendingRequest | None) -> _Body:
    """Return the body of a request, checked as it is sent, or None if it has no body."""
    try:
        body = request.content
    except httpx.RequestNotRead:  # it is made as it is sent, such as an upload
        request.headers.pop("transfer-encoding", None)  # aiohttp sets it
        stream = cast("httpx.AsyncByteStream", request.stream)
        return stream if pending is None else _check_first(stream, pending)
    if not body:
        return None
    return body if pending is None else _CheckedBody(body, pending)


async def _check_first(
    stream: httpx.AsyncByteStream, pending: _PendingRequest
) -> AsyncIterator[bytes]:
    await pending.run_check()
    async for chunk in stream:
        yield chunk
