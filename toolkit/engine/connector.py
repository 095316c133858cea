"""The aiohttp transport with a last check before a request is sent; slow to import."""

from contextvars import ContextVar
from types import SimpleNamespace
from typing import cast

import aiohttp
import httpx
from httpx_aiohttp import AiohttpTransport

from toolkit.engine.driver import CHECK, Check


class _Sending:
    """A request about to be sent: its last check, and the error if that refused it."""

    def __init__(self, check: Check) -> None:
        self.check = check
        self.refused: Exception | None = None


_sending: ContextVar[_Sending | None] = ContextVar("sending", default=None)


class CheckingTransport(AiohttpTransport):
    """An aiohttp transport that runs the check of a request (`CHECK`) right before its bytes.

    To connect may take long, and a busy loop may run other tasks between that and the write.
    """

    def get_client(self) -> aiohttp.ClientSession:
        """Open the session that all requests share."""
        tracing = aiohttp.TraceConfig()
        tracing.on_request_headers_sent.append(_check)  # despite the name, called before either
        tracing.on_request_chunk_sent.append(_check)
        connector = aiohttp.TCPConnector(
            limit=cast("int", self.limits.max_connections),
            keepalive_timeout=self.limits.keepalive_expiry,
            ssl=self.ssl_context,
        )
        return aiohttp.ClientSession(connector=connector, trace_configs=[tracing])

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request.

        Raises:
            LeaseLost: nothing was sent, as the work is another process's by now.
        """
        check = request.extensions.get(CHECK)
        if check is None:
            return await super().handle_async_request(request)
        sending = _Sending(check)
        token = _sending.set(sending)
        try:
            return await super().handle_async_request(request)
        except Exception:
            if sending.refused is not None:
                raise sending.refused from None
            raise
        finally:
            _sending.reset(token)


async def _check(
    _session: aiohttp.ClientSession, _context: SimpleNamespace, _params: object
) -> None:
    sending = _sending.get()
    if sending is None:
        return
    try:
        await sending.check()
    except Exception as error:
        sending.refused = error
        raise
