"""RunPod (V7): images and text by serverless workers, and the endpoints they run on."""

from contextlib import suppress
from decimal import Decimal

import httpx

from toolkit.contract.errors import ErrorCode
from toolkit.plugins import (
    Access,
    Cost,
    Flow,
    ImageReply,
    ImageRequest,
    TextReply,
    TextRequest,
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
    GpuListing,
    PodAction,
    PodCreation,
    PodReading,
    TemplateCreation,
    TemplateDeletion,
    TemplateListing,
    VolumeCreation,
    VolumeDeletion,
    VolumeListing,
)
from toolkit.vendors import _chat
from toolkit.vendors._http import REFUSED, Answer, Json, Verdict, inner, number, quoted
from toolkit.vendors._pictures import embedded, links, media_type
from toolkit.vendors._prices import models
from toolkit.vendors._runpod import (
    asked,
    bad,
    create_endpoint,
    delete_endpoint,
    list_gpus,
    probe,
    read_endpoint,
    segment,
    to,
)
from toolkit.vendors._runpod_stock import (
    act_on_pod,
    create_pod,
    create_template,
    create_volume,
    delete_template,
    delete_volume,
    list_templates,
    list_volumes,
    read_pod,
)

FLUX = "black-forest-labs-flux"  # the public endpoints of that family
SERVED = "served-by-the-endpoint"
# The only hosts that results are fetched from: over https, and without the key.
RESULT_HOSTS = frozenset({"image.runpod.ai"})

POLICY = {"executionTimeout": 600_000}  # in milliseconds
POLL_S = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0)  # then as the last
PATIENCE_S = 1200.0
COLD_START_S = 60.0  # what waits longer than a worker takes to start waits for a free GPU
LOST_POLLS = 8  # in a row, before a job counts as out of reach
_STATES = ("IN_QUEUE", "IN_PROGRESS", "RUNNING", "COMPLETED")
_ENDED: dict[str, Verdict] = {
    "FAILED": (ErrorCode.PROVIDER_REJECTED, False),
    "CANCELLED": (ErrorCode.PROVIDER_UNAVAILABLE, False),
    # Again would take, and be billed, as long again.
    "TIMED_OUT": (ErrorCode.PROVIDER_TIMEOUT, False),
}


def image(operation: ImageRequest, access: Access) -> Flow[ImageReply]:
    """Queue an image at a serverless worker, ask until it is done, and bring back its bytes.

    Work that was submitted before a crash is taken up by `access.resume`, never sent again.

    Raises:
        VendorFault: what the queue or the worker says; `PROVIDER_BAD_RESPONSE` for an output
            without an image, or one on a host that results are not fetched from.
    """
    endpoint = segment(access.endpoint or access.model)
    job = access.resume
    if job is None:
        work: Json = {"input": _worker_input(operation, endpoint), "policy": POLICY}
        # Not `runsync`: its id comes late, and its result is kept for a minute only.
        answer = yield from asked(access, "POST", f"/{endpoint}/run", work)
        job = segment(answer.json().get("id"))
    cancel = to(access, "POST", f"/{endpoint}/cancel/{segment(job)}")
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
        cost=_cost(operation, access, done),
    )


def text(operation: TextRequest, access: Access) -> Flow[TextReply]:
    """Generate text at an endpoint of one's own whose worker speaks the OpenAI-compatible wire.

    The model is the one the endpoint serves: it is asked for unless the operator named one.

    Raises:
        VendorFault: as the worker's status says; `PROVIDER_REJECTED` without an endpoint.
    """
    if access.endpoint is None:
        raise VendorFault(
            ErrorCode.PROVIDER_REJECTED,
            "runpod generates text at an endpoint of yours alone: name it by options.endpoint_id.",
        )
    at = f"/{segment(access.endpoint)}/openai/v1"
    model = access.model
    if model == SERVED:
        listed = (yield from asked(access, "GET", f"{at}/models")).json().get("data")
        first = listed[0] if isinstance(listed, list) and listed else None
        model = str(first.get("id")) if isinstance(first, dict) else ""
    fields = _chat.body(operation, model, schema_in_prompt=True)
    fields["max_tokens"] = fields.pop("max_completion_tokens")  # workers know the older name
    answer = yield from asked(access, "POST", f"{at}/chat/completions", fields)
    return _chat.reply(answer, answer.json(), operation)


