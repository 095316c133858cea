"""RunPod (V7): images and text by serverless workers, and the resources they run on."""

from contextlib import suppress
from dataclasses import replace
from decimal import Decimal

import httpx

from toolkit.contract.errors import ErrorCode
from toolkit.contract.money import from_wire_usd
from toolkit.media.signatures import match_signature
from toolkit.plugins import (
    Access,
    Cost,
    Flow,
    ImageReply,
    ImageRequest,
    PixelBound,
    ProviderError,
    TextReply,
    TextRequest,
    TokenBound,
    Vendor,
    WorkerTime,
    pause,
    report_submission,
    run_in_thread,
    send,
)
from toolkit.vendors import _chat
from toolkit.vendors._chat_stream import STREAM_FIELDS, ChatStreamReader
from toolkit.vendors._http import (
    Classification,
    Json,
    VendorResponse,
    get_first,
    get_object,
    read_numbers,
    redact_excerpt,
    to_finite_number,
)
from toolkit.vendors._prices import load_models
from toolkit.vendors._runpod_api import build_request, check_id, probe, send_request
from toolkit.vendors._runpod_resources import INFRASTRUCTURE, WORKER_PORT
from toolkit.vendors._runpod_worker import (
    RESULTS_URL,
    attach_job_id,
    build_worker_input,
    read_image,
    read_seed,
)

SERVED_MODEL = "served-by-the-endpoint"
# Public endpoints that generate text, with the names of their models on the chat wire.
PUBLIC_TEXT_MODELS = {"qwen3-32b-awq": "Qwen/Qwen3-32B-AWQ"}
JOB_POLICY = {"executionTimeout": 600_000}  # in milliseconds
MAX_START_S = 300.0  # assumed maximum of a worker's billed start
POLL_DELAYS_S = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0)  # the last repeats
MAX_JOB_WAIT_S = 1200.0
MAX_COLD_START_S = 60.0  # longest start of a worker; a job that waits longer lacks a free GPU
# Statuses of a pod's proxy before the worker listens: the work was not accepted.
_NOT_READY_STATUSES = frozenset({404, 502, 503, 521, 522})
MAX_POD_WAIT_S = 600.0
MAX_LOST_POLLS = 8  # consecutive failed polls before a job counts as out of reach
_LIVE_STATES = ("IN_QUEUE", "IN_PROGRESS", "RUNNING", "COMPLETED")
_FAILED_STATES: dict[str, Classification] = {
    "FAILED": (ErrorCode.PROVIDER_REJECTED, False),
    "CANCELLED": (ErrorCode.PROVIDER_UNAVAILABLE, False),
    # No retry, because it would take, and be billed, as long again.
    "TIMED_OUT": (ErrorCode.PROVIDER_TIMEOUT, False),
}


def generate_image(operation: ImageRequest, access: Access) -> Flow[ImageReply]:
    """Queue an image at a serverless worker, poll until it is done, and return its bytes.

    If the request names a pod, the pod draws it (`generate_image_in_pod`). Work that was submitted
    before a crash is resumed by `access.resume`, never sent again.

    Raises:
        ProviderError: the queue or the worker failed; `PROVIDER_BAD_RESPONSE` for an output
            without an image or with a link to an untrusted host.
    """
    if access.pod is not None:
        return (yield from generate_image_in_pod(operation, access, access.pod))
    endpoint = check_id(access.endpoint or access.model)
    job = access.resume
    if job is None:
        work: Json = {"input": build_worker_input(operation, endpoint), "policy": JOB_POLICY}
        # Not `runsync`, because its id comes late and its result is kept for only a minute.
        answer = yield from send_request(access, "POST", f"/{endpoint}/run", work)
        job = check_id(answer.json().get("id"))
    cancel = build_request(access, "POST", f"/{endpoint}/cancel/{check_id(job)}")
    yield from report_submission(job, cancel)
    body = yield from _await_job(access, endpoint, job, cancel)
    model = access.model if access.endpoint is None else "serverless"
    cost = _calculate_cost(operation, access, body)
    return (yield from _build_reply(body.get("output"), access, job, model, cost))


