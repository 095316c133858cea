"""The app: routes of the operations, errors, middleware and the OpenAPI document put together."""

from functools import cache
from importlib.resources import files
from itertools import groupby

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from toolkit.contract.operations.table import OPERATIONS
from toolkit.engine import Engine
from toolkit.server.errors import install_errors
from toolkit.server.http.endpoint import OperationResponder, PathEndpoint
from toolkit.server.middleware.cors import ExactOriginMiddleware
from toolkit.server.middleware.lifecycle import DrainingMiddleware, RequestIdMiddleware
from toolkit.server.middleware.limits import LimitsMiddleware
from toolkit.server.middleware.telemetry import RequestObserver, TelemetryMiddleware


@cache
def _read_document() -> bytes:
    return (files(__package__) / "openapi.json").read_bytes()


async def _serve_document(_request: Request) -> Response:
    return Response(_read_document(), media_type="application/json")


def _build_routes(engine: Engine) -> list[Route]:
    """Build a route for each path of the table, with all operations that it has."""
    responder = OperationResponder(engine)
    by_path = groupby(sorted(OPERATIONS, key=lambda one: one.path), key=lambda one: one.path)
    return [Route(path, PathEndpoint(operations, responder)) for path, operations in by_path]


def create_app(engine: Engine, observer: RequestObserver | None = None) -> Starlette:
    """Create the ASGI app that serves `/v1` for an engine, on the engine's own loop.

    Args:
        engine: the engine that is served.
        observer: the observer of requests; none by default.
    """
    document = Route("/openapi.json", _serve_document, methods=["GET"])
    app = Starlette(routes=[*_build_routes(engine), document])
    app.router.redirect_slashes = False
    install_errors(app)
    app.add_middleware(DrainingMiddleware, engine=engine)
    app.add_middleware(LimitsMiddleware, engine=engine)
    app.add_middleware(ExactOriginMiddleware, engine=engine)
    if observer is not None:
        paths = {operation.path for operation in OPERATIONS}
        app.add_middleware(TelemetryMiddleware, observer=observer, paths=paths)
    app.add_middleware(RequestIdMiddleware)
    return app