def _worker_input(operation: ImageRequest, endpoint: str) -> Json:
    """The fields that all workers share; they refuse those they do not know."""
    width, height = operation.width, operation.height
    fields: Json = {"prompt": operation.prompt, "num_inference_steps": operation.steps}
    if endpoint.startswith(FLUX):
        # They take multiples of 64 only. Less, not more: the estimate has to hold.
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
        detail, delay = None, POLL_S[min(turn, len(POLL_S) - 1)]
        try:
            said = yield from _status(access, endpoint, job)
        except VendorFault as fault:
            # To ask again costs nothing, whatever became of this question.
            lost += 1
            if not fault.retryable or lost == LOST_POLLS:
                raise _of_job(fault, job) from None
            delay = max(delay, fault.retry_after or 0.0)
        else:
            lost = 0
            if said["status"] == "COMPLETED":
                return said
            if said["status"] == "IN_QUEUE":
                detail = "cold_start" if waited < COLD_START_S else "waiting_capacity"
        yield from pause(delay, detail)
        waited, turn = waited + delay, turn + 1
    with suppress(VendorFault):
        yield from send(cancel)
    raise VendorFault(
        ErrorCode.PROVIDER_TIMEOUT,
        f"The worker did not finish in {PATIENCE_S:.0f} s; its job was cancelled.",
        retryable=False,
        vendor_request_id=job,
    )


def _status(access: Access, endpoint: str, job: str) -> Flow[Json]:
    """A job as it stands, unless it has ended badly."""
    answer = yield from asked(access, "GET", f"/{endpoint}/status/{job}")
    said = yield from compute(answer.json)  # an image in it makes it megabytes
    status = str(said.get("status"))
    if status in _ENDED:
        code, retryable = _ENDED[status]
        words = quoted(said.get("error") or inner(said, "output").get("error"), access)
        message = f"The worker's job is {status.lower().replace('_', ' ')}"
        message += f": {words}" if words else "."
        raise VendorFault(code, message, retryable=retryable)
    if status not in _STATES:
        raise answer.fault(
            (ErrorCode.PROVIDER_BAD_RESPONSE, None), "runpod did not say how the job stands."
        )
    return said


def _of_job(fault: VendorFault, job: str) -> VendorFault:
    """A fault in asking about a job: the job is known, so trying again takes it up again."""
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
            raise bad("The output links to a host that results are not fetched from.", job)
        words = _worker_error(output, access)
        if words:
            code, retryable = REFUSED
            said = f"The worker refused this: {words}"
            raise VendorFault(code, said, retryable=retryable, vendor_request_id=job)
        raise bad("The worker's output has no image in it.", job)
    try:
        answer = Answer("runpod", access, (yield from send(httpx.Request("GET", url))))
    except VendorFault as fault:
        raise _of_job(fault, job) from None
    if answer.failed or media_type(answer.response.content) is None:
        later = answer.status >= 500 or answer.status == 429
        raise answer.fault(
            (ErrorCode.PROVIDER_UNAVAILABLE if later else ErrorCode.PROVIDER_BAD_RESPONSE, later),
            f"The result's link leads to no PNG, JPEG or WebP ({answer.status}).",
            request_id=job,
        )
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


def _cost(operation: ImageRequest, access: Access, done: Json) -> Cost:
    """Public endpoints bill by the megapixel and say so; one's own by the second of its GPU."""
    if access.endpoint is not None:
        ran_ms = number(done.get("executionTime"))
        return Cost({} if ran_ms is None else {"gpu_seconds": ran_ms / 1000})
    said = number(inner(done, "output").get("cost"))
    return Cost(operation.units(), None if said is None else Decimal(str(said)))


VENDOR = Vendor(
    id="runpod",
    label="V7",
    title="RunPod",
    variable="RUNPOD_API_KEY",
    base_urls={"api": "https://api.runpod.io/v2", "jobs": "https://api.runpod.ai/v2"},
    operations={ImageRequest: image, TextRequest: text},
    on_endpoint=frozenset({"text"}),
    infrastructure={
        EndpointCreation.kind: create_endpoint,
        EndpointReading.kind: read_endpoint,
        EndpointDeletion.kind: delete_endpoint,
        GpuListing.kind: list_gpus,
        PodCreation.kind: create_pod,
        PodReading.kind: read_pod,
        PodAction.kind: act_on_pod,
        TemplateCreation.kind: create_template,
        TemplateListing.kind: list_templates,
        TemplateDeletion.kind: delete_template,
        VolumeCreation.kind: create_volume,
        VolumeListing.kind: list_volumes,
        VolumeDeletion.kind: delete_volume,
    },
    models=models("runpod"),
    probe=probe,
)
