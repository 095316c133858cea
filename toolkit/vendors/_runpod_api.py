"""RunPod's two APIs: requests to both, and its management of endpoints, templates, catalogue."""

import re
from collections.abc import Callable
from typing import TypeVar

import httpx

from toolkit.contract.errors import ErrorCode
from toolkit.contract.money import from_wire_usd
from toolkit.plugins import Access, Flow, ProviderError, Reply, send
from toolkit.plugins.infrastructure import (
    EndpointCreation,
    EndpointDeletion,
    EndpointListing,
    GpuCatalog,
    GpuListing,
    GpuOffer,
    ResourceListing,
    ResourceState,
)
from toolkit.plugins.streaming import StreamReader
from toolkit.vendors._http import (
    REFUSED,
    Json,
    VendorResponse,
    build_bearer_headers,
    get_object,
    to_finite_number,
)

DEFAULT_IMAGE = "runpod/worker-sdxl:latest"
# The fields of a template that an endpoint takes too.
_TEMPLATE_FIELDS = ("image", "args", "disk", "ports", "env", "registry")
_ID_PATTERN = re.compile(r"[A-Za-z0-9_-]{1,128}")
S = TypeVar("S", bound=ResourceState)


def build_request(
    access: Access, method: str, path: str, body: Json | None = None, host: str = "jobs"
) -> httpx.Request:
    """Return a request to the job API, or to the management API at the host `api`."""
    return httpx.Request(
        method, access.url(path, host), json=body, headers=build_bearer_headers(access)
    )


def send_request(
    access: Access,
    method: str,
    path: str,
    body: Json | None = None,
    host: str = "jobs",
    stream: StreamReader | None = None,
) -> Flow[VendorResponse]:
    """Send a request; the answer, unless it failed.

    Raises:
        ProviderError: as the status says.
    """
    response = yield from send(build_request(access, method, path, body, host), stream=stream)
    answer = VendorResponse("runpod", access, response)
    if answer.is_failure:
        raise _build_failure(answer)
    return answer


def _build_failure(answer: VendorResponse) -> ProviderError:
    said = answer.json()
    words = said.get("detail") or said.get("error") or said.get("title")
    listed = said.get("errors")
    more = [one for one in listed if isinstance(one, str)] if isinstance(listed, list) else []
    if isinstance(words, str) and more:
        words = f"{words.rstrip('.')}: {'; '.join(more)}"
    # 409 is a conflict with the present state, not an outage: a retry would be refused, too.
    return answer.build_failure(words, verdict=REFUSED if answer.status == 409 else None)


def list_resources(
    access: Access, path: str, name: str, read: Callable[[Json, VendorResponse], S]
) -> Flow[ResourceListing[S]]:
    """List all that the account has of a kind; `name` is what the vendor wraps the list in.

    Raises:
        ProviderError: what the vendor says.
    """
    answer = yield from send_request(access, "GET", path, host="api")
    rows = answer.json().get(name)
    items = rows if isinstance(rows, list) else []
    states = tuple(read(row, answer) for row in items if isinstance(row, dict))
    return ResourceListing(items=states, vendor_request_id=answer.request_id)


def check_id(name: object) -> str:
    """Return an id that may stand in a path: what the vendor names is trusted with no more than
    that.

    Raises:
        ProviderError: `PROVIDER_BAD_RESPONSE` for what is no id.
    """
    if not isinstance(name, str) or not _ID_PATTERN.fullmatch(name):
        raise build_bad_response("runpod named something by what is no id.")
    return name


def build_bad_response(message: str, job: str | None = None) -> ProviderError:
    """Build an error for an answer of the vendor's that asking again would not cure."""
    return ProviderError(
        ErrorCode.PROVIDER_BAD_RESPONSE, message, retryable=False, vendor_request_id=job
    )


def create_endpoint(operation: EndpointCreation, access: Access) -> Flow[ResourceState]:
    """Create a serverless endpoint with our defaults, which are not the vendor's.

    The vendor deletes an endpoint together with the template that is bound to it. So a template is
    never bound: what it says is read, and the endpoint is made of that.

    Raises:
        ProviderError: what the vendor says.
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
    answer = yield from send_request(access, "POST", "/serverless", fields, host="api")
    return parse_resource(answer.json(), answer)


def list_endpoints(
    operation: EndpointListing,  # noqa: ARG001
    access: Access,
) -> Flow[ResourceListing[ResourceState]]:
    """List the account's endpoints.

    Raises:
        ProviderError: what the vendor says.
    """
    return (yield from list_resources(access, "/serverless", "endpoints", parse_resource))


def delete_endpoint(operation: EndpointDeletion, access: Access) -> Flow[Reply]:
    """Destroy an endpoint; what is gone already counts as destroyed.

    Raises:
        ProviderError: what the vendor says.
    """
    yield from delete_resource(access, f"/serverless/{check_id(operation.vendor_id)}")
    return Reply(model="serverless")


def list_gpus(operation: GpuListing, access: Access) -> Flow[GpuCatalog]:  # noqa: ARG001
    """List the vendor's catalogue of GPUs, with list prices by the hour.

    Raises:
        ProviderError: what the vendor says.
    """
    answer = yield from send_request(access, "GET", "/catalog/gpus", host="api")
    offered = answer.json().get("gpus")
    rows = [row for row in offered if isinstance(row, dict)] if isinstance(offered, list) else []
    gpus = tuple(_parse_gpu(row, answer) for row in rows if answer.read_label(row.get("id")))
    return GpuCatalog(gpus=gpus, vendor_request_id=answer.request_id)


def probe(access: Access) -> Flow[None]:
    """List the account's endpoints: free, and only for who has a key.

    Raises:
        ProviderError: `PROVIDER_AUTH_FAILED` when the key is refused.
    """
    yield from send_request(access, "GET", "/serverless", host="api")


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


def parse_resource(said: Json, answer: VendorResponse) -> ResourceState:
    """Parse what identifies an endpoint, a template or a volume.

    Raises:
        ProviderError: `PROVIDER_BAD_RESPONSE` if it has no id.
    """
    return ResourceState(
        vendor_id=check_id(said.get("id")),
        name=answer.redact_excerpt(said.get("name")),
        vendor_request_id=answer.request_id,
    )


def delete_resource(access: Access, path: str) -> Flow[None]:
    """Have something deleted; what is gone already counts as deleted.

    Raises:
        ProviderError: what the vendor says.
    """
    try:
        yield from send_request(access, "DELETE", path, host="api")
    except ProviderError as fault:
        if fault.status != 404:
            raise
