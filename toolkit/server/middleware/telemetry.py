"""Telemetry of the server: observers see one exchange of request and response at a time."""

import re
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from starlette.types import Message, Scope

UNKNOWN_ROUTE = "unknown"
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
STREAM_MEDIA_TYPE = "text/event-stream"
_FAILED_STATUS = 500
_OBSERVED_HEADERS = frozenset({b"authorization", b"traceparent", b"tracestate"})
_ERROR_CODE = re.compile(rb'\{"error":\{"code":"([A-Z_]{1,64})"')
_BEARER_KEY = re.compile(r"bearer sk_live_[\w-]{16,}([\w-]{4})", re.I | re.A)


@dataclass(slots=True, eq=False)
class HttpExchange:
    """The parts of a request and its response that observers may see: no bodies, queries or keys.

    Attributes:
        method: HTTP method, or `OTHER` if it is not a standard method.
        route: the path template of its route, `unknown` for a path without one.
        status: the status of the response; 0 until it begins.
        bytes_out: the bytes of the response's body.
        streaming: whether the response is a stream of events.
        error_code: the code of a response that is an error.
        peer: address of the sender, which may be a proxy.
        key_last4: last characters of a rejected key, as lists of keys show them.
        account_id, key_id: ids of the caller, once known.
        traceparent, tracestate: caller's trace context.
    """

    request_id: str
    method: str
    route: str
    traceparent: str | None = None
    tracestate: str | None = None
    status: int = 0
    bytes_out: int = 0
    streaming: bool = False
    error_code: str | None = None
    peer: str | None = None
    key_last4: str | None = None
    account_id: str | None = None
    key_id: str | None = None


class RequestObserver(Protocol):
    """An observer of a server; it must neither wait nor raise."""

    def request(self, exchange: HttpExchange) -> AbstractContextManager[object]:
        """Enter a context around one exchange, up to the last byte of the response."""
        ...


def begin_exchange(scope: Scope, request_id: str, route: str) -> HttpExchange:
    """Make the exchange of a request that has just arrived.

    Args:
        route: path template of its route, or `UNKNOWN_ROUTE`.
    """
    headers = {name: value for name, value in scope["headers"] if name in _OBSERVED_HEADERS}
    peer = scope.get("client")
    return HttpExchange(
        peer=peer[0] if peer else None,
        key_last4=_extract_last4(headers.get(b"authorization", b"").decode("latin-1")),
        request_id=request_id,
        method=scope["method"] if scope["method"] in METHODS else "OTHER",
        route=route,
        traceparent=_decode(headers.get(b"traceparent")),
        tracestate=_decode(headers.get(b"tracestate")),
    )


def record_message(exchange: HttpExchange, message: Message) -> None:
    """Record a part of the response, as it is sent."""
    if message["type"] == "http.response.start":
        exchange.status = message["status"]
        kind = dict(message["headers"]).get(b"content-type", b"")
        exchange.streaming = kind.startswith(STREAM_MEDIA_TYPE.encode())
        return
    body = message.get("body", b"")
    if exchange.status >= 400 and not exchange.bytes_out:
        exchange.error_code = _find_error_code(body)
    if exchange.method != "HEAD":  # its body is left out
        exchange.bytes_out += len(body)


def end_exchange(exchange: HttpExchange, scope: Scope) -> None:
    """Record the end of a request with its account; a request without an answer failed."""
    exchange.status = exchange.status or _FAILED_STATUS
    exchange.streaming = False
    caller = scope["state"].get("caller")
    if caller is not None:
        exchange.account_id, exchange.key_id = caller.account_id, caller.key_id


def _decode(value: bytes | None) -> str | None:
    return None if value is None else value.decode("latin-1")


def _find_error_code(body: bytes) -> str | None:
    match = _ERROR_CODE.match(body)
    return match[1].decode() if match else None


def _extract_last4(authorization: str) -> str | None:
    """Return the last characters of a toolkit key, or None for any other text."""
    match = _BEARER_KEY.fullmatch(authorization.strip())
    return match[1] if match else None