def generate_image_in_pod(operation: ImageRequest, access: Access, pod: str) -> Flow[ImageReply]:
    """Have the worker in a pod draw, by the API that the vendor's SDK serves in the pod.

    The proxy of a pod needs no key, and the container is not the vendor's, so no key is sent.
    The pod is billed by the hour in any case, so the cost of its work is 0.

    Raises:
        ProviderError: the worker failed; `PROVIDER_TIMEOUT` if no worker answers in the pod.
    """
    work: Json = {"input": build_worker_input(operation, "")}
    url = _build_pod_url(access, check_id(pod))
    waited, turn = 0.0, 0
    while True:
        answer = VendorResponse(access, (yield from send(httpx.Request("POST", url, json=work))))
        if answer.status not in _NOT_READY_STATUSES:
            break
        if waited >= MAX_POD_WAIT_S:
            raise answer.build_error(
                (ErrorCode.PROVIDER_TIMEOUT, False),
                f"No image worker answered in the pod for {MAX_POD_WAIT_S:.0f} s.",
            )
        delay = POLL_DELAYS_S[min(turn, len(POLL_DELAYS_S) - 1)]
        yield from pause(delay, "cold_start")
        waited, turn = waited + delay, turn + 1
    body = yield from run_in_thread(answer.json)  # an embedded image has megabytes
    if answer.is_failure:
        raise answer.build_failure(body.get("error") or body.get("detail"))
    job = answer.read_label(body.get("id")) or pod
    if body.get("status") != "COMPLETED":
        words = redact_excerpt(body.get("error"), access)
        raise ProviderError(
            ErrorCode.PROVIDER_REJECTED,
            f"The worker's job failed: {words}" if words else "The worker's job failed.",
            vendor_request_id=job,
        )
    cost = Cost(operation.units(), Decimal(0))
    return (yield from _build_reply(body.get("output"), access, job, "pod", cost))


def _build_reply(
    output: object, access: Access, job: str, model: str, cost: Cost
) -> Flow[ImageReply]:
    """Build the reply with the image of a worker's output."""
    data = yield from read_image(output, access, job)
    return ImageReply(
        image=data,
        media_type=match_signature(data) or "application/octet-stream",
        seed=read_seed(output),
        model=model,
        vendor_request_id=job,
        cost=cost,
    )


def _build_pod_url(access: Access, pod: str) -> str:
    """Build the URL of a pod's worker: on the pod's own host, or below a gateway's path."""
    base = access.url("", "pods")
    host = base.replace("{pod}", pod) if "{pod}" in base else f"{base}/{pod}"
    return f"{host}/runsync"


def generate_text(operation: TextRequest, access: Access) -> Flow[TextReply]:
    """Generate text at an endpoint whose worker has the OpenAI-compatible chat API.

    An endpoint of the caller's is asked for the model it serves, unless a model is named. Without
    an endpoint, the public endpoint of the model is asked.

    Raises:
        ProviderError: the worker failed; `PROVIDER_REJECTED` without any endpoint.
    """
    public = PUBLIC_TEXT_MODELS.get(access.model) if access.endpoint is None else None
    if access.endpoint is None and public is None:
        raise ProviderError(
            ErrorCode.PROVIDER_REJECTED,
            "runpod generates this only on your own endpoint: give its id in options.endpoint_id.",
        )
    at = f"/{check_id(access.endpoint or access.model)}/openai/v1"
    model = public or access.model
    if access.endpoint is not None and model in (SERVED_MODEL, *PUBLIC_TEXT_MODELS):
        listed = (yield from send_request(access, "GET", f"{at}/models")).json()
        model = str(get_first(listed, "data").get("id", ""))
    fields = _chat.build_body(operation, replace(access, model=model), schema_in_prompt=True)
    fields["max_tokens"] = fields.pop("max_completion_tokens")  # workers know the older name
    if public is not None:
        # The model's thoughts are billed like the answer, and precede it. Servers that do not know
        # this field of vLLM ignore it.
        fields["chat_template_kwargs"] = {"enable_thinking": False}
    reader = None
    if operation.stream:
        fields |= STREAM_FIELDS
        reader = ChatStreamReader()
    path = f"{at}/chat/completions"
    answer = yield from send_request(access, "POST", path, fields, stream=reader)
    return _chat.parse_reply(answer, answer.json(), operation)


