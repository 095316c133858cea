"""uvicorn's protocol with this server's timeouts, and with errors in its envelope.

Connections that are idle or send an endless head are cut.
"""

import asyncio
import logging
from typing import Any, cast

from uvicorn.protocols.http.auto import AutoHTTPProtocol

from toolkit.contract.errors import Detail, ErrorCode, RequestError
from toolkit.contract.ids import Prefix, new_id
from toolkit.server.http.responses import render_error
from toolkit.settings import Settings

log = logging.getLogger(__name__)
# One read of a server may hold the end of a head and much of a body.
MAX_READ_BYTES = 256 * 1024


class JoiningTransport:
    """A transport that holds a response's head until its body is written, or the loop's next turn.

    uvicorn writes them one after the other. Two packets would cost two system calls, and wake the
    caller twice.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._head = b""

    def write(self, data: "bytes | bytearray | memoryview[Any]") -> None:
        """Write bytes after the held bytes; a head alone is held itself."""
        if self._head:
            head, self._head = self._head, b""
            self._transport.writelines((head, data))
        elif isinstance(data, bytes) and data[:7] == b"HTTP/1." and data[-4:] == b"\r\n\r\n":
            self._head = data
            self._loop.call_soon(self._flush)  # the body may take long to come
        else:
            self._transport.write(data)

    def _flush(self) -> None:
        if self._head:
            head, self._head = self._head, b""
            self._transport.write(head)

    def close(self) -> None:
        """Close the connection once all is written."""
        self._flush()
        self._transport.close()

    # uvicorn uses no other method of a transport that writes.
    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class _Http400Protocol:
    """A protocol mixin that rejects unparsable bytes in JSON; no app is called."""

    transport: asyncio.Transport

    def send_400_response(self, msg: str) -> None:
        """Reject the request, and close the connection."""
        request_id = new_id(Prefix.REQUEST)
        log.info("%s: %s", request_id, msg)
        error = RequestError(
            ErrorCode.INVALID_REQUEST,
            "The request is not valid HTTP.",
            details=[Detail("", "its lines cannot be read")],
        )
        headers = {"X-Request-Id": request_id, "Connection": "close"}
        response = render_error(error, request_id, headers=headers)
        head = b"".join(b"%s: %s\r\n" % pair for pair in response.raw_headers)
        self.transport.write(b"HTTP/1.1 400 Bad Request\r\n" + head + b"\r\n" + response.body)
        self.transport.close()


# uvicorn has two protocols, by the installed packages; both answer by this method.
HTTP_PROTOCOL: type[asyncio.Protocol] = type("Protocol", (_Http400Protocol, AutoHTTPProtocol), {})


def make_idle_timeout_protocol(settings: Settings) -> type[asyncio.Protocol]:
    """Make a subclass of uvicorn's protocol that limits the wait for a request and its head."""

    class Patient(HTTP_PROTOCOL):  # type: ignore[valid-type, misc]  # chosen at run time
        """The protocol of one connection."""

        cycle: Any
        scope: Any
        headers: Any

        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            """Start to wait for a request."""
            super().connection_made(JoiningTransport(cast("asyncio.Transport", transport)))
            self._last, self._head_bytes = self.cycle, 0
            self._wait(self.cycle)

        def data_received(self, data: bytes) -> None:
            """Process the received bytes; too large a head ends the connection."""
            if self.cycle is not self._last:
                self._last, self._head_bytes = self.cycle, 0
            if self._idle() and not (self.cycle and self.cycle.more_body):
                self._head_bytes += len(data)
            if self._head_bytes > settings.head_limit_bytes + MAX_READ_BYTES:
                self.transport.close()
                return
            super().data_received(data)

        def on_response_complete(self) -> None:
            """Forget the request that was answered: the connection may be idle for long."""
            super().on_response_complete()
            cycle = self.cycle
            # With pipelined requests, the scope is by now a later request's.
            if cycle.response_complete and self.scope is cycle.scope:
                cycle.scope, self.scope, self.headers = {}, {}, []

        def connection_lost(self, exc: Exception | None) -> None:
            """Stop waiting."""
            self._waiting.cancel()
            super().connection_lost(exc)

        def _idle(self) -> bool:
            return self.cycle is None or self.cycle.response_complete

        def _wait(self, cycle: Any) -> None:
            """Close the connection after `head_timeout_s` unless another request comes."""
            self._waiting = self.loop.call_later(settings.head_timeout_s, self._look, cycle)

        def _look(self, cycle: Any) -> None:
            if self.cycle is cycle and self._idle():
                self.transport.close()
            else:
                self._wait(self.cycle)

    return Patient
