"""RunPod's management API: endpoints, pods, templates, network volumes and the GPU catalogue."""

from toolkit.contract.money import from_wire_usd
from toolkit.plugins import Access, Flow, ProviderError, Reply
from toolkit.plugins.infrastructure import (
    EndpointCreation,
    GpuCatalog,
    GpuListing,
    GpuOffer,
    PodCreation,
    PodReading,
    PodState,
    PodStatus,
    ResourceDeletion,
    ResourceKind,
    ResourceListing,
    ResourceQuery,
    ResourceState,
    TemplateCreation,
    VolumeCreation,
)
from toolkit.plugins.vendor import OperationFlow
from toolkit.vendors._http import (
    Json,
    VendorResponse,
    get_object,
    list_objects,
    to_finite_number,
)
from toolkit.vendors._runpod_api import build_bad_response, check_id, send_request

DEFAULT_IMAGE = "runpod/worker-sdxl:latest"
# The fields of a template that an endpoint also accepts.
_TEMPLATE_FIELDS = ("image", "args", "disk", "ports", "env", "registry")
WORKER_PORT = 8000  # port of the vendor's SDK in a container, which the proxy forwards to
# Command of the default image in a pod, with the SDK's options for serving work by HTTP.
SERVE_COMMAND = (
    f"python -u /rp_handler.py --rp_serve_api --rp_api_host 0.0.0.0 --rp_api_port {WORKER_PORT}"
)

# Mount path of a volume in a pod; the same as on endpoints, so that an image works in both.
MOUNT_PATH = "/runpod-volume"

# The path of each kind of resource, and the member of an answer that lists them.
_PATHS: dict[ResourceKind, tuple[str, str]] = {
    "endpoint": ("/serverless", "endpoints"),
    "pod": ("/pods", "pods"),
    "template": ("/templates", "templates"),
    "volume": ("/network-volumes", "networkVolumes"),
}
# Any other status counts as `creating`.
_POD_STATUSES: dict[str, PodStatus] = {
    "PROVISIONING": "creating",
    "STARTING": "creating",
    "RUNNING": "running",
    "EXITED": "stopped",
    "ERROR": "failed",
    "TERMINATED": "terminated",
}


def create_endpoint(operation: EndpointCreation, access: Access) -> Flow[ResourceState]:
    """Create a serverless endpoint with our defaults, which are not the vendor's.

    The vendor deletes an endpoint together with the template that is bound to it. So no template
    is ever bound: its fields are read and copied to the endpoint.

    Raises:
        ProviderError: the vendor refused or failed.
    """
    fields: Json = {
        "name": operation.name,
        "type": "QUEUE",
        "scaling": {"type": "QUEUE_DELAY", "queueDelay": 4},
        "gpu": {"pools": [operation.gpu_pool], "count": 1},
        "workers": {"min": operation.workers_min, "max": operation.workers_max},
        "image": operation.image or DEFAULT_IMAGE,
    }
    if operation.template_id is not None:
        path = f"/templates/{check_id(operation.template_id)}"
        template = (yield from send_request(access, "GET", path, host="api")).json()
        fields |= {name: template[name] for name in _TEMPLATE_FIELDS if template.get(name)}
        if template.get("allowedCudaVersions"):
            fields["gpu"]["allowedCudaVersions"] = template["allowedCudaVersions"]
    if operation.volume_ids:
        fields["networkVolumes"] = list(operation.volume_ids)
    return (yield from _create_resource(access, "endpoint", fields))


def create_pod(operation: PodCreation, access: Access) -> Flow[PodState]:
    """Rent a GPU machine.

    Raises:
        ProviderError: the vendor refused or failed, for example because no such GPU is free.
    """
    fields: Json = {
        "name": operation.name,
        "gpu": {"id": operation.gpu_id, "count": 1},
        "ports": [f"{WORKER_PORT}/http"],
    }
    if operation.template_id is not None:
        fields["templateId"] = operation.template_id
    else:
        fields["image"] = operation.image or DEFAULT_IMAGE
    if not operation.image and operation.template_id is None:
        fields["args"] = SERVE_COMMAND
    if operation.volume_id is not None:
        fields["mounts"] = {"network": [{"volumeId": operation.volume_id, "path": MOUNT_PATH}]}
    if operation.data_center:
        fields["dataCenterIds"] = [operation.data_center]
    answer = yield from send_request(access, "POST", "/pods", fields, host="api")
    return _parse_pod(answer.json(), answer)


def read_pod(operation: PodReading, access: Access) -> Flow[PodState]:
    """Read the state of a GPU machine (pod).

    Raises:
        ProviderError: the vendor refused or failed; the status is 404 if the machine is gone.
    """
    path = f"/pods/{check_id(operation.vendor_id)}"
    answer = yield from send_request(access, "GET", path, host="api")
    return _parse_pod(answer.json(), answer)


