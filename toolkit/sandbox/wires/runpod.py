"""The `runpod` management wire, v2: endpoints, templates, volumes, pods, catalogue."""

import re
from dataclasses import dataclass, field
from functools import partial
from http.client import responses

from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute

from toolkit.sandbox.json_http import (
    Handler,
    JsonObject,
    NotJsonError,
    RefusalError,
    build_checked_routes,
    get_bearer_key,
    list_faults,
    read_json_object,
)
from toolkit.sandbox.state import SandboxState, get_request_digest, mark_billed
from toolkit.sandbox.vendor_paths import SANDBOX_KEYS, VENDOR_PATHS
from toolkit.sandbox.wires.runpod_shapes import (
    BODIES,
    GPUS,
    LIST_KEYS,
    POOLS,
    advance_status,
    build_catalog,
    describe_endpoint,
    describe_pod,
    describe_template,
    describe_volume,
)


def refuse(status: int, detail: str, errors: list[str] | None = None) -> RefusalError:
    """Make a refusal in the vendor's format."""
    body: JsonObject = {"title": responses.get(status, detail), "status": status, "detail": detail}
    if errors:
        body["errors"] = errors
    return RefusalError(body, status, {"content-type": "application/problem+json"})


@dataclass(slots=True)
class RunPodAccount:
    """The account's resources, by kind and id; the job API reads the endpoints.

    Attributes:
        bound_templates: the template of each endpoint, which is deleted with it.
    """

    items: dict[str, dict[str, JsonObject]] = field(
        default_factory=lambda: {kind: {} for kind in LIST_KEYS}
    )
    bound_templates: dict[str, str] = field(default_factory=dict)


class _RunPodWire:
    def __init__(self, state: SandboxState) -> None:
        self._state = state
        self._account = state.get_records(RunPodAccount)
        self._items = self._account.items

    async def list_gpus(self, _: Request) -> Response:
        return JSONResponse({"gpus": build_catalog()})

    async def list_or_create(self, kind: str, request: Request) -> Response:
        if request.method == "GET":
            return JSONResponse({LIST_KEYS[kind]: list(self._items[kind].values())})
        body = await _read_object(request)
        self._check_body(kind, body)
        item = self._create_item(kind, body, request)
        self._items[kind][item["id"]] = item
        if kind in ("pods", "network-volumes"):
            mark_billed(request)
        return JSONResponse(item, 201)

    async def get_or_delete(self, kind: str, request: Request) -> Response:
        item = self._find_item(kind, request.path_params["id"])
        if request.method == "DELETE":
            self._delete_item(kind, item["id"])
            return Response(status_code=204)
        if kind == "pods":
            advance_status(item)
        return JSONResponse(item)

    def _delete_item(self, kind: str, identity: str) -> None:
        self._check_unused(kind, identity)
        del self._items[kind][identity]
        if kind == "serverless":
            # The vendor says "and its bound template", without an exception for shared templates.
            self._items["templates"].pop(self._account.bound_templates.pop(identity, ""), None)

    def _find_item(self, kind: str, identity: str) -> JsonObject:
        item = self._items[kind].get(identity)
        if item is None:
            raise refuse(404, f"No such resource: {identity}.")
        return item

    def _check_body(self, kind: str, body: JsonObject) -> None:
        try:
            BODIES[kind].validate_python(body)
        except ValidationError as error:
            faults = [f"body.{fault}" for fault in list_faults(error)]
            raise refuse(422, "The request does not match the schema.", faults) from None
        if kind == "serverless":
            _check_endpoint(body)
        if kind in ("serverless", "pods"):
            self._check_container(kind, body)
        if kind == "pods":
            _check_pod(body)
            self._check_mounts(body)
        if kind == "templates":
            self._check_free_name(body["name"])

    def _check_container(self, kind: str, body: JsonObject) -> None:
        template, image = body.get("templateId"), body.get("image")
        if not template and not image:
            raise refuse(400, "Either templateId or image is needed.")
        if template and template not in self._items["templates"]:
            raise refuse(404, f"No such template: {template}.")
        if template and self._items["templates"][template]["serverless"] != (kind == "serverless"):
            raise refuse(422, f"Template {template} is not for {kind}.")
        for volume in _list_volumes(body):
            if volume not in self._items["network-volumes"]:
                raise refuse(404, f"No such network volume: {volume}.")

    def _check_mounts(self, body: JsonObject) -> None:
        """Check that a pod is in the data centre of its volumes."""
        for mount in (body.get("mounts") or {}).get("network") or []:
            place = self._items["network-volumes"][mount["volumeId"]]["dataCenter"]
            if place not in (body.get("dataCenterIds") or [place]):
                raise refuse(400, f"The network volume is in {place}, the pod would not be.")

    def _check_free_name(self, name: str) -> None:
        if any(template["name"] == name for template in self._items["templates"].values()):
            raise refuse(400, f"A template named {name!r} exists already.")

    def _check_unused(self, kind: str, identity: str) -> None:
        users = [*self._items["serverless"].values(), *self._items["pods"].values()]
        pods = self._items["pods"].values()
        bound = identity in self._account.bound_templates.values()
        uses = {
            "templates": bound or any(pod["template"] == identity for pod in pods),
            "network-volumes": any(identity in _list_volumes(user) for user in users),
        }
        if uses.get(kind):
            raise refuse(400, f"{identity} is in use and cannot be deleted.")

    def _create_item(self, kind: str, body: JsonObject, request: Request) -> JsonObject:
        digest = self._state.compute_fresh_digest("runpod", kind, get_request_digest(request))
        identity = digest[:14]
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
        """Choose the data centre of the volumes that a pod mounts, or the usual data centre."""
        volumes = self._items["network-volumes"]
        places = [str(volumes[volume]["dataCenter"]) for volume in _list_volumes(body)]
        return places[0] if places else "EU-RO-1"


