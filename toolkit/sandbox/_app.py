"""The ASGI app: one mount for each vendor's wire, and the controls that tests use."""

from dataclasses import asdict, fields

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from toolkit.sandbox import (
    VENDOR_PATHS,
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
from toolkit.sandbox._front import FrontDoor
from toolkit.sandbox._state import SandboxState
from toolkit.sandbox._wire import NotJsonError, answer, fits, read_object
from toolkit.sandbox.faults import Fault, Faults

_WIRES = {
    "openai": openai.routes,
    "anthropic": anthropic.routes,
    "google": google.routes,
    "minimax": minimax.routes,
    "elevenlabs": elevenlabs.routes,
    "aws": aws.routes,
    "runpod": runpod.routes,
    "runpod-jobs": runpod_jobs.routes,
    "runpod-pods": runpod_pods.routes,
    "runpod-images": runpod_images.routes,
    "encyclopedia": encyclopedia.routes,
}

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
}


def build(seed: int, latency_ms: float, faults: Faults | None) -> Starlette:
    """Build the app, with nothing remembered yet."""
    state = SandboxState(seed, latency_ms, faults)
    mounts: list[BaseRoute] = [
        Mount(VENDOR_PATHS[wire], routes=make(state)) for wire, make in _WIRES.items()
    ]
    app = Starlette(
        routes=[Mount("/_sandbox", routes=_controls(state)), *mounts],
        middleware=[Middleware(FrontDoor, state=state)],
        exception_handlers={HTTPException: _not_routed},
    )
    app.state.sandbox = state
    return app


async def _not_routed(request: Request, exc: Exception) -> Response:
    status = exc.status_code if isinstance(exc, HTTPException) else 500
    message = f"{request.method} {request.url.path} is not served here"
    return JSONResponse({"error": {"message": message, "code": status}}, status_code=status)


def _controls(state: SandboxState) -> list[BaseRoute]:
    async def list_calls(_: Request) -> Response:
        return answer({"calls": [asdict(call) for call in state.calls]})

    async def forget_calls(_: Request) -> Response:
        state.calls.clear()
        return Response(status_code=204)

    async def add_fault(request: Request) -> Response:
        try:
            body = await read_object(request)
        except NotJsonError as exc:
            return answer({"error": str(exc)}, 400)
        known = {field.name for field in fields(Fault)}
        wrong = [name for name in body if name not in known]
        wrong += [n for n, kinds in _FAULT_KINDS.items() if n in body and not fits(body[n], kinds)]
        if wrong or "vendor" not in body:
            return answer({"error": f"wrong fields: {', '.join(wrong) or 'vendor'}"}, 400)
        try:
            return answer(asdict(state.faults.add(Fault(**{"times": 1, **body}))), 201)
        except ValueError as error:
            return answer({"error": str(error)}, 400)

    async def list_faults(_: Request) -> Response:
        return answer({"faults": [asdict(fault) for fault in state.faults.ordered()]})

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
