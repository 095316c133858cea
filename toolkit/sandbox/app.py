"""The ASGI app: one mount for each vendor's wire, and the controls that tests use."""

from collections.abc import Sequence
from dataclasses import asdict, fields

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from toolkit.sandbox.faults import Fault, Faults
from toolkit.sandbox.json_http import NotJsonError, has_json_type, make_response, read_json_object
from toolkit.sandbox.middleware import VendorMiddleware
from toolkit.sandbox.state import SandboxState
from toolkit.sandbox.vendor_paths import VENDOR_PATHS, CompatibleVendor
from toolkit.sandbox.wires import (
    anthropic,
    aws,
    elevenlabs,
    encyclopedia,
    google,
    minimax,
    openai,
    runpod,
    runpod_images,
    runpod_jobs,
    runpod_pods,
)

_ROUTE_BUILDERS = {
    "openai": openai.build_routes,
    "anthropic": anthropic.build_routes,
    "google": google.build_routes,
    "minimax": minimax.build_routes,
    "elevenlabs": elevenlabs.build_routes,
    "aws": aws.build_routes,
    "runpod": runpod.build_routes,
    "runpod-jobs": runpod_jobs.build_routes,
    "runpod-pods": runpod_pods.build_routes,
    "runpod-images": runpod_images.build_routes,
    "encyclopedia": encyclopedia.build_routes,
}

# Builds the routes of a wire for a vendor that the cloud was opened with.
_COMPATIBLE_BUILDERS = {"openai": openai.build_compatible_routes}

_FAULT_KINDS = {
    "vendor": "string",
    "path_contains": "string",
    "status": "integer|null",
    "body": "string|object|array|null",
    "headers": "object",
    "times": "integer|null",
    "share": "number|integer",
    "delay_ms": "number|integer",
    "spread_ms": "number|integer",
    "mangle": "string|null",
    "drip_s": "number|integer",
    "rate_per_s": "number|integer|null",
    "burst": "integer",
    "from_s": "number|integer",
    "until_s": "number|integer|null",
    "refuse_key": "boolean",
    "price_factor": "number|integer|null",
    "service_tier": "string|null",
}


def build_app(
    seed: int,
    latency_ms: float,
    faults: Faults | None,
    compatible: Sequence[CompatibleVendor] = (),
) -> Starlette:
    """Build the app, with nothing remembered yet."""
    state = SandboxState(seed, latency_ms, faults, compatible)
    mounts: list[BaseRoute] = [
        Mount(VENDOR_PATHS[wire], routes=make(state)) for wire, make in _ROUTE_BUILDERS.items()
    ]
    mounts += [Mount(one.path, routes=_COMPATIBLE_BUILDERS[one.wire](one)) for one in compatible]
    app = Starlette(
        routes=[Mount("/_sandbox", routes=_build_control_routes(state)), *mounts],
        middleware=[Middleware(VendorMiddleware, state=state)],
        exception_handlers={HTTPException: _handle_http_error},
    )
    app.state.sandbox = state
    return app


async def _handle_http_error(request: Request, exc: Exception) -> Response:
    status = exc.status_code if isinstance(exc, HTTPException) else 500
    message = f"{request.method} {request.url.path} is not served here"
    return JSONResponse({"error": {"message": message, "code": status}}, status_code=status)


def _build_control_routes(state: SandboxState) -> list[BaseRoute]:
    async def list_calls(_: Request) -> Response:
        return make_response({"calls": [asdict(call) for call in state.calls]})

    async def forget_calls(_: Request) -> Response:
        state.calls.clear()
        return Response(status_code=204)

    async def add_fault(request: Request) -> Response:
        try:
            body = await read_json_object(request)
        except NotJsonError as exc:
            return make_response({"error": str(exc)}, 400)
        known = {field.name for field in fields(Fault)}
        wrong = [name for name in body if name not in known]
        wrong += [
            n
            for n, kinds in _FAULT_KINDS.items()
            if n in body and not has_json_type(body[n], kinds)
        ]
        if wrong or "vendor" not in body:
            return make_response({"error": f"wrong fields: {', '.join(wrong) or 'vendor'}"}, 400)
        try:
            return make_response(asdict(state.faults.add(Fault(**{"times": 1, **body}))), 201)
        except ValueError as error:
            return make_response({"error": str(error)}, 400)

    async def list_faults(_: Request) -> Response:
        return make_response({"faults": [asdict(fault) for fault in state.faults.list_faults()]})

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