def build_routes(state: SandboxState) -> list[BaseRoute]:
    """Build the routes of the vendor's paths."""
    wire = _RunPodWire(state)
    table: list[tuple[str, str, Handler]] = [
        ("GET", "/v2/catalog/gpus", wire.list_gpus),
    ]
    for kind in LIST_KEYS:
        table += [
            ("GET POST", f"/v2/{kind}", partial(wire.list_or_create, kind)),
            ("GET DELETE", f"/v2/{kind}/{{id}}", partial(wire.get_or_delete, kind)),
        ]
    return build_checked_routes(_check_key, table)


def _check_key(request: Request) -> None:
    if get_bearer_key(request) != SANDBOX_KEYS["RUNPOD_API_KEY"]:
        raise refuse(401, "The API key is missing or not valid.")


async def _read_object(request: Request) -> JsonObject:
    try:
        return await read_json_object(request)
    except NotJsonError:
        raise refuse(400, "The body is not a JSON object.") from None


def _check_endpoint(body: JsonObject) -> None:
    gpu, workers = body.get("gpu"), body.get("workers", {})
    if gpu is None:
        raise refuse(400, "Exactly one of gpu and cpu is needed.")
    if gpu is not None and not set(gpu["pools"]) <= set(POOLS):
        raise refuse(422, f"gpu.pools must name pools of the catalogue: {', '.join(POOLS)}.")
    if workers.get("min", 0) > workers.get("max", 3):
        raise refuse(422, "workers.min must be at most workers.max.")
    scaling = body.get("scaling", {}).get("type")
    if body.get("type") == "LOAD_BALANCER" and scaling == "QUEUE_DELAY":
        raise refuse(422, "scaling.type must be REQUEST_COUNT for LOAD_BALANCER.")


def _list_volumes(body: JsonObject) -> list[str]:
    """List the network volumes of an endpoint or a pod."""
    mounts = (body.get("mounts") or {}).get("network") or []
    return [*(body.get("networkVolumes") or []), *(mount.get("volumeId", "") for mount in mounts)]


def _check_pod(body: JsonObject) -> None:
    gpu, cpu = body.get("gpu"), body.get("cpu")
    if bool(gpu) == bool(cpu):
        raise refuse(400, "Exactly one of gpu and cpu is needed.")
    if gpu and gpu["id"] not in {model.id for model in GPUS}:
        raise refuse(422, "gpu.id must be an id of the catalogue.")


def _compute_pod_cost(body: JsonObject) -> float:
    gpu = body.get("gpu") or {}
    price = next((model.secure for model in GPUS if model.id == gpu.get("id")), 0.06)
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
