"""RunPod's two APIs: requests to both, and its management of endpoints, templates, catalogue."""

import re
from collections.abc import Callable
from decimal import Decimal
from typing import TypeVar

import httpx

from toolkit.contract.errors import ErrorCode
from toolkit.plugins import Access, Flow, Reply, VendorFault, send
from toolkit.plugins.infrastructure import (
    EndpointCreation,
    EndpointDeletion,
    EndpointListing,
    EndpointReading,
    EndpointState,
    GpuCatalog,
    GpuListing,
    GpuOffer,
    Listing,
    State,
)
from toolkit.vendors._http import REFUSED, Answer, Json, bearer, inner, number

DEFAULT_IMAGE = "runpod/worker-sdxl:latest"
# The fields of a template that an endpoint takes too.
_OF_TEMPLATES = ("image", "args", "disk", "ports", "env", "registry")
_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")
S = TypeVar("S", bound=State)


def to(
    access: Access, method: str, path: str, body: Json | None = None, host: str = "jobs"
) -> httpx.Request:
    """Return a request to the job API, or to the management API at the host `api`."""
    return httpx.Request(method, access.url(path, host), json=body, headers=bearer(access))


def asked(
    access: Access, method: str, path: str, body: Json | None = None, host: str = "jobs"
) -> Flow[Answer]:
    """Send a request; the answer, unless it failed.

    Raises:
        VendorFault: as the status says.
    """
    response = yield from send(to(access, method, path, body, host))
    answer = Answer("runpod", access, response)
    if answer.failed:
        raise _failure(answer)
    return answer


def _failure(answer: Answer) -> VendorFault:
    said = answer.json()
    words = said.get("detail") or said.get("error") or said.get("title")
    listed = said.get("errors")
    more = [one for one in listed if isinstance(one, str)] if isinstance(listed, list) else []
    if isinstance(words, str) and more:
        words = f"{words.rstrip('.')}: {'; '.join(more)}"
    # 409 is a conflict with the present state, not an outage: a retry would be refused, too.
    return answer.failure(words, verdict=REFUSED if answer.status == 409 else None)


def listed(
    access: Access, path: str, name: str, read: Callable[[Json, Answer], S]
) -> Flow[Listing[S]]:
    """List all that the account has of a kind; `name` is what the vendor wraps the list in.

    Raises:
        VendorFault: what the vendor says.
    """
    answer = yield from asked(access, "GET", path, host="api")
    rows = answer.json().get(name)
    items = rows if isinstance(rows, list) else []
    states = tuple(read(row, answer) for row in items if isinstance(row, dict))
    return Listing(items=states, vendor_request_id=answer.request_id)


def segment(name: object) -> str:
    """Return an id that may stand in a path: what the vendor names is trusted with no more than
    that.

    Raises:
        VendorFault: `PROVIDER_BAD_RESPONSE` for what is no id.
    """
    if not isinstance(name, str) or not _ID.fullmatch(name):
        raise bad("runpod named something by what is no id.")
    return name


def bad(message: str, job: str | None = None) -> VendorFault:
    """Build an error for an answer of the vendor's that asking again would not cure."""
    return VendorFault(
        ErrorCode.PROVIDER_BAD_RESPONSE, message, retryable=False, vendor_request_id=job
    )


def create_endpoint(operation: EndpointCreation, access: Access) -> Flow[EndpointState]:
    """Create a serverless endpoint with our defaults, which are not the vendor's.

    The vendor deletes an endpoint together with the template that is bound to it. So a template is
    never bound: what it says is read, and the endpoint is made of that.

    Raises:
        VendorFault: what the vendor says.
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
        path = f"/templates/{segment(operation.template_id)}"
        template = (yield from asked(access, "GET", path, host="api")).json()
        fields |= {name: template[name] for name in _OF_TEMPLATES if template.get(name)}
        if template.get("allowedCudaVersions"):
            fields["gpu"]["allowedCudaVersions"] = template["allowedCudaVersions"]
    if operation.volume_ids:
        fields["networkVolumes"] = list(operation.volume_ids)
    answer = yield from asked(access, "POST", "/serverless", fields, host="api")
    return _state(answer.json(), answer)


def read_endpoint(operation: EndpointReading, access: Access) -> Flow[EndpointState]:
    """Read the state of an endpoint.

    Raises:
        VendorFault: what the vendor says; its status is 404 for one that is gone.
    """
    path = f"/serverless/{segment(operation.vendor_id)}"
    answer = yield from asked(access, "GET", path, host="api")
    return _state(answer.json(), answer)


def list_endpoints(
    operation: EndpointListing,  # noqa: ARG001
    access: Access,
) -> Flow[Listing[EndpointState]]:
    """List the account's endpoints.

    Raises:
        VendorFault: what the vendor says.
    """
    return (yield from listed(access, "/serverless", "endpoints", _state))


def delete_endpoint(operation: EndpointDeletion, access: Access) -> Flow[Reply]:
    """Destroy an endpoint; what is gone already counts as destroyed.

    Raises:
        VendorFault: what the vendor says.
    """
    yield from deleted(access, f"/serverless/{segment(operation.vendor_id)}")
    if operation.template_id is not None:
        yield from deleted(access, f"/templates/{segment(operation.template_id)}")
    return Reply(model="serverless")


def list_gpus(operation: GpuListing, access: Access) -> Flow[GpuCatalog]:  # noqa: ARG001
    """List the vendor's catalogue of GPUs, with list prices by the hour.

    Raises:
        VendorFault: what the vendor says.
    """
    answer = yield from asked(access, "GET", "/catalog/gpus", host="api")
    offered = answer.json().get("gpus")
    rows = [row for row in offered if isinstance(row, dict)] if isinstance(offered, list) else []
    gpus = tuple(_gpu(row, answer) for row in rows if answer.label(row.get("id")))
    return GpuCatalog(gpus=gpus, vendor_request_id=answer.request_id)


def probe(access: Access) -> Flow[None]:
    """List the account's endpoints: free, and only for who has a key.

    Raises:
        VendorFault: `PROVIDER_AUTH_FAILED` when the key is refused.
    """
    yield from asked(access, "GET", "/serverless", host="api")


def _gpu(row: Json, answer: Answer) -> GpuOffer:
    gpu_id = answer.label(row.get("id")) or ""
    memory = number(row.get("memory"))
    prices = {tier: number(amount) for tier, amount in inner(row, "price").items()}
    return GpuOffer(
        id=gpu_id,
        name=answer.label(row.get("name")) or gpu_id,
        pool=answer.label(row.get("pool")) or "",
        memory_gb=None if memory is None else int(memory),
        usd_per_hour={t: Decimal(str(usd)) for t, usd in prices.items() if usd is not None},
    )


def _state(said: Json, answer: Answer) -> EndpointState:
    workers, pools = inner(said, "workers"), inner(said, "gpu").get("pools")
    least, most = number(workers.get("min")), number(workers.get("max"))
    return EndpointState(
        vendor_id=segment(said.get("id")),
        vendor_request_id=answer.request_id,
        name=answer.label(said.get("name")) or "",
        gpu_pools=tuple(p for p in pools if isinstance(p, str)) if isinstance(pools, list) else (),
        workers_min=None if least is None else int(least),
        workers_max=None if most is None else int(most),
    )


def deleted(access: Access, path: str) -> Flow[None]:
    """Have something deleted; what is gone already counts as deleted.

    Raises:
        VendorFault: what the vendor says.
    """
    try:
        yield from asked(access, "DELETE", path, host="api")
    except VendorFault as fault:
        if fault.status != 404:
            raise
