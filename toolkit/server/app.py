"""The app: resources, errors, middleware and the OpenAPI document put together."""

import pkgutil
from functools import cache
from importlib import import_module
from importlib.resources import files
from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from toolkit.engine import Engine
from toolkit.server import resources
from toolkit.server.errors import install_errors
from toolkit.server.middleware.cors import ExactOriginMiddleware
from toolkit.server.middleware.idempotency import IdempotencyMiddleware
from toolkit.server.middleware.lifecycle import DrainingMiddleware, RequestIdMiddleware
from toolkit.server.middleware.limits import LimitsMiddleware
from toolkit.server.middleware.telemetry import RequestObserver, TelemetryMiddleware
from toolkit.server.middleware.transfers import DownloadReader, UploadMiddleware
from toolkit.server.openapi.document import build_document


@cache
def collect_routes() -> tuple[Route, ...]:
    """Collect the routes of all resources, which every app of a process shares.

    They find their engine by the request. FastAPI would make each of them once more for every app
    that includes a router, while its first request waits.
    """
    return tuple(
        route
        for module in pkgutil.iter_modules(resources.__path__)
        for route in import_module(f"{resources.__name__}.{module.name}").router.routes
        if isinstance(route, Route)
    )


@cache
def build_openapi() -> dict[str, Any]:
    """Build the OpenAPI document of every app; it is kept in `openapi.json` beside this."""
    return build_document(collect_routes())


@cache
def _read_document() -> bytes:
    return (files(__package__) / "openapi.json").read_bytes()


async def _serve_document(_request: Request) -> Response:
    return Response(_read_document(), media_type="application/json")


def create_app(engine: Engine, observer: RequestObserver | None = None) -> FastAPI:
    """Create the ASGI app that serves `/v1` for an engine, on the engine's own loop.

    Args:
        engine: the engine that is served.
        observer: the observer of requests; none by default.
    """
    app = FastAPI(
        # The pages for people load scripts from elsewhere; the document itself is enough.
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        # FastAPI would build it again in each process, at the first request for it.
        openapi_url=None,
        routes=[*collect_routes(), Route("/openapi.json", _serve_document, methods=["GET"])],
    )
    app.state.engine = engine
    app.state.downloads = DownloadReader(engine)
    install_errors(app)
    app.add_middleware(IdempotencyMiddleware, engine=engine)
    app.add_middleware(UploadMiddleware, engine=engine)
    app.add_middleware(DrainingMiddleware, engine=engine)
    app.add_middleware(LimitsMiddleware, engine=engine)
    app.add_middleware(ExactOriginMiddleware, engine=engine)
    if observer is not None:
        paths = [route.path for route in collect_routes()]
        app.add_middleware(TelemetryMiddleware, observer=observer, paths=paths)
    app.add_middleware(RequestIdMiddleware)
    return app
