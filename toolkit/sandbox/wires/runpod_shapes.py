"""The shapes of RunPod's management wire: fields of each kind, its records, and its GPUs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Required, TypeAlias

from pydantic import ConfigDict, Field, TypeAdapter, with_config
from typing_extensions import TypedDict  # pydantic needs it below Python 3.12

from toolkit.sandbox.json_http import JsonObject

CREATED_AT = "2026-11-20T00:00:00Z"
_STRICT = ConfigDict(strict=True, extra="forbid")
Name: TypeAlias = Annotated[str, Field(min_length=1)]
DataCenter: TypeAlias = Literal[
    "EU-RO-1", "EU-CZ-1", "EU-NL-1", "US-KS-2", "US-GA-1", "US-TX-3", "CA-MTL-1"
]


@with_config(_STRICT)
class ContainerBody(TypedDict, total=False):
    """The container settings that endpoints, pods and templates share."""

    args: str | None
    disk: int | None
    ports: list[Any] | None
    env: JsonObject | None
    registry: str | None


@with_config(_STRICT)
class EndpointGpuBody(TypedDict, total=False):
    """The GPUs of an endpoint."""

    pools: Required[Annotated[list[str], Field(min_length=1)]]
    count: Annotated[int, Field(ge=1)]
    excludedTypes: list[str]
    allowedCudaVersions: list[str]
    minCudaVersion: str | None


@with_config(_STRICT)
class PodGpuBody(TypedDict, total=False):
    """The GPUs of a pod (a rented machine): id of their type, number and CUDA versions."""

    id: Required[str]
    count: int
    allowedCudaVersions: list[str]
    minCudaVersion: str | None


@with_config(_STRICT)
class WorkersBody(TypedDict, total=False):
    """The number of an endpoint's workers."""

    min: Annotated[int, Field(ge=0)]
    max: Annotated[int, Field(ge=1)]
    idleTimeout: int


@with_config(_STRICT)
class QueueScaling(TypedDict):
    """Scaling by the time that jobs wait."""

    type: Literal["QUEUE_DELAY"]
    queueDelay: int | float


@with_config(_STRICT)
class RequestScaling(TypedDict):
    """Scaling by the number of requests."""

    type: Literal["REQUEST_COUNT"]
    requestCount: int | float


@with_config(_STRICT)
class VolumeMount(TypedDict):
    """The path at which a pod has a network volume."""

    volumeId: str
    path: Name


@with_config(_STRICT)
class MountsBody(TypedDict, total=False):
    """The volumes of a pod."""

    network: list[VolumeMount] | None
    persistent: Any


class EndpointBody(ContainerBody, total=False):
    """The settings of an endpoint."""

    name: Required[Name]
    type: Required[Literal["QUEUE", "LOAD_BALANCER"]]
    image: str | None
    scaling: Required[Annotated[QueueScaling | RequestScaling, Field(discriminator="type")]]
    gpu: EndpointGpuBody
    workers: WorkersBody
    templateId: str
    networkVolumes: list[str]
    dataCenterIds: list[str]
    timeout: int
    flashboot: Literal["OFF", "FLASHBOOT", "PRIORITY_FLASHBOOT"]


class TemplateBody(ContainerBody, total=False):
    """The settings of a template."""

    name: Required[Name]
    image: Required[str]
    serverless: bool
    public: bool
    category: Literal["CPU", "NVIDIA", "AMD"]
    mounts: JsonObject
    startSsh: bool
    startJupyter: bool
    allowedCudaVersions: list[str]


@with_config(_STRICT)
class VolumeBody(TypedDict, total=False):
    """The settings of a network volume."""

    name: Required[Name]
    size: Required[Annotated[int, Field(ge=10, le=4096)]]
    dataCenter: Required[DataCenter]
    type: Literal["STANDARD", "HIGH_PERFORMANCE"]


class PodBody(ContainerBody, total=False):
    """The settings of a pod."""

    name: Required[Name]
    image: str | None
    gpu: PodGpuBody
    cpu: JsonObject
    cloud: Literal["SECURE", "COMMUNITY"]
    templateId: str
    dataCenterIds: list[str]
    mounts: MountsBody
    globalNetworking: bool
    startSsh: bool
    startJupyter: bool


BODIES: dict[str, TypeAdapter[Any]] = {
    "serverless": TypeAdapter(EndpointBody),
    "templates": TypeAdapter(TemplateBody),
    "network-volumes": TypeAdapter(VolumeBody),
    "pods": TypeAdapter(PodBody),
}
LIST_KEYS = {
    "serverless": "endpoints",
    "templates": "templates",
    "network-volumes": "networkVolumes",
    "pods": "pods",
}
# The actions that a pod allows by its status.
_ALLOWED_ACTIONS: dict[str, tuple[str, ...]] = {
    "PROVISIONING": ("stop", "terminate"),
    "STARTING": ("stop", "terminate"),
    "RUNNING": ("stop", "restart", "terminate"),
}
_NEXT_STATUS = {"PROVISIONING": "STARTING", "STARTING": "RUNNING"}
_CONTAINER_DEFAULTS = {
    "image": "",
    "args": "",
    "disk": 20,
    "ports": [],
    "env": {},
    "registry": None,
}


