"""The `runpod-pods` wire: the API of the vendor's SDK in a container, behind the pods' proxy."""

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from toolkit.sandbox._runpod_shapes import move_on
from toolkit.sandbox._state import SandboxState, request_digest
from toolkit.sandbox._wire import JsonObject, NotJsonError, answer, read_object
from toolkit.sandbox.runpod import Account
from toolkit.sandbox.runpod_jobs import refusal, work, worker_of

PORT = "8000/http"


class _Wire:
    def __init__(self, state: SandboxState) -> None:
        self._state = state
        self._pods = state.shelf(Account).items["pods"]

    async def run_sync(self, request: Request) -> Response:
        pod = self._pods.get(request.path_params["pod"])
        if pod is None:
            return Response("Not Found", 404, media_type="text/plain")
        if pod["status"] != "RUNNING" or PORT not in (pod.get("ports") or []):
            # A pod starts up while it is watched, also by these requests.
            move_on(pod)
            return Response("Bad Gateway", 502, media_type="text/plain")
        try:
            body = await read_object(request)
        except NotJsonError:
            return _unprocessable("body", "Input should be a valid dictionary")
        given = body.get("input")
        if not isinstance(given, dict):
            return _unprocessable("input", "Field required")
        job: JsonObject = {"id": f"test-{self._state.fresh('pod', request_digest(request))[:32]}"}
        worker = worker_of(str(pod.get("image", "")))
        words = refusal(given, worker)
        if words:
            return answer({**job, "status": "FAILED", "error": words})
        output = await run_in_threadpool(work, given, worker, self._state.seed)
        return answer({**job, "status": "COMPLETED", "output": output})


def _unprocessable(field: str, message: str) -> Response:
    return answer({"detail": [{"loc": ["body", field], "msg": message, "type": "missing"}]}, 422)


def routes(state: SandboxState) -> list[BaseRoute]:
    """Build the routes of every pod; the proxy in front of them asks for no key."""
    return [Route("/{pod}/runsync", _Wire(state).run_sync, methods=["POST"])]
