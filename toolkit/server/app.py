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
from toolkit.server import areas
from toolkit.server.bounds import Bounds
from toolkit.server.errors import install_errors
from toolkit.server.idempotency import Idempotency
from toolkit.server.middleware import Draining, RequestIds
from toolkit.server.openapi import document_of
from toolkit.server.origins import Origins
from toolkit.server.telemetry import Observed, RequestObserver
from toolkit.server.transfers import Downloads, Uploads


@cache
def area_routes() -> tuple[Route, ...]:
    """Collect the routes of all resources, which every app of a process shares.

    They find their engine by the request. FastAPI would make each of them once more for every app
    that includes a router, while its first request waits.
    """
    return tuple(
        route
        for module in pkgutil.iter_modules(areas.__path__)
        for route in import_module(f"{areas.__name__}.{module.name}").router.routes
        if isinstance(route, Route)
    )


@cache
def document() -> dict[str, Any]:
    """Build the OpenAPI document of every app; it is kept in `openapi.json` beside this."""
    return document_of(area_routes())


@cache
def _kept_document() -> bytes:
    return (files(__package__) / "openapi.json").read_bytes()


async def _answer_document(_request: Request) -> Response:
    return Response(_kept_document(), media_type="application/json")


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
        routes=[*area_routes(), Route("/openapi.json", _answer_document, methods=["GET"])],
    )
    app.state.engine = engine
    app.state.downloads = Downloads(engine)
    install_errors(app)
    app.add_middleware(Idempotency, engine=engine)
    app.add_middleware(Uploads, engine=engine)
    app.add_middleware(Draining, engine=engine)
    app.add_middleware(Bounds, engine=engine)
    app.add_middleware(Origins, engine=engine)
    if observer is not None:
        paths = [route.path for route in area_routes()]
        app.add_middleware(Observed, observer=observer, paths=paths)
    app.add_middleware(RequestIds)
    return app
