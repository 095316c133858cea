"""RunPod (V7): images by serverless workers, and the endpoints they run on."""

import re
import secrets
from decimal import Decimal

import httpx

from toolkit.contract.errors import ErrorCode
from toolkit.plugins import (
    Access,
    Cost,
    Flow,
    ImageReply,
    ImageRequest,
    Reply,
    Vendor,
    VendorFault,
    compute,
    pause,
    send,
    submitted,
)
from toolkit.plugins.infrastructure import (
    EndpointCreation,
    EndpointDeletion,
    EndpointReading,
    EndpointState,
    GpuCatalog,
    GpuListing,
    GpuOffer,
)
from toolkit.vendors._http import REFUSED, Answer, Json, bearer, inner, number, quoted
from toolkit.vendors._pictures import embedded, links, media_type
from toolkit.vendors._prices import models

FLUX = "black-forest-labs-flux-1-dev"  # public: no endpoint of one's own is needed
DEFAULT_IMAGE = "runpod/worker-sdxl:latest"
# The only hosts that results are fetched from: over https, and without the key.
RESULT_HOSTS = frozenset({"image.runpod.ai"})

EXECUTION_MS = 600_000
POLL_S = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0)  # then as the last
PATIENCE_S = 1200.0
COLD_START_S = 60.0  # what waits longer than a worker takes to start waits for a free GPU
LOST_POLLS = 8  # in a row, before a job counts as out of reach
_ENDED = {
    "FAILED": (ErrorCode.PROVIDER_REJECTED, False),
    "CANCELLED": (ErrorCode.PROVIDER_UNAVAILABLE, False),
    # Again would take, and be billed, as long again.
    "TIMED_OUT": (ErrorCode.PROVIDER_TIMEOUT, False),
}
_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")
_HIDDEN = "toolkit-hidden-"


def image(operation: ImageRequest, access: Access) -> Flow[ImageReply]:
    """Queue an image at a serverless worker, ask until it is done, and bring back its bytes.

    Work that was submitted before a crash is taken up by `access.resume`, never sent again.

    Raises:
        VendorFault: what the queue or the worker says; `PROVIDER_BAD_RESPONSE` for an output
            without an image, or one on a host that results are not fetched from.
    """
    endpoint = _segment(access.endpoint or access.model or FLUX)
    job = access.resume
    if job is None:
        work = {"input": _worker_input(operation, endpoint), "policy": _POLICY}
        # Not `runsync`: its id comes late, and its result is kept for a minute only.
        answer = yield from _asked(access, "POST", f"/{endpoint}/run", work)
        job = answer.json().get("id")
        if not isinstance(job, str):
            raise _bad("runpod took the work but named no job.")
    cancel = _request(access, "POST", f"/{endpoint}/cancel/{_segment(job)}")
    yield from submitted(job, cancel)
    done = yield from _finished(access, endpoint, job, cancel)
    output = done.get("output")
    data = yield from compute(lambda: embedded(output))
    if data is None:
        data = yield from _fetched(output, access, job)
    return ImageReply(
        image=data,
        media_type=media_type(data) or "application/octet-stream",
        seed=_seed(output),
        model=endpoint,
        vendor_request_id=job,
        cost=_cost(operation, endpoint, done),
    )


_POLICY = {"executionTimeout": EXECUTION_MS}


def _worker_input(operation: ImageRequest, endpoint: str) -> Json:
    """The fields that all workers share; they refuse those they do not know."""
    width, height = operation.width, operation.height
    fields: Json = {"prompt": operation.prompt, "num_inference_steps": operation.steps}
    if endpoint == FLUX:
        # It takes multiples of 64 only. Less, not more: the estimate has to hold.
        width, height = width - width % 64, height - height % 64
        fields["image_format"] = "png"
    fields |= {"width": width, "height": height}
    if operation.negative_prompt:
        fields["negative_prompt"] = operation.negative_prompt
    if operation.seed is not None:
        fields["seed"] = operation.seed
    return fields


def _finished(access: Access, endpoint: str, job: str, cancel: httpx.Request) -> Flow[Json]:
    """Ask about a job until it is completed, more slowly as time goes by."""
    waited, turn, lost = 0.0, 0, 0
    while waited < PATIENCE_S:
        try:
            answer = yield from _asked(access, "GET", f"/{endpoint}/status/{job}")
            said = yield from compute(answer.json)
        except VendorFault as fault:
            # To ask again costs nothing, whatever became of this question.
            lost += 1
            if not fault.retryable or lost == LOST_POLLS:
                raise _unreachable(fault, job) from None
            said, detail, asked_s = {}, None, fault.retry_after or 0.0
        else:
            lost, asked_s = 0, 0.0
            status = said.get("status")
            if status == "COMPLETED":
                return said
            if status in _ENDED:
                raise _ended(status, said, access, job)
            cold = "cold_start" if waited < COLD_START_S else "waiting_capacity"
            detail = cold if status == "IN_QUEUE" else None
        delay = max(asked_s, POLL_S[min(turn, len(POLL_S) - 1)])
        yield from pause(delay, detail)
        waited, turn = waited + delay, turn + 1
    yield from send(cancel)
    raise VendorFault(
        ErrorCode.PROVIDER_TIMEOUT,
        f"The worker did not finish in {PATIENCE_S:.0f} s; its job was cancelled.",
        retryable=False,
        vendor_request_id=job,
    )