def _create_resource(access: Access, kind: ResourceKind, fields: Json) -> Flow[ResourceState]:
    answer = yield from send_request(access, "POST", _PATHS[kind][0], fields, host="api")
    return _parse_resource(answer.json(), answer)


def create_template(operation: TemplateCreation, access: Access) -> Flow[ResourceState]:
    """Create a template: a saved image from which endpoints or pods are started.

    Raises:
        ProviderError: the vendor refused or failed, for example because the name is taken.
    """
    fields: Json = {
        "name": operation.name,
        "image": operation.image,
        "serverless": operation.serverless,
    }
    return (yield from _create_resource(access, "template", fields))


def create_volume(operation: VolumeCreation, access: Access) -> Flow[ResourceState]:
    """Rent a network volume.

    Raises:
        ProviderError: the vendor refused or failed, for example because it lacks that size.
    """
    fields = {
        "name": operation.name,
        "size": operation.size_gb,
        "dataCenter": operation.data_center,
    }
    return (yield from _create_resource(access, "volume", fields))


def list_gpus(operation: GpuListing, access: Access) -> Flow[GpuCatalog]:  # noqa: ARG001
    """List the vendor's catalogue of GPUs, with list prices per hour.

    Raises:
        ProviderError: the vendor refused or failed.
    """
    answer = yield from send_request(access, "GET", "/catalog/gpus", host="api")
    rows = list_objects(answer.json(), "gpus")
    gpus = tuple(_parse_gpu(row, answer) for row in rows if answer.read_label(row.get("id")))
    return GpuCatalog(gpus=gpus, vendor_request_id=answer.request_id)


def list_resources(
    operation: ResourceQuery, access: Access
) -> Flow[ResourceListing[ResourceState]]:
    """List all of the account's resources of a kind.

    Raises:
        ProviderError: the vendor refused or failed.
    """
    path, member = _PATHS[operation.resource]
    answer = yield from send_request(access, "GET", path, host="api")
    parse = _parse_pod if operation.resource == "pod" else _parse_resource
    states = tuple(parse(row, answer) for row in list_objects(answer.json(), member))
    return ResourceListing(items=states, vendor_request_id=answer.request_id)


def delete_resource(operation: ResourceDeletion, access: Access) -> Flow[Reply]:
    """Delete a resource; a missing resource counts as deleted.

    Raises:
        ProviderError: the vendor refused or failed.
    """
    path, _ = _PATHS[operation.resource]
    try:
        target = f"{path}/{check_id(operation.vendor_id)}"
        yield from send_request(access, "DELETE", target, host="api")
    except ProviderError as fault:
        if fault.status != 404:
            raise
    return Reply(model=operation.resource)


def _parse_gpu(row: Json, answer: VendorResponse) -> GpuOffer:
    gpu_id = answer.read_label(row.get("id")) or ""
    memory = to_finite_number(row.get("memory"))
    prices = {tier: to_finite_number(amount) for tier, amount in get_object(row, "price").items()}
    return GpuOffer(
        id=gpu_id,
        name=answer.read_label(row.get("name")) or gpu_id,
        pool=answer.read_label(row.get("pool")) or "",
        memory_gb=None if memory is None else int(memory),
        usd_per_hour={t: from_wire_usd(usd) for t, usd in prices.items() if usd is not None},
    )


def _parse_resource(body: Json, answer: VendorResponse) -> ResourceState:
    """Parse the id and name of an endpoint, a template or a volume.

    Raises:
        ProviderError: `PROVIDER_BAD_RESPONSE` if the resource has no id.
    """
    return ResourceState(
        vendor_id=check_id(body.get("id")),
        name=answer.redact_excerpt(body.get("name")),
        vendor_request_id=answer.request_id,
    )


def _parse_pod(body: Json, answer: VendorResponse) -> PodState:
    cost, status = to_finite_number(body.get("cost")), body.get("status")
    if not isinstance(status, str):
        raise build_bad_response("runpod described a pod without its status.", answer.request_id)
    return PodState(
        vendor_id=check_id(body.get("id")),
        name=answer.redact_excerpt(body.get("name")),
        status=_POD_STATUSES.get(status, "creating"),
        usd_per_hour=from_wire_usd(cost),
        vendor_request_id=answer.request_id,
    )


INFRASTRUCTURE: dict[str, OperationFlow] = {
    EndpointCreation.kind: create_endpoint,
    GpuListing.kind: list_gpus,
    PodCreation.kind: create_pod,
    PodReading.kind: read_pod,
    TemplateCreation.kind: create_template,
    VolumeCreation.kind: create_volume,
    ResourceQuery.kind: list_resources,
    ResourceDeletion.kind: delete_resource,
}
