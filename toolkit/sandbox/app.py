"""The ASGI app: a mount for each vendor's wire, and the controls that tests use."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import cached_property, partial

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route, Router
from starlette.types import Receive, Scope, Send

from toolkit.sandbox.faults import Fault, Faults, describe_error
from toolkit.sandbox.json_http import RefusalError, read_json_object
from toolkit.sandbox.middleware import VendorMiddleware
from toolkit.sandbox.state import SandboxState
from toolkit.sandbox.vendor_paths import VENDOR_PATHS, CompatibleVendor
from toolkit.sandbox.wires import BATCHES, COMPATIBLE_BATCHES, load_wire


def build_app(
    seed: int, latency_ms: float, faults: Faults | None, compatible: Sequence[CompatibleVendor] = ()
) -> Starlette:
    """Build the app, with empty records."""
    state = SandboxState(seed, latency_ms, faults, compatible)

    def build_routes(wire: str) -> list[BaseRoute]:
        routes: list[BaseRoute] = load_wire(wire).build_routes(state)
        if wire in BATCHES:  # first, because other routes accept any action of a model
            routes = [*load_wire(BATCHES[wire]).build_routes(state), *routes]
        return routes

    def build_compatible_routes(vendor: CompatibleVendor) -> list[BaseRoute]:
        routes: list[BaseRoute] = load_wire("openai").build_compatible_routes(vendor)
        if vendor.id in COMPATIBLE_BATCHES:
            routes += load_wire(COMPATIBLE_BATCHES[vendor.id]).build_routes(state, vendor)
        return routes

    mounts = [
        Mount(path, _LazyRouter(partial(build_routes, wire))) for wire, path in VENDOR_PATHS.items()
    ]
    mounts += [
        Mount(vendor.path, _LazyRouter(partial(build_compatible_routes, vendor)))
        for vendor in compatible
    ]
    app = Starlette(
        routes=[Mount("/_sandbox", routes=_build_control_routes(state)), *mounts],
        middleware=[Middleware(VendorMiddleware, state=state)],
        exception_handlers={HTTPException: _handle_http_error, RefusalError: _handle_refusal},
    )
    app.state.sandbox = state
    return app


class _LazyRouter:
    """A router whose routes are built at its first request, because most clouds serve few wires."""

    def __init__(self, build_routes: Callable[[], list[BaseRoute]]) -> None:
        self._build_routes = build_routes

    @cached_property
    def _router(self) -> Router:
        return Router(self._build_routes())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request by the route of its path."""
        await self._router(scope, receive, send)


async def _handle_http_error(request: Request, exc: Exception) -> Response:
    status = exc.status_code if isinstance(exc, HTTPException) else 500
    message = f"{request.method} {request.url.path} is not served here"
    return JSONResponse({"error": {"message": message, "code": status}}, status_code=status)


async def _handle_refusal(request: Request, exc: Exception) -> Response:
    if not isinstance(exc, RefusalError):
        raise exc
    return exc.build_response(request)


def _build_control_routes(state: SandboxState) -> list[BaseRoute]:
    async def list_calls(_: Request) -> Response:
        return JSONResponse({"calls": [asdict(call) for call in state.calls]})

    async def forget_calls(_: Request) -> Response:
        state.calls.clear()
        return Response(status_code=204)

    async def add_fault(request: Request) -> Response:
        try:
            fault = Fault(**{"times": 1, **await read_json_object(request)})
            return JSONResponse(asdict(state.faults.add(fault)), 201)
        except ValueError as error:
            return JSONResponse({"error": describe_error(error)}, 400)

    async def list_faults(_: Request) -> Response:
        return JSONResponse({"faults": [asdict(fault) for fault in state.faults.list_faults()]})

    async def forget_faults(_: Request) -> Response:
        state.faults.clear()
        return Response(status_code=204)

    return [
        Route("/calls", list_calls, methods=["GET"]),
        Route("/calls", forget_calls, methods=["DELETE"]),
        Route("/faults", add_fault, methods=["POST"]),
        Route("/faults", list_faults, methods=["GET"]),
        Route("/faults", forget_faults, methods=["DELETE"]),
    ]