def _unreachable(fault: VendorFault, job: str) -> VendorFault:
    """What is wrong with asking, as a fault of a job that is known and can be taken up again."""
    gone = fault.status == 404
    return VendorFault(
        ErrorCode.PROVIDER_BAD_RESPONSE if gone else fault.code,
        "runpod does not know the job any more: results are kept for half an hour."
        if gone
        else fault.message,
        retryable=fault.retryable,
        retry_after=fault.retry_after,
        status=fault.status,
        vendor_request_id=job,
    )


def _ended(status: str, said: Json, access: Access, job: str) -> VendorFault:
    code, retryable = _ENDED[status]
    words = quoted(said.get("error") or inner(said, "output").get("error"), access)
    message = f"The worker's job is {status.lower().replace('_', ' ')}"
    return VendorFault(
        code,
        f"{message}: {words}" if words else f"{message}.",
        retryable=retryable,
        vendor_request_id=job,
    )


def _fetched(output: object, access: Access, job: str) -> Flow[bytes]:
    """The first result that is linked to, from a host that is known to keep them.

    Raises:
        VendorFault: `PROVIDER_REJECTED` for a worker's refusal, `PROVIDER_BAD_RESPONSE` for an
            output without a link that may be followed, or one that leads to no image.
    """
    found = links(output)
    url = next((url for url in map(_parsed, found) if url is not None), None)
    if url is None:
        if found:
            raise _bad("The output links to a host that results are not fetched from.", job)
        words = _worker_error(output, access)
        if words:
            code, retryable = REFUSED
            said = f"The worker refused this: {words}"
            raise VendorFault(code, said, retryable=retryable, vendor_request_id=job)
        raise _bad("The worker's output has no image in it.", job)
    answer = Answer("runpod", access, (yield from send(httpx.Request("GET", url))))
    if answer.failed:
        raise answer.failure("the result's link leads nowhere", request_id=job)
    if media_type(answer.response.content) is None:
        raise _bad("The result's link leads to no PNG, JPEG or WebP.", job)
    return answer.response.content


def _parsed(link: str) -> httpx.URL | None:
    """A link, if it may be followed: https, a host that is named here, and nothing in between."""
    try:
        url = httpx.URL(link)
    except (httpx.InvalidURL, ValueError):
        return None
    plain = url.scheme == "https" and not url.userinfo and url.port is None
    return url if plain and url.host in RESULT_HOSTS else None


def _worker_error(output: object, access: Access) -> str:
    if not isinstance(output, dict):
        return ""
    errors = output.get("errors")
    first = errors[0] if isinstance(errors, list) and errors else errors
    return quoted(output.get("error") or first, access)


def _seed(output: object) -> int | None:
    """The seed that the worker says it took."""
    first = output[0] if isinstance(output, list) and output else output
    seed = first.get("seed") if isinstance(first, dict) else None
    return seed if isinstance(seed, int) and not isinstance(seed, bool) else None


def _cost(operation: ImageRequest, endpoint: str, done: Json) -> Cost:
    """Public endpoints bill by the megapixel and say so; one's own by the second of its GPU."""
    if endpoint != FLUX:
        ran_ms = number(done.get("executionTime"))
        return Cost({} if ran_ms is None else {"gpu_seconds": ran_ms / 1000})
    said = number(inner(done, "output").get("cost"))
    return Cost(operation.units(), None if said is None else Decimal(str(said)))


def create_endpoint(operation: EndpointCreation, access: Access) -> Flow[EndpointState]:
    """Create a serverless endpoint with our defaults, which are not the vendor's.

    An image without a template gets a hidden template, which is deleted again if the endpoint
    cannot be made.

    Raises:
        VendorFault: what the vendor says.
    """
    template = operation.template_id
    if template is None:
        template = yield from _hidden_template(operation, access)
    fields: Json = {
        "name": operation.name,
        "type": "QUEUE",
        "scaling": {"type": "QUEUE_DELAY", "queueDelay": 4},
        "gpu": {"pools": [operation.gpu_pool], "count": 1},
        "workers": {"min": operation.workers_min, "max": operation.workers_max},
        "templateId": template,
    }
    if operation.volume_ids:
        fields["networkVolumes"] = list(operation.volume_ids)
    try:
        answer = yield from _asked(access, "POST", "/serverless", fields, host="api")
        return _state(answer, template, hidden=operation.template_id is None)
    except VendorFault:
        if operation.template_id is None:
            # The vendor keeps a template that is in use: an endpoint made after all stays whole.
            yield from send(_request(access, "DELETE", f"/templates/{template}", host="api"))
        raise


