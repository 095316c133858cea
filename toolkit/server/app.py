"""The app: paths of the operations, errors, the frame and the OpenAPI document put together."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import cache, partial
from importlib.resources import files
from typing import TypeAlias

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.engine import Engine
from toolkit.server.http.endpoint import OperationResponder
from toolkit.server.http.responses import render_error, render_exception
from toolkit.server.middleware.frame import RequestFrame
from toolkit.server.middleware.telemetry import RequestObserver
from toolkit.server.operations import OPERATIONS_BY_PATH
from toolkit.server.paths import PathMatch, PathTable

log = logging.getLogger(__name__)
# The functions that answer the requests for one path, by method.
Endpoint: TypeAlias = Mapping[str, Callable[[Request], Awaitable[Response]]]


async def respond_document(_request: Request) -> Response:
    """Answer with the OpenAPI document."""
    return Response(_read_document(), media_type="application/json")


@cache
def _read_document() -> bytes:
    return (files(__package__) / "openapi.json").read_bytes()


def create_app(
    engine: Engine, observer: RequestObserver | None = None, *, is_last_word: bool = False
) -> RequestFrame:
    """Create the ASGI app that serves `/v1` for an engine, on the engine's own loop.

    Args:
        engine: the engine that is served.
        observer: observer of requests; None by default.
        is_last_word: also answer cancelled requests, which only a stopping server does.
    """
    respond = OperationResponder(engine).respond
    endpoints: dict[str, Endpoint] = {
        path: {method: partial(respond, operation) for method, operation in operations.items()}
        for path, operations in OPERATIONS_BY_PATH.items()
    }
    endpoints["/openapi.json"] = {"GET": respond_document}
    return RequestFrame(
        answer_request, engine, PathTable(endpoints), observer, is_last_word=is_last_word
    )


async def answer_request(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer one request by the endpoint of its path, as ASGI apps do.

    Raises:
        ValueError: if the scope is no HTTP request.
    """
    if scope["type"] != "http":
        raise ValueError(f"Only HTTP is served, not {scope['type']}.")
    match: PathMatch[Endpoint] | None = scope["state"]["match"]
    request_id: str = scope["state"]["request_id"]
    try:
        if match is None:
            raise RequestError(ErrorCode.NOT_FOUND, "There is no such path.")
        response = await _respond(match.endpoint, Request(scope, receive))
    except Exception as error:
        response = render_exception(error, request_id)
    try:
        await response(scope, receive, send)
    except Exception as error:
        # A response that has begun cannot report it: the app's server breaks the connection.
        log.error("%s failed", request_id, exc_info=error)
        raise


async def _respond(endpoint: Endpoint, request: Request) -> Response:
    """Answer a request by its method; of `HEAD` the frame leaves out the body."""
    method = request.method
    if method == "HEAD" and "GET" in endpoint:
        method = "GET"
    if method in endpoint:
        return await endpoint[method](request)
    allowed = ", ".join([*endpoint, *(["HEAD"] if "GET" in endpoint else [])])
    error = RequestError(ErrorCode.METHOD_NOT_ALLOWED)
    return render_error(error, request.state.request_id, headers={"Allow": allowed})
