"""Limits on a request before it is handled: its target, its headers, and how slow its body is."""

import asyncio

from starlette.types import Message, Receive, Scope

from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.settings import Settings

MIN_BYTES_PER_S = 16 * 1024


def check_head(scope: Scope, settings: Settings) -> None:
    """Refuse a target or headers that are too large, and more or fewer hosts than one.

    Raises:
        RequestError: `INVALID_REQUEST`.
    """
    headers = scope["headers"]
    hosts = size = 0
    for name, value in headers:
        size += len(name) + len(value)
        hosts += name == b"host"
    if hosts > 1 or (not hosts and scope["http_version"] != "1.0"):
        raise _make_error("Send one Host header.")
    target = scope.get("raw_path") or scope["path"].encode()
    if len(target) + len(scope["query_string"]) > settings.target_limit_bytes:
        raise _make_error(f"Send a path and query of at most {settings.target_limit_bytes} bytes.")
    if len(headers) > settings.max_headers:
        raise _make_error(f"Send at most {settings.max_headers} headers.")
    if size > settings.head_limit_bytes:
        raise _make_error(f"Send at most {settings.head_limit_bytes} bytes of headers.")


class TimedBody:
    """A body with a deadline, which is put off by a second for each so many bytes received.

    Attributes:
        is_late: whether it missed its deadline.
    """

    def __init__(self, receive: Receive, timeout_s: float) -> None:
        self._receive = receive
        self._until = asyncio.get_running_loop().time() + timeout_s
        self._complete = False
        self.is_late = False

    async def __call__(self) -> Message:
        """Receive the next part of it; after its end, any message, whenever it comes.

        Raises:
            RequestError: `INVALID_REQUEST` when it misses its deadline.
        """
        if self._complete:
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._until):
                message = await self._receive()
        except TimeoutError:
            self.is_late = True
            raise _make_error("The body did not come in time: send it faster.") from None
        self._complete = not message.get("more_body", False)
        self._until += len(message.get("body", b"")) / MIN_BYTES_PER_S
        return message


def _make_error(message: str) -> RequestError:
    return RequestError(ErrorCode.INVALID_REQUEST, message)