def read_endpoint(operation: EndpointReading, access: Access) -> Flow[EndpointState]:
    """How an endpoint stands.

    Raises:
        VendorFault: what the vendor says; its status is 404 for one that is gone.
    """
    path = f"/serverless/{_segment(operation.vendor_id)}"
    answer = yield from _asked(access, "GET", path, host="api")
    template = answer.json().get("templateId")
    if not isinstance(template, str):
        return _state(answer, None, hidden=False)
    return _state(answer, template, hidden=(yield from _is_hidden(template, access)))


def delete_endpoint(operation: EndpointDeletion, access: Access) -> Flow[Reply]:
    """Destroy an endpoint and its hidden template; what is gone already counts as destroyed.

    Raises:
        VendorFault: what the vendor says.
    """
    template = operation.template_id
    if template is None:
        try:
            state = yield from read_endpoint(EndpointReading(vendor_id=operation.vendor_id), access)
        except VendorFault as fault:
            if fault.status != 404:
                raise
        else:
            template = state.template_id if state.hidden_template else None
    yield from _deleted(access, f"/serverless/{_segment(operation.vendor_id)}")
    if template is not None:
        yield from _deleted(access, f"/templates/{_segment(template)}")
    return Reply(model="serverless")


def list_gpus(operation: GpuListing, access: Access) -> Flow[GpuCatalog]:  # noqa: ARG001
    """The vendor's catalogue of GPUs, with list prices by the hour.

    Raises:
        VendorFault: what the vendor says.
    """
    answer = yield from _asked(access, "GET", "/catalog/gpus", host="api")
    offered = answer.json().get("gpus")
    rows = [row for row in offered if isinstance(row, dict)] if isinstance(offered, list) else []
    gpus = tuple(_gpu(row, answer) for row in rows if answer.label(row.get("id")))
    return GpuCatalog(gpus=gpus, vendor_request_id=answer.request_id)


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


def _hidden_template(operation: EndpointCreation, access: Access) -> Flow[str]:
    """A template for one endpoint's image; the vendor wants its name to be unique."""
    fields: Json = {
        "name": _HIDDEN + (operation.reference or secrets.token_hex(8)),
        "image": operation.image or DEFAULT_IMAGE,
        "serverless": True,
    }
    answer = yield from _asked(access, "POST", "/templates", fields, host="api")
    template = answer.json().get("id")
    return _segment(template if isinstance(template, str) else "")


def _is_hidden(template: str, access: Access) -> Flow[bool]:
    try:
        answer = yield from _asked(access, "GET", f"/templates/{_segment(template)}", host="api")
    except VendorFault as fault:
        if fault.status == 404:
            return False
        raise
    return str(answer.json().get("name")).startswith(_HIDDEN)


def _state(answer: Answer, template: str | None, *, hidden: bool) -> EndpointState:
    said = answer.json()
    vendor_id, workers = said.get("id"), inner(said, "workers")
    pools = inner(said, "gpu").get("pools")
    least, most = number(workers.get("min")), number(workers.get("max"))
    return EndpointState(
        vendor_id=_segment(vendor_id if isinstance(vendor_id, str) else ""),
        vendor_request_id=answer.request_id,
        name=answer.label(said.get("name")) or "",
        template_id=template,
        hidden_template=hidden,
        gpu_pools=tuple(p for p in pools if isinstance(p, str)) if isinstance(pools, list) else (),
        workers_min=None if least is None else int(least),
        workers_max=None if most is None else int(most),
    )


def _deleted(access: Access, path: str) -> Flow[None]:
    try:
        yield from _asked(access, "DELETE", path, host="api")
    except VendorFault as fault:
        if fault.status != 404:
            raise


def _request(
    access: Access, method: str, path: str, body: Json | None = None, host: str = "jobs"
) -> httpx.Request:
    return httpx.Request(method, access.url(path, host), json=body, headers=bearer(access))


def _asked(
    access: Access, method: str, path: str, body: Json | None = None, host: str = "jobs"
) -> Flow[Answer]:
    """Send a request; the answer, unless it failed."""
    response = yield from send(_request(access, method, path, body, host))
    answer = Answer("runpod", access, response)
    if answer.failed:
        said = answer.json()
        raise answer.failure(said.get("detail") or said.get("error") or said.get("title"))
    return answer


def _segment(name: str) -> str:
    """An id that may stand in a path: what vendors name is never trusted with more than that."""
    if not _ID.fullmatch(name):
        raise _bad("runpod named something by what is no id.")
    return name


def _bad(message: str, job: str | None = None) -> VendorFault:
    return VendorFault(
        ErrorCode.PROVIDER_BAD_RESPONSE, message, retryable=False, vendor_request_id=job
    )


VENDOR = Vendor(
    id="runpod",
    label="V7",
    title="RunPod",
    variable="RUNPOD_API_KEY",
    base_urls={"api": "https://api.runpod.io/v2", "jobs": "https://api.runpod.ai/v2"},
    operations={ImageRequest: image},
    infrastructure={
        EndpointCreation.kind: create_endpoint,
        EndpointReading.kind: read_endpoint,
        EndpointDeletion.kind: delete_endpoint,
        GpuListing.kind: list_gpus,
    },
    models=models("runpod"),
)
