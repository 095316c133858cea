"""The ASGI app: a mount for each vendor's wire, and the controls that tests use."""

from collections.abc import Sequence
from dataclasses import asdict

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from toolkit.sandbox.faults import Fault, Faults, describe_error
from toolkit.sandbox.json_http import RefusalError, read_json_object
from toolkit.sandbox.middleware import VendorMiddleware
from toolkit.sandbox.state import SandboxState
from toolkit.sandbox.vendor_paths import VENDOR_PATHS, CompatibleVendor
from toolkit.sandbox.wires import (
    anthropic,
    aws,
    cohere,
    cohere_chat,
    elevenlabs,
    encyclopedia,
    google,
    minimax,
    openai,
    runpod,
    runpod_images,
    runpod_jobs,
    runpod_pods,
    voyage,
)

_WIRES = {
    "openai": openai,
    "anthropic": anthropic,
    "google": google,
    "minimax": minimax,
    "elevenlabs": elevenlabs,
    "aws": aws,
    "runpod": runpod,
    "runpod-jobs": runpod_jobs,
    "runpod-pods": runpod_pods,
    "runpod-images": runpod_images,
    "cohere": cohere,
    "cohere-compatible": cohere_chat,
    "voyage": voyage,
    "encyclopedia": encyclopedia,
}


def build_app(
    seed: int,
    latency_ms: float,
    faults: Faults | None,
    compatible: Sequence[CompatibleVendor] = (),
) -> Starlette:
    """Build the app, with empty records."""
    state = SandboxState(seed, latency_ms, faults, compatible)
    mounts: list[BaseRoute] = [
        Mount(path, routes=_WIRES[wire].build_routes(state)) for wire, path in VENDOR_PATHS.items()
    ]
    for vendor in compatible:
        routes = _WIRES[vendor.wire].build_compatible_routes(vendor)
        mounts.append(Mount(vendor.path, routes=routes))
    app = Starlette(
        routes=[Mount("/_sandbox", routes=_build_control_routes(state)), *mounts],
        middleware=[Middleware(VendorMiddleware, state=state)],
        exception_handlers={HTTPException: _handle_http_error, RefusalError: _handle_refusal},
    )
    app.state.sandbox = state
    return app


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