def describe_endpoint(
    identity: str, body: JsonObject, template: JsonObject, urls: Mapping[str, str]
) -> JsonObject:
    """Describe an endpoint; settings that the request leaves out are the template's.

    The template is resolved when the endpoint is created, and is not part of the answer.
    """
    gpu = {"allowedCudaVersions": template.get("allowedCudaVersions") or [], **body["gpu"]}
    return {
        **_merge_container(body, template),
        "id": identity,
        "name": body["name"],
        "type": body["type"],
        "requestUrls": dict(urls),
        "gpu": {"count": 1, "minCudaVersion": None, **gpu},
        "workers": {"min": 0, "max": 3, "idleTimeout": 10, **body.get("workers", {})},
        "scaling": body["scaling"],
        "dataCenterIds": body.get("dataCenterIds", []),
        "networkVolumes": body.get("networkVolumes", []),
        "timeout": body.get("timeout", 300_000),
        "flashboot": body.get("flashboot", "OFF"),
        "createdAt": CREATED_AT,
    }


def describe_pod(
    identity: str, body: JsonObject, template: JsonObject, data_center: str, cost: float
) -> JsonObject:
    """Describe a new pod."""
    pod = {
        **_merge_container(body, template),
        "id": identity,
        "name": body["name"],
        "mounts": body.get("mounts") or template.get("mounts") or {},
        "cloud": body.get("cloud", "SECURE"),
        "dataCenterId": data_center,
        "cudaVersion": None,
        "ssh": {"proxy": None, "direct": None},
        "template": template.get("id"),
        "cost": cost,
        "locked": False,
        "runtime": None,
        "createdAt": CREATED_AT,
        "startedAt": None,
        "globalNetworking": {"enabled": bool(body.get("globalNetworking"))},
    }
    if body.get("gpu"):
        pod["gpu"] = {"count": 1, **body["gpu"]}
    else:
        pod["cpu"] = {"memory": 4 * int(body["cpu"].get("vcpuCount", 2)), **body["cpu"]}
    return _set_status(pod, "PROVISIONING")


def _set_status(pod: JsonObject, status: str) -> JsonObject:
    """Set a pod's status, and the actions that it allows."""
    pod |= {"status": status, "actions": list(_ALLOWED_ACTIONS[status])}
    pod["startedAt"] = CREATED_AT if status == "RUNNING" else None
    pod["runtime"] = {"uptime": 1, "gpus": [], "ports": []} if status == "RUNNING" else None
    return pod


def advance_status(pod: JsonObject) -> JsonObject:
    """Advance a starting pod by one step, as each request for it does."""
    status = pod["status"]
    return _set_status(pod, _NEXT_STATUS[status]) if status in _NEXT_STATUS else pod


def describe_template(identity: str, body: JsonObject) -> JsonObject:
    """Describe a template, with the vendor's defaults."""
    return {
        "serverless": False,
        "public": False,
        "category": "NVIDIA",
        "mounts": {},
        "startSsh": True,
        "startJupyter": True,
        "allowedCudaVersions": [],
        **body,
        **_merge_container(body, {}),
        "id": identity,
    }


def describe_volume(identity: str, body: JsonObject) -> JsonObject:
    """Describe a network volume."""
    return {"type": "STANDARD", **body, "id": identity}


def _merge_container(body: JsonObject, template: JsonObject) -> JsonObject:
    """Merge the container settings of a request over a template's; `env` is merged by key."""
    settings = [
        {k: source[k] for k in _CONTAINER_DEFAULTS if source.get(k) is not None}
        for source in (template, body)
    ]
    env = {**(template.get("env") or {}), **(body.get("env") or {})}
    return {**_CONTAINER_DEFAULTS, **settings[0], **settings[1], "env": env}


@dataclass(frozen=True, slots=True)
class SimulatedGpu:
    """A kind of GPU, as the vendor names it; example prices, in US dollars per hour."""

    id: str
    pool: str
    memory: int
    secure: float
    community: float
    serverless: float


# Serverless prices follow the older documents' dollars per second, times 3600.
GPUS = (
    SimulatedGpu("NVIDIA RTX A4000", "AMPERE_16", 16, 0.25, 0.17, 0.576),
    SimulatedGpu("NVIDIA RTX A5000", "AMPERE_24", 24, 0.27, 0.16, 0.684),
    SimulatedGpu("NVIDIA GeForce RTX 3090", "AMPERE_24", 24, 0.46, 0.22, 0.684),
    SimulatedGpu("NVIDIA GeForce RTX 4090", "ADA_24", 24, 0.69, 0.34, 1.116),
    SimulatedGpu("NVIDIA A40", "AMPERE_48", 48, 0.40, 0.35, 1.224),
    SimulatedGpu("NVIDIA RTX A6000", "AMPERE_48", 48, 0.49, 0.33, 1.224),
    SimulatedGpu("NVIDIA L40S", "ADA_48_PRO", 48, 0.86, 0.79, 1.908),
    SimulatedGpu("NVIDIA A100 80GB PCIe", "AMPERE_80", 80, 1.64, 1.19, 2.736),
    SimulatedGpu("NVIDIA H100 80GB HBM3", "ADA_80_PRO", 80, 2.99, 2.69, 4.176),
    SimulatedGpu("NVIDIA H200", "HOPPER_141", 141, 3.99, 3.59, 5.58),
)
POOLS = tuple(dict.fromkeys(gpu.pool for gpu in GPUS))


def build_catalog() -> list[dict[str, Any]]:
    """Build the catalogue as the wire shows it."""
    return [
        {
            "id": gpu.id,
            "name": gpu.id.removeprefix("NVIDIA ").removeprefix("GeForce "),
            "pool": gpu.pool,
            "manufacturer": "NVIDIA",
            "memory": gpu.memory,
            "secure": True,
            "community": True,
            "maxCount": {"secure": 8, "community": 4},
            "price": {name: getattr(gpu, name) for name in ("secure", "community", "serverless")},
        }
        for gpu in GPUS
    ]
