"""The aiohttp transport with a last check before a request is sent; slow to import."""

from contextvars import ContextVar
from types import SimpleNamespace
from typing import cast

import aiohttp
import httpx
from httpx_aiohttp import AiohttpTransport

from toolkit.engine.transport.driver import SEND_CHECK, SendCheck


class _PendingRequest:
    """A request about to be sent: its last check, and the error if that refused it."""

    def __init__(self, check: SendCheck) -> None:
        self.check = check
        self.refusal: Exception | None = None


_pending_request: ContextVar[_PendingRequest | None] = ContextVar("sending", default=None)


class CheckingTransport(AiohttpTransport):
    """An aiohttp transport that runs the check of a request (`SEND_CHECK`) right before its bytes.

    To connect may take long, and a busy loop may run other tasks between that and the write.
    """

    def get_client(self) -> aiohttp.ClientSession:
        """Open the session that all requests share."""
        tracing = aiohttp.TraceConfig()
        tracing.on_request_headers_sent.append(
            _check_pending
        )  # despite the name, called before either
        tracing.on_request_chunk_sent.append(_check_pending)
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
        check = request.extensions.get(SEND_CHECK)
        if check is None:
            return await super().handle_async_request(request)
        sending = _PendingRequest(check)
        token = _pending_request.set(sending)
        try:
            return await super().handle_async_request(request)
        except Exception:
            if sending.refusal is not None:
                raise sending.refusal from None
            raise
        finally:
            _pending_request.reset(token)


async def _check_pending(
    _session: aiohttp.ClientSession, _context: SimpleNamespace, _params: object
) -> None:
    sending = _pending_request.get()
    if sending is None:
        return
    try:
        await sending.check()
    except Exception as error:
        sending.refusal = error
        raise
