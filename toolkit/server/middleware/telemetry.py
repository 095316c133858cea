"""Telemetry of the server: observers are told of one exchange of request and response at a time."""

import re
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

UNKNOWN_ROUTE = "unknown"
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
STREAM_MEDIA_TYPE = "text/event-stream"
_FAILED_STATUS = 500
_ERROR_CODE = re.compile(rb'\{"error":\{"code":"([A-Z_]{1,64})"')
_BEARER_KEY = re.compile(r"bearer sk_live_[\w-]{16,}([\w-]{4})", re.I | re.A)


@dataclass(slots=True, eq=False)
class HttpExchange:
    """A request and its response, as far as observers may know: no bodies, queries or keys.

    Attributes:
        method: the method where it is one of HTTP's, else `OTHER`.
        route: the path template of its route, `unknown` for a path without one.
        status: the status of the response; 0 until it begins.
        bytes_out: the bytes of the response's body.
        streaming: whether the response is a stream of events.
        error_code: the code of a response that is an error.
        peer: the address that the request came from, which may be a proxy's.
        key_last4: the end of a key that was refused, as lists of keys show it.
        account_id, key_id: the caller's, once they are known.
        traceparent, tracestate: the trace that the caller says it is part of.
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


class PathTemplates:
    """The served paths, matched by request: not every request reaches its route.

    >>> PathTemplates(["/v1/runs", "/v1/runs/{id}"]).match("/v1/runs/run_01")
    '/v1/runs/{id}'
    """

    def __init__(self, paths: Iterable[str]) -> None:
        self._literal: set[str] = set()
        self._templated: dict[int, list[tuple[str, list[str]]]] = {}
        for path in paths:
            parts = path.split("/")
            if "{" in path:
                self._templated.setdefault(len(parts), []).append((path, parts))
            else:
                self._literal.add(path)

    def match(self, path: str) -> str:
        """Return the template of a path; `unknown` for one that is not served."""
        if path in self._literal:
            return path
        asked = path.split("/")
        for template, parts in self._templated.get(len(asked), ()):
            if all(p == a or (a and p[:1] == "{") for p, a in zip(parts, asked, strict=True)):
                return template
        return UNKNOWN_ROUTE


class TelemetryMiddleware:
    """ASGI middleware that has an observer watch every exchange."""

    def __init__(self, app: ASGIApp, observer: RequestObserver, paths: Iterable[str]) -> None:
        self._app = app
        self._observer = observer
        self._templates = PathTemplates([*paths, "/openapi.json"])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        exchange = self._begin_exchange(scope)

        async def count_and_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                exchange.status = message["status"]
                kind = Headers(raw=message["headers"]).get("content-type", "")
                exchange.streaming = kind.startswith(STREAM_MEDIA_TYPE)
            else:
                if exchange.status >= 400 and not exchange.bytes_out:
                    exchange.error_code = _find_error_code(message.get("body", b""))
                exchange.bytes_out += len(message.get("body", b""))
            await send(message)

        with self._observer.request(exchange):
            try:
                await self._app(scope, receive, count_and_send)
            finally:
                # An exception is answered further out, as our own fault.
                exchange.status = exchange.status or _FAILED_STATUS
                exchange.streaming = False
                caller = scope["state"].get("caller")
                if caller is not None:
                    exchange.account_id, exchange.key_id = caller.account_id, caller.key_id

    def _begin_exchange(self, scope: Scope) -> HttpExchange:
        headers = Headers(scope=scope)
        peer = scope.get("client")
        return HttpExchange(
            peer=peer[0] if peer else None,
            key_last4=_extract_last4(headers.get("authorization", "")),
            request_id=scope["state"]["request_id"],
            method=scope["method"] if scope["method"] in METHODS else "OTHER",
            route=self._templates.match(scope["path"]),
            traceparent=headers.get("traceparent"),
            tracestate=headers.get("tracestate"),
        )


def _find_error_code(body: bytes) -> str | None:
    """Return the error code that a body in our envelope begins with."""
    found = _ERROR_CODE.match(body)
    return found[1].decode() if found else None


def _extract_last4(authorization: str) -> str | None:
    """Return the last characters of a key of ours; none for anything else."""
    found = _BEARER_KEY.fullmatch(authorization.strip())
    return found[1] if found else None
