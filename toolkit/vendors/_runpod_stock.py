"""RunPod's management API beside endpoints: pods, templates and network volumes."""

from decimal import Decimal

from toolkit.plugins import Access, Flow, Reply, VendorFault
from toolkit.plugins.infrastructure import (
    Listing,
    PodAction,
    PodCreation,
    PodListing,
    PodReading,
    PodState,
    PodStatus,
    TemplateCreation,
    TemplateDeletion,
    TemplateListing,
    TemplateState,
    VolumeCreation,
    VolumeDeletion,
    VolumeListing,
    VolumeState,
)
from toolkit.vendors._http import Answer, Json, number
from toolkit.vendors._runpod import DEFAULT_IMAGE, asked, bad, deleted, listed, segment

WORKER_PORT = 8000  # where the vendor's SDK serves work in a container, and the proxy leads to
# The command of the default image in a pod: the SDK's options for serving work by HTTP.
SERVE_WORK = (
    f"python -u /rp_handler.py --rp_serve_api --rp_api_host 0.0.0.0 --rp_api_port {WORKER_PORT}"
)

# Where a volume appears in a pod: as on endpoints, so that an image finds it in either.
MOUNTED_AT = "/runpod-volume"

# A status that is not in here is unknown to this file, and counts as `creating`.
_STATUSES: dict[str, PodStatus] = {
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
        VendorFault: what the vendor says, such as that no such GPU is free.
    """
    fields: Json = {
        "name": operation.name,
        "gpu": {"id": operation.gpu_id, "count": operation.gpu_count},
        "ports": [f"{WORKER_PORT}/http"],
    }
    if operation.template_id is not None:
        fields["templateId"] = operation.template_id
    else:
        fields["image"] = operation.image or DEFAULT_IMAGE
    if not operation.image and operation.template_id is None:
        fields["args"] = SERVE_WORK
    if operation.volume_id is not None:
        fields["mounts"] = {"network": [{"volumeId": operation.volume_id, "path": MOUNTED_AT}]}
    if operation.data_center:
        fields["dataCenterIds"] = [operation.data_center]
    if operation.env:
        fields["env"] = dict(operation.env)
    answer = yield from asked(access, "POST", "/pods", fields, host="api")
    return _pod(answer.json(), answer)


def read_pod(operation: PodReading, access: Access) -> Flow[PodState]:
    """Read the state of a machine.

    Raises:
        VendorFault: what the vendor says; its status is 404 for one that is gone.
    """
    path = f"/pods/{segment(operation.vendor_id)}"
    answer = yield from asked(access, "GET", path, host="api")
    return _pod(answer.json(), answer)


def list_pods(operation: PodListing, access: Access) -> Flow[Listing[PodState]]:  # noqa: ARG001
    """List the account's machines.

    Raises:
        VendorFault: what the vendor says.
    """
    return (yield from listed(access, "/pods", "pods", _pod))


def act_on_pod(operation: PodAction, access: Access) -> Flow[PodState]:
    """Start, stop, restart or terminate a machine; one that is gone counts as terminated.

    Raises:
        VendorFault: what the vendor says.
    """
    vendor_id = segment(operation.vendor_id)
    if operation.action == "terminate":
        yield from deleted(access, f"/pods/{vendor_id}")
        return PodState(vendor_id=vendor_id, status="terminated")
    body = {"action": operation.action}
    answer = yield from asked(access, "POST", f"/pods/{vendor_id}/action", body, host="api")
    return _pod(answer.json(), answer)


def create_template(operation: TemplateCreation, access: Access) -> Flow[TemplateState]:
    """Make a template.

    Raises:
        VendorFault: what the vendor says, such as that the name is taken.
    """
    fields: Json = {
        "name": operation.name,
        "image": operation.image,
        "serverless": operation.serverless,
    }
    if operation.env:
        fields["env"] = dict(operation.env)
    answer = yield from asked(access, "POST", "/templates", fields, host="api")
    return _template(answer.json(), answer)


def list_templates(
    operation: TemplateListing,  # noqa: ARG001
    access: Access,
) -> Flow[Listing[TemplateState]]:
    """List the account's templates.

    Raises:
        VendorFault: what the vendor says.
    """
    return (yield from listed(access, "/templates", "templates", _template))


def delete_template(operation: TemplateDeletion, access: Access) -> Flow[Reply]:
    """Delete a template.

    Raises:
        VendorFault: what the vendor says, such as that it is in use.
    """
    yield from deleted(access, f"/templates/{segment(operation.vendor_id)}")
    return Reply(model="template")


def create_volume(operation: VolumeCreation, access: Access) -> Flow[VolumeState]:
    """Rent a network volume.

    Raises:
        VendorFault: what the vendor says, such as that the size is not offered.
    """
    fields = {
        "name": operation.name,
        "size": operation.size_gb,
        "dataCenter": operation.data_center,
    }
    answer = yield from asked(access, "POST", "/network-volumes", fields, host="api")
    return _volume(answer.json(), answer)


def list_volumes(
    operation: VolumeListing,  # noqa: ARG001
    access: Access,
) -> Flow[Listing[VolumeState]]:
    """List the account's network volumes.

    Raises:
        VendorFault: what the vendor says.
    """
    return (yield from listed(access, "/network-volumes", "networkVolumes", _volume))


def delete_volume(operation: VolumeDeletion, access: Access) -> Flow[Reply]:
    """Delete a network volume, with all that is on it.

    Raises:
        VendorFault: what the vendor says, such as that it is in use.
    """
    yield from deleted(access, f"/network-volumes/{segment(operation.vendor_id)}")
    return Reply(model="volume")


def _pod(said: Json, answer: Answer) -> PodState:
    cost, status = number(said.get("cost")), said.get("status")
    if not isinstance(status, str):
        raise _no_state(answer)
    return PodState(
        vendor_id=segment(said.get("id")),
        name=answer.quoted(said.get("name")),
        status=_STATUSES.get(status, "creating"),
        usd_per_hour=None if cost is None else Decimal(str(cost)),
        vendor_request_id=answer.request_id,
    )


def _template(said: Json, answer: Answer) -> TemplateState:
    return TemplateState(
        vendor_id=segment(said.get("id")),
        name=answer.quoted(said.get("name")),
        image=answer.quoted(said.get("image")),
        vendor_request_id=answer.request_id,
    )


def _volume(said: Json, answer: Answer) -> VolumeState:
    size = number(said.get("size"))
    return VolumeState(
        vendor_id=segment(said.get("id")),
        name=answer.quoted(said.get("name")),
        size_gb=None if size is None else int(size),
        data_center=answer.quoted(said.get("dataCenter")),
        vendor_request_id=answer.request_id,
    )


def _no_state(answer: Answer) -> VendorFault:
    return bad("runpod described a pod without its status.", answer.request_id)
