"""HTTP connections to vendors' hosts, opened ahead of their use and kept for the next."""

import asyncio
import socket
import time
from collections import deque
from collections.abc import Sequence
from functools import partial
from ipaddress import ip_address
from typing import NamedTuple, cast

import httpx
from aiohappyeyeballs import AddrInfoType, start_connection

from toolkit.contract.errors import ErrorCode
from toolkit.engine.concurrency.shared_calls import SharedCalls
from toolkit.engine.transport.http_connection import HttpConnection
from toolkit.engine.transport.tls_sessions import load_tls_context
from toolkit.plugins import ProviderError

MAX_IN_USE = 100
# Vendors close a connection that is idle after a minute or more: one that is taken just then would
# be lost with a request on it, so ours end before.
KEEPALIVE_S = 30.0
# How long the first address of a host may take until the next one is tried beside it (RFC 8305).
NEXT_ADDRESS_S = 0.25
CLOSE_TIMEOUT_S = 1.0


class Origin(NamedTuple):
    """The other end of a connection.

    Attributes:
        is_public: whether it must have a global address.
    """

    scheme: str
    host: str
    port: int
    is_public: bool = False

    @classmethod
    def of(cls, url: httpx.URL, *, is_public: bool = False) -> "Origin":
        """Return where a request to a URL goes."""
        return cls(url.scheme, url.host, url.port or _get_usual_port(url.scheme), is_public)


class _IdleConnection(NamedTuple):
    """A connection that waits for its next request, and since when by the monotonic clock."""

    connection: HttpConnection
    since: float


