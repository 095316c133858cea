"""The app: paths of the operations, errors, the frame and the OpenAPI document put together."""

import logging
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from itertools import groupby
from typing import Protocol

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.contract.operations.table import OPERATIONS
from toolkit.engine import Engine
from toolkit.server.http.endpoint import OperationResponder, PathEndpoint, render_wrong_method
from toolkit.server.http.errors import render_exception
from toolkit.server.middleware.frame import RequestFrame
from toolkit.server.middleware.telemetry import RequestObserver
from toolkit.server.paths import PathMatch, PathTable

log = logging.getLogger(__name__)
DOCUMENT_PATH = "/openapi.json"


class RequestEndpoint(Protocol):
    """Whatever answers the requests for a path."""

    async def respond(self, request: Request, /) -> Response:
        """Answer one request."""


class DocumentEndpoint:
    """The endpoint of the OpenAPI document."""

    async def respond(self, request: Request) -> Response:
        """Answer one request."""
        if request.method not in ("GET", "HEAD"):
            return render_wrong_method(request, ("GET",))
        return Response(_read_document(), media_type="application/json")


@cache
def _read_document() -> bytes:
    return (files(__package__) / "openapi.json").read_bytes()


def build_endpoints(engine: Engine) -> Mapping[str, RequestEndpoint]:
    """Build the endpoint of each path of the table, with all operations that it has."""
    responder = OperationResponder(engine)
    by_path = groupby(sorted(OPERATIONS, key=lambda one: one.path), key=lambda one: one.path)
    endpoints = {path: PathEndpoint(operations, responder) for path, operations in by_path}
    return {**endpoints, DOCUMENT_PATH: DocumentEndpoint()}


def create_app(
    engine: Engine, observer: RequestObserver | None = None, *, is_last_word: bool = False
) -> RequestFrame:
    """Create the ASGI app that serves `/v1` for an engine, on the engine's own loop.

    Args:
        engine: the engine that is served.
        observer: the observer of requests; none by default.
        is_last_word: answer also requests that are cancelled, which only a server does that ends.
    """
    return RequestFrame(
        answer_request,
        engine,
        PathTable(build_endpoints(engine)),
        observer,
        is_last_word=is_last_word,
    )


async def answer_request(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer one request by the endpoint of its path, as ASGI apps do.

    Raises:
        ValueError: for what is no HTTP request.
    """
    if scope["type"] != "http":
        raise ValueError(f"Only HTTP is served, not {scope['type']}.")
    match: PathMatch[RequestEndpoint] | None = scope["state"]["match"]
    request_id: str = scope["state"]["request_id"]
    try:
        if match is None:
            raise RequestError(ErrorCode.NOT_FOUND, "There is no such path.")
        response = await match.endpoint.respond(Request(scope, receive))
    except Exception as error:
        response = render_exception(error, request_id)
    try:
        await response(scope, receive, send)
    except Exception as error:
        # An answer that has begun cannot say so: whoever serves the app breaks the connection.
        log.error("%s failed", request_id, exc_info=error)
        raise
