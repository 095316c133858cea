"""The `runpod` management wire, v2: endpoints, templates, volumes, pods, catalogue."""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from toolkit.sandbox import SANDBOX_KEYS, VENDOR_PATHS
from toolkit.sandbox._gpus import DATA_CENTERS, GPUS, POOLS, catalog
from toolkit.sandbox._state import SandboxState, bill, request_digest
from toolkit.sandbox._wire import (
    JsonObject,
    NotJsonError,
    answer,
    bearer,
    fits,
    kind_of,
    read_object,
)

# The container settings that endpoints, pods and templates share.
CONTAINER = {
    "image": "string|null",
    "args": "string|null",
    "disk": "integer|null",
    "ports": "array|null",
    "env": "object|null",
    "registry": "string|null",
    "mounts": "object|null",
}
SHAPES: dict[str, dict[str, str]] = {
    "serverless": CONTAINER
    | {
        "name": "string",
        "type": "string",
        "scaling": "object|null",
        "gpu": "object",
        "workers": "object|null",
        "templateId": "string|null",
        "networkVolumes": "array|null",
        "dataCenterIds": "array|null",
        "idleTimeout": "integer|null",
        "executionTimeout": "integer|null",
        "flashboot": "boolean|null",
    },
    "templates": CONTAINER
    | {
        "name": "string",
        "serverless": "boolean|null",
        "public": "boolean|null",
        "category": "string|null",
        "readme": "string|null",
    },
    "network-volumes": {"name": "string", "size": "integer", "dataCenter": "string"},
    "pods": CONTAINER
    | {
        "name": "string",
        "gpu": "object|null",
        "cpu": "object|null",
        "templateId": "string|null",
        "cloudType": "string|null",
        "dataCenterIds": "array|null",
    },
}
REQUIRED = {
    "serverless": ("name", "gpu"),
    "templates": ("name", "image"),
    "network-volumes": ("name", "size", "dataCenter"),
    "pods": ("name",),
}
LISTS = {
    "serverless": "endpoints",
    "templates": "templates",
    "network-volumes": "networkVolumes",
    "pods": "pods",
}
_TITLES = {
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    409: "Conflict",
    422: "Unprocessable Entity",
    429: "Too Many Requests",
}
_ACTIONS = {"start": "STARTING", "stop": "EXITED", "restart": "STARTING", "terminate": "TERMINATED"}
NEXT_STATUS = {"PROVISIONING": "STARTING", "STARTING": "RUNNING"}