class HttpConnectionPool:
    """The connections of one transport: at most `MAX_IN_USE` carry a request at once.

    An idle one is kept for `KEEPALIVE_S`. The one used last is used first, so that others end.
    """

    def __init__(self) -> None:
        self._in_use = asyncio.Semaphore(MAX_IN_USE)
        self._idle: dict[Origin, list[_IdleConnection]] = {}
        self._opening: dict[Origin, deque[asyncio.Task[HttpConnection]]] = {}
        self._opened: set[HttpConnection] = set()
        self._look_ups: SharedCalls[Origin, Sequence[AddrInfoType]] = SharedCalls()
        self._expiry: asyncio.TimerHandle | None = None
        self._is_closed = False

    async def acquire(self, origin: Origin, connect_s: float | None) -> HttpConnection:
        """Take a connection that is kept, or that is being opened, or else open one.

        Args:
            origin: where it leads to.
            connect_s: how long it may take to open one.

        Raises:
            httpx.ConnectError: it could not be opened.
            httpx.ConnectTimeout: not in time.
            ProviderError: `PROVIDER_BAD_RESPONSE` for a link that leads to no global address.
        """
        await self._in_use.acquire()
        try:
            connection = self._take_idle(origin)
            if connection is not None:
                return connection
            if self._opening.get(origin):
                return await self._claim(origin, self._opening[origin].popleft())
            return await self._open(origin, connect_s)
        except BaseException:
            self._in_use.release()
            raise

    def release(self, origin: Origin, connection: HttpConnection) -> None:
        """Give a connection back, to be kept if another request may be sent on it."""
        self._in_use.release()
        if connection.is_open and connection.is_reusable:
            self._keep(origin, connection)

    def open_ahead(self, origin: Origin, connect_s: float | None) -> None:
        """Begin to open a connection, unless one is there: a request is about to be sent on it."""
        if self._idle.get(origin) or self._is_closed:
            return
        opening = self._opening.setdefault(origin, deque())
        if len(opening) < MAX_IN_USE:
            task = asyncio.create_task(self._open(origin, connect_s))
            opening.append(task)
            task.add_done_callback(partial(self._keep_unclaimed, origin))

    async def aclose(self) -> None:
        """Close all connections."""
        self._is_closed = True
        if self._expiry is not None:
            self._expiry.cancel()
        tasks = [task for opening in self._opening.values() for task in opening]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        opened = list(self._opened)
        for connection in opened:
            connection.close()
        if opened:
            closing = [connection.closed for connection in opened]
            await asyncio.wait(closing, timeout=CLOSE_TIMEOUT_S)
        for connection in opened:
            connection.abort()
        self._idle.clear()

    def _take_idle(self, origin: Origin) -> HttpConnection | None:
        idle = self._idle.get(origin)
        while idle:
            connection, since = idle.pop()
            if connection.is_open and time.monotonic() - since < KEEPALIVE_S:
                return connection
            connection.close()
        return None

    def _keep(self, origin: Origin, connection: HttpConnection) -> None:
        if self._is_closed:
            connection.close()
            return
        kept = _IdleConnection(connection, time.monotonic())
        self._idle.setdefault(origin, []).append(kept)
        if self._expiry is None:
            loop = asyncio.get_running_loop()
            self._expiry = loop.call_later(KEEPALIVE_S, self._close_expired)

    def _close_expired(self) -> None:
        """Close those that have been idle for long, and look again while any are left."""
        self._expiry = None
        expired = time.monotonic() - KEEPALIVE_S
        idle, self._idle = self._idle, {}
        for origin, connections in idle.items():
            for kept in connections:
                if kept.since <= expired:
                    kept.connection.close()
                elif kept.connection.is_open:
                    self._idle.setdefault(origin, []).append(kept)
        if self._idle:
            loop = asyncio.get_running_loop()
            self._expiry = loop.call_later(KEEPALIVE_S, self._close_expired)

    async def _claim(self, origin: Origin, opening: asyncio.Task[HttpConnection]) -> HttpConnection:
        """Wait for a connection that is being opened; without who waits, it is kept."""
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            self._opening.setdefault(origin, deque()).append(opening)
            if opening.done():
                self._keep_unclaimed(origin, opening)
            raise

    def _keep_unclaimed(self, origin: Origin, done: asyncio.Task[HttpConnection]) -> None:
        """Keep a connection that was opened ahead, if nobody waits for it."""
        opening = self._opening.get(origin, ())
        if done in opening:
            self._opening[origin].remove(done)
            if not done.cancelled() and done.exception() is None:
                self._keep(origin, done.result())
        if not opening:
            self._opening.pop(origin, None)

    async def _open(self, origin: Origin, connect_s: float | None) -> HttpConnection:
        try:
            async with asyncio.timeout(connect_s):
                connection = await self._connect(origin)
        except TimeoutError:
            raise httpx.ConnectTimeout(f"{origin.host} did not answer in time") from None
        except OSError as error:  # TLS's are of this class, too
            raise httpx.ConnectError(f"{origin.host}: {type(error).__name__}") from error
        self._opened.add(connection)
        connection.closed.add_done_callback(lambda _: self._opened.discard(connection))
        return connection

    async def _connect(self, origin: Origin) -> HttpConnection:
        loop = asyncio.get_running_loop()
        addresses = await self._look_ups.share(origin, _find_addresses(origin))
        opened = await start_connection(
            list(addresses), happy_eyeballs_delay=NEXT_ADDRESS_S, interleave=1
        )
        is_tls = origin.scheme == "https"
        try:
            _, connection = await loop.create_connection(
                HttpConnection,
                sock=opened,
                ssl=load_tls_context() if is_tls else None,
                server_hostname=origin.host if is_tls else None,
            )
        except BaseException:
            opened.close()
            raise
        return connection


async def _find_addresses(origin: Origin) -> Sequence[AddrInfoType]:
    """Look a host up.

    Those that are checked are those that are connected to: between two look-ups a host may move.

    Raises:
        httpx.ConnectError: it has no address.
        ProviderError: `PROVIDER_BAD_RESPONSE` for an address inside, where a global one is asked.
    """
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(origin.host, origin.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise httpx.ConnectError(f"{origin.host} has no address") from None
    if origin.is_public and not all(ip_address(str(one[4][0])).is_global for one in found):
        raise ProviderError(
            ErrorCode.PROVIDER_BAD_RESPONSE,
            f"{origin.host} is at an address that results are not fetched from.",
            retryable=False,
        )
    return cast("Sequence[AddrInfoType]", found)


def _get_usual_port(scheme: str) -> int:
    return 443 if scheme == "https" else 80
