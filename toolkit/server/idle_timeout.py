"""uvicorn's protocol with timeouts: connections that are idle or send an endless head are cut."""

import asyncio
from typing import Any, cast

from toolkit.server.http400 import HTTP_PROTOCOL
from toolkit.server.joining_transport import JoiningTransport
from toolkit.settings import Settings

# One read of a server may hold the end of a head and much of a body.
MAX_READ_BYTES = 256 * 1024


def make_idle_timeout_protocol(settings: Settings) -> type[asyncio.Protocol]:
    """Make a subclass of uvicorn's protocol that limits the wait for a request and its head."""

    class Patient(HTTP_PROTOCOL):  # type: ignore[valid-type, misc]  # chosen at run time
        """One connection."""

        cycle: Any
        scope: Any
        headers: Any

        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            """Begin to wait for a request."""
            super().connection_made(JoiningTransport(cast("asyncio.Transport", transport)))
            self._last, self._head_bytes = self.cycle, 0
            self._wait(self.cycle)

        def data_received(self, data: bytes) -> None:
            """Take the bytes that came; too large a head ends the connection."""
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
            # With requests in a row, the scope is by now that of a later one.
            if cycle.response_complete and self.scope is cycle.scope:
                cycle.scope, self.scope, self.headers = {}, {}, []

        def connection_lost(self, exc: Exception | None) -> None:
            """Stop waiting."""
            self._waiting.cancel()
            super().connection_lost(exc)

        def _idle(self) -> bool:
            return self.cycle is None or self.cycle.response_complete

        def _wait(self, cycle: Any) -> None:
            """Check after a while whether a request came since the last one."""
            self._waiting = self.loop.call_later(settings.head_timeout_s, self._look, cycle)

        def _look(self, cycle: Any) -> None:
            if self.cycle is cycle and self._idle():
                self.transport.close()
            else:
                self._wait(self.cycle)

    return Patient