def _await_job(access: Access, endpoint: str, job: str, cancel: httpx.Request) -> Flow[Json]:
    """Poll a job until it is completed, with growing delays; cancel it after 20 minutes.

    Raises:
        ProviderError: the job failed, took too long, or its state could not be read.
    """
    waited, turn, lost = 0.0, 0, 0
    while waited < MAX_JOB_WAIT_S:
        detail, delay = None, POLL_DELAYS_S[min(turn, len(POLL_DELAYS_S) - 1)]
        try:
            body = yield from _read_status(access, endpoint, job)
        except ProviderError as fault:
            # Retry, because another poll costs nothing.
            lost += 1
            if not fault.retryable or lost == MAX_LOST_POLLS:
                raise attach_job_id(fault, job) from None
            delay = max(delay, fault.retry_after or 0.0)
        else:
            lost = 0
            if body["status"] == "COMPLETED":
                return body
            if body["status"] == "IN_QUEUE":
                detail = "cold_start" if waited < MAX_COLD_START_S else "waiting_capacity"
        yield from pause(delay, detail)
        waited, turn = waited + delay, turn + 1
    with suppress(ProviderError):
        yield from send(cancel, free=True)
    raise ProviderError(
        ErrorCode.PROVIDER_TIMEOUT,
        f"The worker did not finish in {MAX_JOB_WAIT_S:.0f} s; its job was cancelled.",
        retryable=False,
        vendor_request_id=job,
    )


def _read_status(access: Access, endpoint: str, job: str) -> Flow[Json]:
    """Return the state of a job, or raise the error of a failed job."""
    answer = yield from send_request(access, "GET", f"/{endpoint}/status/{job}")
    body = yield from run_in_thread(answer.json)  # an embedded image has megabytes
    status = str(body.get("status"))
    if status in _FAILED_STATES:
        code, retryable = _FAILED_STATES[status]
        words = redact_excerpt(body.get("error") or get_object(body, "output").get("error"), access)
        message = f"The worker's job is {status.lower().replace('_', ' ')}"
        message += f": {words}" if words else "."
        raise ProviderError(code, message, retryable=retryable)
    if status not in _LIVE_STATES:
        raise answer.build_bad_response("runpod returned an unknown status of the job.")
    return body


def _calculate_cost(operation: ImageRequest, access: Access, body: Json) -> Cost:
    """Return the cost: a public endpoint reports a price, the caller's own bills GPU seconds.

    The units are empty if the caller's endpoint reports no execution time.
    """
    if access.endpoint is not None:
        ran_ms, waited_ms = read_numbers(body, "executionTime", "delayTime")
        if ran_ms is None:
            return Cost()
        # The vendor does not say which part of the delay was a worker's start, which is billed.
        start_s = min((waited_ms or 0.0) / 1000, MAX_START_S)
        return Cost({"gpu_seconds": ran_ms / 1000 + start_s})
    price = to_finite_number(get_object(body, "output").get("cost"))
    return Cost(operation.units(), from_wire_usd(price))


VENDOR = Vendor(
    id="runpod",
    label="V7",
    title="RunPod",
    variable="RUNPOD_API_KEY",
    base_urls={
        "api": "https://api.runpod.io/v2",
        "jobs": "https://api.runpod.ai/v2",
        "images": RESULTS_URL,
        "pods": f"https://{{pod}}-{WORKER_PORT}.proxy.runpod.net",
    },
    operations={ImageRequest: generate_image, TextRequest: generate_text},
    on_endpoint=frozenset({"text"}),
    in_pod=frozenset({"image"}),
    endpoint_time=WorkerTime(
        "guide to serverless pricing: by the second, from a worker's start to its stop; the time"
        " limit is ours; the time of a start has no limit, so the value is far above the usual",
        limit_s=JOB_POLICY["executionTimeout"] / 1000,
        start_s=MAX_START_S,
        idle_s=5.0,
    ),
    infrastructure=INFRASTRUCTURE,
    models=load_models("runpod"),
    bounds={
        ImageRequest: PixelBound("page of the public endpoint: by the megapixel"),
        TextRequest: TokenBound(
            "page of the public endpoint: max_tokens limits the output; vLLM's server, which is"
            " the worker, counts thoughts and answer"
        ),
    },
    probe=probe,
)
