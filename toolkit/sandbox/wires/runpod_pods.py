"""The `runpod-pods` wire: the API of the vendor's SDK in a container, behind the pods' proxy."""

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from toolkit.sandbox.json_http import JsonObject, NotJsonError, read_json_object
from toolkit.sandbox.state import SandboxState, get_request_digest
from toolkit.sandbox.wires.runpod import RunPodAccount
from toolkit.sandbox.wires.runpod_jobs import check_input, choose_worker, run_worker
from toolkit.sandbox.wires.runpod_shapes import advance_status

WORKER_PORT = "8000/http"


class _RunPodPodsWire:
    def __init__(self, state: SandboxState) -> None:
        self._state = state
        self._pods = state.get_records(RunPodAccount).items["pods"]

    async def run_sync(self, request: Request) -> Response:
        pod = self._pods.get(request.path_params["pod"])
        if pod is None:
            return Response("Not Found", 404, media_type="text/plain")
        if pod["status"] != "RUNNING" or WORKER_PORT not in (pod.get("ports") or []):
            # A pod's start advances with each request, including these.
            advance_status(pod)
            return Response("Bad Gateway", 502, media_type="text/plain")
        try:
            body = await read_json_object(request)
        except NotJsonError:
            return _make_validation_error("body", "Input should be a valid dictionary")
        payload = body.get("input")
        if not isinstance(payload, dict):
            return _make_validation_error("input", "Field required")
        digest = self._state.compute_fresh_digest("pod", get_request_digest(request))
        job: JsonObject = {"id": f"test-{digest[:32]}"}
        worker = choose_worker(str(pod.get("image", "")))
        words = check_input(payload, worker)
        if words:
            return JSONResponse({**job, "status": "FAILED", "error": words})
        output = await run_in_threadpool(run_worker, payload, worker, self._state.seed)
        return JSONResponse({**job, "status": "COMPLETED", "output": output})


def _make_validation_error(field: str, message: str) -> Response:
    return JSONResponse(
        {"detail": [{"loc": ["body", field], "msg": message, "type": "missing"}]}, 422
    )


def build_routes(state: SandboxState) -> list[BaseRoute]:
    """Build the routes of every pod; the pods' proxy needs no key."""
    return [Route("/{pod}/runsync", _RunPodPodsWire(state).run_sync, methods=["POST"])]