class RefusalError(Exception):
    """An error in the vendor's shape."""

    def __init__(self, status: int, detail: str, errors: list[JsonObject] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.errors = errors

    def response(self) -> Response:
        """The answer that carries it."""
        body: JsonObject = {
            "title": _TITLES[self.status],
            "status": self.status,
            "detail": self.detail,
        }
        if self.errors:
            body["errors"] = self.errors
        return answer(body, self.status, {"content-type": "application/problem+json"})


@dataclass(slots=True)
class Account:
    """What the account owns, by kind and id; the job API reads the endpoints."""

    items: dict[str, dict[str, JsonObject]] = field(
        default_factory=lambda: {kind: {} for kind in SHAPES}
    )


class _Wire:
    def __init__(self, state: SandboxState) -> None:
        self._state = state
        self._items = state.shelf(Account).items

    async def gpus(self, _: Request) -> Response:
        return answer({"gpus": catalog()})

    async def many(self, request: Request) -> Response:
        kind = request.path_params["kind"]
        if request.method == "GET":
            return answer({LISTS[kind]: list(self._items[kind].values())})
        body = await _read(request)
        self._check(kind, body)
        made = self._make(kind, body, request)
        self._items[kind][made["id"]] = made
        if kind in ("pods", "network-volumes"):
            bill(request)
        return answer(made, 201)

    async def one(self, request: Request) -> Response:
        kind = request.path_params["kind"]
        item = self._found(kind, request.path_params["id"])
        if request.method == "DELETE":
            self._check_unused(kind, item["id"])
            del self._items[kind][item["id"]]
            return Response(status_code=204)
        if request.method == "PATCH":
            body = await _read(request)
            self._check(kind, body, partial=True)
            item.update(body)
        elif kind == "pods":
            # A pod comes up while it is watched.
            item["status"] = NEXT_STATUS.get(item["status"], item["status"])
        return answer(item)

    async def act(self, request: Request) -> Response:
        pod = self._found("pods", request.path_params["id"])
        body = await _read(request)
        action = body.get("action")
        if action not in _ACTIONS or set(body) != {"action"}:
            raise RefusalError(422, f"action must be one of {', '.join(_ACTIONS)}.")
        if pod["status"] == "TERMINATED":
            raise RefusalError(409, "The pod is terminated.")
        pod["status"] = _ACTIONS[action]
        return answer(pod)

    def _found(self, kind: str, identity: str) -> JsonObject:
        item = self._items[kind].get(identity)
        if item is None:
            raise RefusalError(404, f"No such resource: {identity}.")
        return item

    def _check(self, kind: str, body: JsonObject, *, partial: bool = False) -> None:
        shape = SHAPES[kind]
        errors = [_error(name, "unknown field") for name in body if name not in shape]
        if not partial:
            errors += [_error(n, "is required") for n in REQUIRED[kind] if body.get(n) is None]
        for name, value in body.items():
            if name in shape and value is not None and not fits(value, shape[name]):
                errors.append(_error(name, f"must be {shape[name]}, got {kind_of(value)}"))
        if body.get("name") == "":
            errors.append(_error("name", "must have at least 1 character"))
        if errors:
            raise RefusalError(422, "The request does not match the schema.", errors)
        if kind == "serverless":
            _check_endpoint(body)
        if kind == "network-volumes":
            _check_volume(body)
        if kind in ("serverless", "pods") and not partial:
            self._check_container(kind, body)
        if kind == "pods" and not partial:
            _check_pod(body)
            self._check_mounts(body)
        if kind == "templates" and not partial:
            self._check_free_name(body["name"])

    def _check_container(self, kind: str, body: JsonObject) -> None:
        template, image = body.get("templateId"), body.get("image")
        if not template and not image:
            raise RefusalError(400, "Either templateId or image is needed.")
        if template and template not in self._items["templates"]:
            raise RefusalError(404, f"No such template: {template}.")
        if template and self._items["templates"][template]["serverless"] != (kind == "serverless"):
            raise RefusalError(422, f"Template {template} is not for {kind}.")
        for volume in _volumes(body):
            if volume not in self._items["network-volumes"]:
                raise RefusalError(404, f"No such network volume: {volume}.")

    def _check_mounts(self, body: JsonObject) -> None:
        """A volume is mounted where it is, under a path that has to be given."""
        mounts = body.get("mounts") or {}
        _only(mounts, "mounts", ("network", "persistent"))
        for mount in mounts.get("network") or []:
            _only(mount, "mounts.network", ("volumeId", "path"))
            if not mount.get("path"):
                raise RefusalError(422, "mounts.network.path is required.")
            place = self._items["network-volumes"][mount["volumeId"]]["dataCenter"]
            if place not in (body.get("dataCenterIds") or [place]):
                raise RefusalError(400, f"The network volume is in {place}, the pod would not be.")

    def _check_free_name(self, name: str) -> None:
        if any(one["name"] == name for one in self._items["templates"].values()):
            raise RefusalError(409, f"A template named {name!r} exists already.")

    def _check_unused(self, kind: str, identity: str) -> None:
        users = [*self._items["serverless"].values(), *self._items["pods"].values()]
        uses = {
            "templates": any(one.get("templateId") == identity for one in users),
            "network-volumes": any(identity in _volumes(one) for one in users),
        }
        if uses.get(kind):
            raise RefusalError(409, f"{identity} is in use.")

    def _make(self, kind: str, body: JsonObject, request: Request) -> JsonObject:
        identity = self._state.fresh("runpod", kind, request_digest(request))[:14]
        made: JsonObject = {"id": identity, **body, "createdAt": "2026-11-20T00:00:00Z"}
        template = self._items["templates"].get(body.get("templateId") or "")
        if template and not body.get("image"):
            made["image"] = template["image"]
        if kind == "serverless":
            made = {"type": "QUEUE", **made}
            made["workers"] = {"min": 0, "max": 3, **(body.get("workers") or {})}
            made.setdefault("scaling", {"type": "QUEUE_DELAY", "queueDelay": 4})
            made["requestUrls"] = _request_urls(request, identity)
        if kind == "pods":
            made |= {"status": "PROVISIONING", "cost": _pod_cost(body)}
        if kind == "templates":
            made = {"serverless": False, "public": False, **made}
        return made


def routes(state: SandboxState) -> list[BaseRoute]:
    """The vendor's paths."""
    wire = _Wire(state)
    return [
        Route("/v2/catalog/gpus", _guarded(wire.gpus), methods=["GET"]),
        Route("/v2/pods/{id}/action", _guarded(wire.act), methods=["POST"]),
        *(
            route
            for kind in SHAPES
            for route in (
                Route(f"/v2/{kind}", _guarded(wire.many, kind), methods=["GET", "POST"]),
                Route(
                    f"/v2/{kind}/{{id}}",
                    _guarded(wire.one, kind),
                    methods=["GET", "PATCH", "DELETE"],
                ),
            )
        ),
    ]


def _guarded(
    handler: Callable[[Request], Awaitable[Response]], kind: str = ""
) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        request.path_params["kind"] = kind
        try:
            if bearer(request) != SANDBOX_KEYS["RUNPOD_API_KEY"]:
                raise RefusalError(401, "The API key is missing or not valid.")
            return await handler(request)
        except RefusalError as refusal:
            return refusal.response()

    return endpoint


async def _read(request: Request) -> JsonObject:
    try:
        return await read_object(request)
    except NotJsonError:
        raise RefusalError(400, "The body is not a JSON object.") from None


def _error(name: str, message: str) -> JsonObject:
    return {"location": f"body.{name}", "message": message}


def _check_endpoint(body: JsonObject) -> None:
    if body.get("type", "QUEUE") not in ("QUEUE", "LOAD_BALANCER"):
        raise RefusalError(422, "type must be QUEUE or LOAD_BALANCER.")
    gpu = body.get("gpu")
    if gpu is not None:
        pools = gpu.get("pools")
        if not isinstance(pools, list) or not pools or not set(pools) <= set(POOLS):
            raise RefusalError(
                422, f"gpu.pools must name pools of the catalogue: {', '.join(POOLS)}."
            )
        if not fits(gpu.get("count", 1), "integer") or gpu.get("count", 1) < 1:
            raise RefusalError(422, "gpu.count must be an integer of at least 1.")
        _only(gpu, "gpu", ("pools", "count", "ids"))
    workers = body.get("workers") or {}
    _only(workers, "workers", ("min", "max"))
    low, high = workers.get("min", 0), workers.get("max", 3)
    if not (fits(low, "integer") and fits(high, "integer") and 0 <= low <= high and high >= 1):
        raise RefusalError(422, "workers.min and workers.max must be integers, 0 <= min <= max.")
    scaling = body.get("scaling") or {"type": "QUEUE_DELAY"}
    _only(scaling, "scaling", ("type", "queueDelay", "requestCount"))
    if scaling.get("type") not in ("QUEUE_DELAY", "REQUEST_COUNT"):
        raise RefusalError(422, "scaling.type must be QUEUE_DELAY or REQUEST_COUNT.")


def _only(body: JsonObject, name: str, known: tuple[str, ...]) -> None:
    wrong = [_error(f"{name}.{key}", "unknown field") for key in body if key not in known]
    if wrong:
        raise RefusalError(422, "The request does not match the schema.", wrong)


def _volumes(body: JsonObject) -> list[str]:
    """The network volumes that an endpoint or a pod has."""
    mounts = (body.get("mounts") or {}).get("network") or []
    return [*(body.get("networkVolumes") or []), *(mount.get("volumeId", "") for mount in mounts)]


def _check_volume(body: JsonObject) -> None:
    if "size" in body and not 10 <= body["size"] <= 4096:
        raise RefusalError(422, "size must be between 10 and 4096 GB.")
    if "dataCenter" in body and body["dataCenter"] not in DATA_CENTERS:
        raise RefusalError(422, f"dataCenter must be one of {', '.join(DATA_CENTERS)}.")


def _check_pod(body: JsonObject) -> None:
    gpu, cpu = body.get("gpu"), body.get("cpu")
    if bool(gpu) == bool(cpu):
        raise RefusalError(400, "Exactly one of gpu and cpu is needed.")
    if gpu and gpu.get("id") not in {one.id for one in GPUS}:
        raise RefusalError(422, "gpu.id must be an id of the catalogue.")


def _pod_cost(body: JsonObject) -> float:
    gpu = body.get("gpu") or {}
    price = next((one.secure for one in GPUS if one.id == gpu.get("id")), 0.06)
    return round(price * int(gpu.get("count", 1)), 3)


def _request_urls(request: Request, identity: str) -> dict[str, str]:
    root = re.sub(rf"{VENDOR_PATHS['runpod']}/v2/.*$", "", str(request.url))
    base = f"{root}{VENDOR_PATHS['runpod-jobs']}/v2/{identity}"
    return {
        "run": f"{base}/run",
        "runSync": f"{base}/runsync",
        "status": f"{base}/status/{{jobId}}",
        "cancel": f"{base}/cancel/{{jobId}}",
    }
