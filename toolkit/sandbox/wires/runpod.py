"""The `runpod` management wire, v2: endpoints, templates, volumes, pods, catalogue."""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from toolkit.sandbox.json_http import (
    JsonObject,
    NotJsonError,
    get_bearer_key,
    get_json_type,
    has_json_type,
    make_response,
    read_json_object,
)
from toolkit.sandbox.keys import SANDBOX_KEYS
from toolkit.sandbox.state import SandboxState, get_request_digest, mark_billed
from toolkit.sandbox.vendor_paths import VENDOR_PATHS
from toolkit.sandbox.wires.runpod_gpus import DATA_CENTERS, GPUS, POOLS, build_catalog
from toolkit.sandbox.wires.runpod_shapes import (
    ALLOWED_ACTIONS,
    CHOICES,
    KIND_FIELDS,
    LIST_KEYS,
    REQUIRED_FIELDS,
    STATUS_AFTER_ACTION,
    advance_status,
    describe_endpoint,
    describe_pod,
    describe_template,
    describe_volume,
    set_status,
)

_TITLES = {
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    409: "Conflict",
    422: "Unprocessable Entity",
    429: "Too Many Requests",
}


class RunPodRefusalError(Exception):
    """An error in the vendor's format."""

    def __init__(self, status: int, detail: str, errors: list[str] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.errors = errors

    def to_response(self) -> Response:
        """Make the response that carries the error."""
        body: JsonObject = {
            "title": _TITLES[self.status],
            "status": self.status,
            "detail": self.detail,
        }
        if self.errors:
            body["errors"] = self.errors
        return make_response(body, self.status, {"content-type": "application/problem+json"})


@dataclass(slots=True)
class RunPodAccount:
    """The account's resources, by kind and id; the job API reads the endpoints.

    Attributes:
        bound_templates: the template of each endpoint, which is deleted with it.
    """

    items: dict[str, dict[str, JsonObject]] = field(
        default_factory=lambda: {kind: {} for kind in KIND_FIELDS}
    )
    bound_templates: dict[str, str] = field(default_factory=dict)


class _RunPodWire:
    def __init__(self, state: SandboxState) -> None:
        self._state = state
        self._account = state.get_records(RunPodAccount)
        self._items = self._account.items

    async def list_gpus(self, _: Request) -> Response:
        return make_response({"gpus": build_catalog()})

    async def list_or_create(self, request: Request) -> Response:
        kind = request.path_params["kind"]
        if request.method == "GET":
            return make_response({LIST_KEYS[kind]: list(self._items[kind].values())})
        body = await _read_body(request)
        self._check_body(kind, body)
        made = self._create_item(kind, body, request)
        self._items[kind][made["id"]] = made
        if kind in ("pods", "network-volumes"):
            mark_billed(request)
        return make_response(made, 201)

    async def get_or_change(self, request: Request) -> Response:
        kind = request.path_params["kind"]
        item = self._find_item(kind, request.path_params["id"])
        if request.method == "DELETE":
            self._delete_item(kind, item["id"])
            return Response(status_code=204)
        if request.method == "PATCH":
            body = await _read_body(request)
            self._check_body(kind, body, partial=True)
            merged = {n: {**item[n], **body[n]} for n in ("gpu", "workers") if n in body}
            item.update({n: v for n, v in body.items() if n != "templateId"} | merged)
        elif kind == "pods":
            advance_status(item)
        return make_response(item)

    def _delete_item(self, kind: str, identity: str) -> None:
        self._check_unused(kind, identity)
        del self._items[kind][identity]
        if kind == "serverless":
            # The vendor says "and its bound template", without excepting a shared one.
            self._items["templates"].pop(self._account.bound_templates.pop(identity, ""), None)

    async def run_action(self, request: Request) -> Response:
        pod = self._find_item("pods", request.path_params["id"])
        body = await _read_body(request)
        action = body.get("action")
        if action not in ("terminate", *STATUS_AFTER_ACTION) or set(body) != {"action"}:
            raise RunPodRefusalError(
                422, f"action must be one of {', '.join(STATUS_AFTER_ACTION)} or terminate."
            )
        if action not in ALLOWED_ACTIONS[pod["status"]]:
            raise RunPodRefusalError(
                409, f"{action} is not valid for a pod that is {pod['status']}."
            )
        if action == "terminate":
            self._delete_item("pods", pod["id"])
            return Response(status_code=204)
        return make_response(set_status(pod, STATUS_AFTER_ACTION[action]))

    def _find_item(self, kind: str, identity: str) -> JsonObject:
        item = self._items[kind].get(identity)
        if item is None:
            raise RunPodRefusalError(404, f"No such resource: {identity}.")
        return item

    def _check_body(self, kind: str, body: JsonObject, *, partial: bool = False) -> None:
        shape = KIND_FIELDS[kind]
        errors = [_format_error(name, "unknown field") for name in body if name not in shape]
        if not partial:
            errors += [
                _format_error(n, "is required")
                for n in REQUIRED_FIELDS[kind]
                if body.get(n) is None
            ]
        for name, value in body.items():
            if name in shape and not has_json_type(value, shape[name]):
                errors.append(
                    _format_error(name, f"must be {shape[name]}, got {get_json_type(value)}")
                )
        for name, choices in CHOICES[kind].items():
            if isinstance(body.get(name), str) and body[name] not in choices:
                errors.append(_format_error(name, f"must be one of {', '.join(choices)}"))
        if body.get("name") == "":
            errors.append(_format_error("name", "must have at least 1 character"))
        if errors:
            raise RunPodRefusalError(422, "The request does not match the schema.", errors)
        if kind == "serverless":
            _check_endpoint(body, partial=partial)
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
            raise RunPodRefusalError(400, "Either templateId or image is needed.")
        if template and template not in self._items["templates"]:
            raise RunPodRefusalError(404, f"No such template: {template}.")
        if template and self._items["templates"][template]["serverless"] != (kind == "serverless"):
            raise RunPodRefusalError(422, f"Template {template} is not for {kind}.")
        for volume in _list_volumes(body):
            if volume not in self._items["network-volumes"]:
                raise RunPodRefusalError(404, f"No such network volume: {volume}.")

    def _check_mounts(self, body: JsonObject) -> None:
        """Check mounts: a volume needs a path, and a pod in the volume's data centre."""
        mounts = body.get("mounts") or {}
        _check_known_fields(mounts, "mounts", ("network", "persistent"))
        for mount in mounts.get("network") or []:
            _check_known_fields(mount, "mounts.network", ("volumeId", "path"))
            if not mount.get("path"):
                raise RunPodRefusalError(422, "mounts.network.path is required.")
            place = self._items["network-volumes"][mount["volumeId"]]["dataCenter"]
            if place not in (body.get("dataCenterIds") or [place]):
                raise RunPodRefusalError(
                    400, f"The network volume is in {place}, the pod would not be."
                )

    def _check_free_name(self, name: str) -> None:
        if any(one["name"] == name for one in self._items["templates"].values()):
            raise RunPodRefusalError(400, f"A template named {name!r} exists already.")

    def _check_unused(self, kind: str, identity: str) -> None:
        users = [*self._items["serverless"].values(), *self._items["pods"].values()]
        pods = self._items["pods"].values()
        bound = identity in self._account.bound_templates.values()
        uses = {
            "templates": bound or any(one["template"] == identity for one in pods),
            "network-volumes": any(identity in _list_volumes(one) for one in users),
        }
        if uses.get(kind):
            raise RunPodRefusalError(400, f"{identity} is in use and cannot be deleted.")

    def _create_item(self, kind: str, body: JsonObject, request: Request) -> JsonObject:
        identity = self._state.compute_fresh_digest("runpod", kind, get_request_digest(request))[
            :14
        ]
        template = self._items["templates"].get(body.get("templateId") or "", {})
        if kind == "serverless":
            if template:
                self._account.bound_templates[identity] = template["id"]
            urls = _build_request_urls(request, identity)
            return describe_endpoint(identity, body, template, urls)
        if kind == "pods":
            place = (body.get("dataCenterIds") or [self._choose_data_center(body)])[0]
            return describe_pod(identity, body, template, place, _compute_pod_cost(body))
        if kind == "templates":
            return describe_template(identity, body)
        return describe_volume(identity, body)

    def _choose_data_center(self, body: JsonObject) -> str:
        """Choose the data centre of the volumes that a pod mounts, or the first one."""
        volumes = self._items["network-volumes"]
        places = [str(volumes[one]["dataCenter"]) for one in _list_volumes(body)]
        return places[0] if places else DATA_CENTERS[0]


def build_routes(state: SandboxState) -> list[BaseRoute]:
    """Build the routes of the vendor's paths."""
    wire = _RunPodWire(state)
    return [
        Route("/v2/catalog/gpus", _wrap_handler(wire.list_gpus), methods=["GET"]),
        Route("/v2/pods/{id}/action", _wrap_handler(wire.run_action), methods=["POST"]),
        *(
            route
            for kind in KIND_FIELDS
            for route in (
                Route(
                    f"/v2/{kind}", _wrap_handler(wire.list_or_create, kind), methods=["GET", "POST"]
                ),
                Route(
                    f"/v2/{kind}/{{id}}",
                    _wrap_handler(wire.get_or_change, kind),
                    methods=["GET", "PATCH", "DELETE"],
                ),
            )
        ),
    ]


def _wrap_handler(
    handler: Callable[[Request], Awaitable[Response]], kind: str = ""
) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        request.path_params["kind"] = kind
        try:
            if get_bearer_key(request) != SANDBOX_KEYS["RUNPOD_API_KEY"]:
                raise RunPodRefusalError(401, "The API key is missing or not valid.")
            return await handler(request)
        except RunPodRefusalError as refusal:
            return refusal.to_response()

    return endpoint


async def _read_body(request: Request) -> JsonObject:
    try:
        return await read_json_object(request)
    except NotJsonError:
        raise RunPodRefusalError(400, "The body is not a JSON object.") from None


def _format_error(name: str, message: str) -> str:
    return f"body.{name}: {message}"


def _check_endpoint(body: JsonObject, *, partial: bool) -> None:
    gpu = body.get("gpu")
    if gpu is None and not partial:
        raise RunPodRefusalError(400, "Exactly one of gpu and cpu is needed.")
    if gpu is not None:
        pools = gpu.get("pools")
        if not isinstance(pools, list) or not pools or not set(pools) <= set(POOLS):
            raise RunPodRefusalError(
                422, f"gpu.pools must name pools of the catalogue: {', '.join(POOLS)}."
            )
        if not has_json_type(gpu.get("count", 1), "integer") or gpu.get("count", 1) < 1:
            raise RunPodRefusalError(422, "gpu.count must be an integer of at least 1.")
        _check_known_fields(gpu, "gpu", ("pools", "count", "excludedTypes", *_CUDA_FIELDS))
    workers = body.get("workers") or {}
    _check_known_fields(workers, "workers", ("min", "max", "idleTimeout"))
    low, high = workers.get("min", 0), workers.get("max", 3)
    if not (
        has_json_type(low, "integer")
        and has_json_type(high, "integer")
        and 0 <= low <= high
        and high >= 1
    ):
        raise RunPodRefusalError(
            422, "workers.min and workers.max must be integers, 0 <= min <= max."
        )
    if "scaling" in body:
        kind, member = body["scaling"].get("type"), _SCALING_FIELDS.get(body["scaling"].get("type"))
        if member is None or not has_json_type(body["scaling"].get(member), "number"):
            raise RunPodRefusalError(
                422, f"scaling must be {' or '.join(_SCALING_FIELDS)}, with its number."
            )
        _check_known_fields(body["scaling"], "scaling", ("type", member))
        if body.get("type") == "LOAD_BALANCER" and kind != "REQUEST_COUNT":
            raise RunPodRefusalError(422, "scaling.type must be REQUEST_COUNT for LOAD_BALANCER.")


_CUDA_FIELDS = ("allowedCudaVersions", "minCudaVersion")
_SCALING_FIELDS = {"QUEUE_DELAY": "queueDelay", "REQUEST_COUNT": "requestCount"}


def _check_known_fields(body: JsonObject, name: str, known: tuple[str, ...]) -> None:
    wrong = [_format_error(f"{name}.{key}", "unknown field") for key in body if key not in known]
    if wrong:
        raise RunPodRefusalError(422, "The request does not match the schema.", wrong)


def _list_volumes(body: JsonObject) -> list[str]:
    """List the network volumes of an endpoint or a pod."""
    mounts = (body.get("mounts") or {}).get("network") or []
    return [*(body.get("networkVolumes") or []), *(mount.get("volumeId", "") for mount in mounts)]


def _check_volume(body: JsonObject) -> None:
    if "size" in body and not 10 <= body["size"] <= 4096:
        raise RunPodRefusalError(422, "size must be between 10 and 4096 GB.")
    if "dataCenter" in body and body["dataCenter"] not in DATA_CENTERS:
        raise RunPodRefusalError(422, f"dataCenter must be one of {', '.join(DATA_CENTERS)}.")


def _check_pod(body: JsonObject) -> None:
    gpu, cpu = body.get("gpu"), body.get("cpu")
    if gpu:
        _check_known_fields(gpu, "gpu", ("id", "count", *_CUDA_FIELDS))
    if bool(gpu) == bool(cpu):
        raise RunPodRefusalError(400, "Exactly one of gpu and cpu is needed.")
    if gpu and gpu.get("id") not in {one.id for one in GPUS}:
        raise RunPodRefusalError(422, "gpu.id must be an id of the catalogue.")


def _compute_pod_cost(body: JsonObject) -> float:
    gpu = body.get("gpu") or {}
    price = next((one.secure for one in GPUS if one.id == gpu.get("id")), 0.06)
    return round(price * int(gpu.get("count", 1)), 3)


def _build_request_urls(request: Request, identity: str) -> dict[str, str]:
    root = re.sub(rf"{VENDOR_PATHS['runpod']}/v2/.*$", "", str(request.url))
    base = f"{root}{VENDOR_PATHS['runpod-jobs']}/v2/{identity}"
    return {
        "run": f"{base}/run",
        "runSync": f"{base}/runsync",
        "status": f"{base}/status/{{jobId}}",
        "stream": f"{base}/stream/{{jobId}}",
        "cancel": f"{base}/cancel/{{jobId}}",
        "retry": f"{base}/retry/{{jobId}}",
        "purgeQueue": f"{base}/purge-queue",
        "health": f"{base}/health",
    }
