"""RunPod's management API beside endpoints: pods, templates and network volumes."""

from toolkit.contract.money import from_wire_usd
from toolkit.plugins import Access, Flow, Reply
from toolkit.plugins.infrastructure import (
    PodCreation,
    PodDeletion,
    PodListing,
    PodReading,
    PodState,
    PodStatus,
    ResourceListing,
    ResourceState,
    TemplateCreation,
    TemplateDeletion,
    TemplateListing,
    VolumeCreation,
    VolumeDeletion,
    VolumeListing,
)
from toolkit.vendors._http import Json, VendorResponse, to_finite_number
from toolkit.vendors._runpod_api import (
    DEFAULT_IMAGE,
    build_bad_response,
    check_id,
    delete_resource,
    list_resources,
    parse_resource,
    send_request,
)

WORKER_PORT = 8000  # where the vendor's SDK serves work in a container, and the proxy leads to
# The command of the default image in a pod: the SDK's options for serving work by HTTP.
SERVE_COMMAND = (
    f"python -u /rp_handler.py --rp_serve_api --rp_api_host 0.0.0.0 --rp_api_port {WORKER_PORT}"
)

# Where a volume appears in a pod: as on endpoints, so that an image finds it in either.
MOUNT_PATH = "/runpod-volume"

# A status that is not in here is unknown to this file, and counts as `creating`.
_POD_STATUSES: dict[str, PodStatus] = {
    "PROVISIONING": "creating",
    "STARTING": "creating",
    "RUNNING": "running",
    "EXITED": "stopped",
    "ERROR": "failed",
    "TERMINATED": "terminated",
}


def create_pod(operation: PodCreation, access: Access) -> Flow[PodState]:
    """Rent a GPU machine.

    Raises:
        ProviderError: what the vendor says, such as that no such GPU is free.
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
    """Read the state of a machine.

    Raises:
        ProviderError: what the vendor says; its status is 404 for one that is gone.
    """
    path = f"/pods/{check_id(operation.vendor_id)}"
    answer = yield from send_request(access, "GET", path, host="api")
    return _parse_pod(answer.json(), answer)


def list_pods(operation: PodListing, access: Access) -> Flow[ResourceListing[PodState]]:  # noqa: ARG001
    """List the account's machines.

    Raises:
        ProviderError: what the vendor says.
    """
    return (yield from list_resources(access, "/pods", "pods", _parse_pod))


def delete_pod(operation: PodDeletion, access: Access) -> Flow[Reply]:
    """Terminate a machine.

    Raises:
        ProviderError: what the vendor says.
    """
    yield from delete_resource(access, f"/pods/{check_id(operation.vendor_id)}")
    return Reply(model="pod")


def create_template(operation: TemplateCreation, access: Access) -> Flow[ResourceState]:
    """Make a template.

    Raises:
        ProviderError: what the vendor says, such as that the name is taken.
    """
    fields: Json = {
        "name": operation.name,
        "image": operation.image,
        "serverless": operation.serverless,
    }
    answer = yield from send_request(access, "POST", "/templates", fields, host="api")
    return parse_resource(answer.json(), answer)


def list_templates(
    operation: TemplateListing,  # noqa: ARG001
    access: Access,
) -> Flow[ResourceListing[ResourceState]]:
    """List the account's templates.

    Raises:
        ProviderError: what the vendor says.
    """
    return (yield from list_resources(access, "/templates", "templates", parse_resource))


def delete_template(operation: TemplateDeletion, access: Access) -> Flow[Reply]:
    """Delete a template.

    Raises:
        ProviderError: what the vendor says, such as that it is in use.
    """
    yield from delete_resource(access, f"/templates/{check_id(operation.vendor_id)}")
    return Reply(model="template")


def create_volume(operation: VolumeCreation, access: Access) -> Flow[ResourceState]:
    """Rent a network volume.

    Raises:
        ProviderError: what the vendor says, such as that the size is not offered.
    """
    fields = {
        "name": operation.name,
        "size": operation.size_gb,
        "dataCenter": operation.data_center,
    }
    answer = yield from send_request(access, "POST", "/network-volumes", fields, host="api")
    return parse_resource(answer.json(), answer)


def list_volumes(
    operation: VolumeListing,  # noqa: ARG001
    access: Access,
) -> Flow[ResourceListing[ResourceState]]:
    """List the account's network volumes.

    Raises:
        ProviderError: what the vendor says.
    """
    return (yield from list_resources(access, "/network-volumes", "networkVolumes", parse_resource))


def delete_volume(operation: VolumeDeletion, access: Access) -> Flow[Reply]:
    """Delete a network volume, with all that is on it.

    Raises:
        ProviderError: what the vendor says, such as that it is in use.
    """
    yield from delete_resource(access, f"/network-volumes/{check_id(operation.vendor_id)}")
    return Reply(model="volume")


def _parse_pod(said: Json, answer: VendorResponse) -> PodState:
    cost, status = to_finite_number(said.get("cost")), said.get("status")
    if not isinstance(status, str):
        raise build_bad_response("runpod described a pod without its status.", answer.request_id)
    return PodState(
        vendor_id=check_id(said.get("id")),
        name=answer.redact_excerpt(said.get("name")),
        status=_POD_STATUSES.get(status, "creating"),
        usd_per_hour=from_wire_usd(cost),
        vendor_request_id=answer.request_id,
    )
