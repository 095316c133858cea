"""The shapes of RunPod's management wire: the fields of each kind, and its records."""

from collections.abc import Mapping

from toolkit.sandbox.json_http import JsonObject

CREATED_AT = "2026-11-20T00:00:00Z"
# The container settings that endpoints, pods and templates share.
CONTAINER_FIELDS = {
    "image": "string|null",
    "args": "string|null",
    "disk": "integer|null",
    "ports": "array|null",
    "env": "object|null",
    "registry": "string|null",
}
KIND_FIELDS: dict[str, dict[str, str]] = {
    "serverless": CONTAINER_FIELDS
    | {
        "name": "string",
        "type": "string",
        "scaling": "object",
        "gpu": "object",
        "workers": "object",
        "templateId": "string",
        "networkVolumes": "array",
        "dataCenterIds": "array",
        "timeout": "integer",
        "flashboot": "string",
    },
    "templates": CONTAINER_FIELDS
    | {
        "name": "string",
        "serverless": "boolean",
        "public": "boolean",
        "category": "string",
        "mounts": "object",
        "startSsh": "boolean",
        "startJupyter": "boolean",
        "allowedCudaVersions": "array",
    },
    "network-volumes": {
        "name": "string",
        "size": "integer",
        "dataCenter": "string",
        "type": "string",
    },
    "pods": CONTAINER_FIELDS
    | {
        "name": "string",
        "gpu": "object",
        "cpu": "object",
        "cloud": "string",
        "templateId": "string",
        "dataCenterIds": "array",
        "mounts": "object",
        "globalNetworking": "boolean",
        "startSsh": "boolean",
        "startJupyter": "boolean",
    },
}
REQUIRED_FIELDS = {
    "serverless": ("name", "type", "scaling"),
    "templates": ("name", "image"),
    "network-volumes": ("name", "size", "dataCenter"),
    "pods": ("name",),
}
CHOICES: dict[str, dict[str, tuple[str, ...]]] = {
    "serverless": {
        "type": ("QUEUE", "LOAD_BALANCER"),
        "flashboot": ("OFF", "FLASHBOOT", "PRIORITY_FLASHBOOT"),
    },
    "templates": {"category": ("CPU", "NVIDIA", "AMD")},
    "network-volumes": {"type": ("STANDARD", "HIGH_PERFORMANCE")},
    "pods": {"cloud": ("SECURE", "COMMUNITY")},
}
LIST_KEYS = {
    "serverless": "endpoints",
    "templates": "templates",
    "network-volumes": "networkVolumes",
    "pods": "pods",
}
# The actions that a pod allows by its status, and the status after each.
ALLOWED_ACTIONS: dict[str, tuple[str, ...]] = {
    "PROVISIONING": ("stop", "terminate"),
    "STARTING": ("stop", "terminate"),
    "RUNNING": ("stop", "restart", "terminate"),
    "EXITED": ("start", "terminate"),
    "ERROR": ("start", "terminate"),
    "TERMINATED": (),
}
STATUS_AFTER_ACTION = {"start": "STARTING", "stop": "EXITED", "restart": "STARTING"}
NEXT_STATUS = {"PROVISIONING": "STARTING", "STARTING": "RUNNING"}
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
    """Describe an endpoint: its settings are a template's where the request has none of its own.

    The template is resolved as the endpoint is made, and is no part of what is answered.
    """
    asked = {"allowedCudaVersions": template.get("allowedCudaVersions") or [], **body["gpu"]}
    return {
        **_merge_container(body, template),
        "id": identity,
        "name": body["name"],
        "type": body["type"],
        "requestUrls": dict(urls),
        "gpu": {"count": 1, "minCudaVersion": None, **asked},
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
    return set_status(pod, "PROVISIONING")


def set_status(pod: JsonObject, status: str) -> JsonObject:
    """Set a pod's status, and the actions that it allows."""
    pod |= {"status": status, "actions": list(ALLOWED_ACTIONS[status])}
    pod["startedAt"] = CREATED_AT if status == "RUNNING" else None
    pod["runtime"] = {"uptime": 1, "gpus": [], "ports": []} if status == "RUNNING" else None
    return pod


def advance_status(pod: JsonObject) -> JsonObject:
    """Advance a pod that is starting by one step, as it does while it is watched."""
    status = pod["status"]
    return set_status(pod, NEXT_STATUS[status]) if status in NEXT_STATUS else pod


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
    given = [
        {k: one[k] for k in CONTAINER_FIELDS if one.get(k) is not None} for one in (template, body)
    ]
    env = {**(template.get("env") or {}), **(body.get("env") or {})}
    return {**_CONTAINER_DEFAULTS, **given[0], **given[1], "env": env}
