"""Requests to RunPod's image workers, serverless or in a pod, and their answers."""

import re
from collections.abc import Iterator

import httpx

from toolkit.contract.errors import ErrorCode
from toolkit.media.signatures import is_picture
from toolkit.plugins import (
    PUBLIC_ONLY,
    Access,
    Flow,
    ImageRequest,
    ProviderError,
    run_in_thread,
    send,
)
from toolkit.vendors._encodings import decode_base64
from toolkit.vendors._http import REFUSED, Json, VendorResponse, redact_excerpt
from toolkit.vendors._runpod_api import build_bad_response

# The only host that results are fetched from, without the key.
RESULTS_URL = "https://image.runpod.ai"
FLUX_PREFIX = "black-forest-labs-flux"  # the public endpoints of that family
SCHNELL_MODEL = "black-forest-labs-flux-1-schnell"
MAX_SCHNELL_STEPS = 8  # the model was made for few steps, and refuses more
_DATA_URI = re.compile(r"\Adata:image/[\w.+-]+;base64,", re.I)
_LINK = re.compile(r"\A[a-z][a-z0-9+.-]*://", re.I)


def build_worker_input(operation: ImageRequest, endpoint: str) -> Json:
    """Build the fields that all workers share, because workers refuse unknown fields."""
    width, height = operation.width, operation.height
    fields: Json = {"prompt": operation.prompt, "num_inference_steps": operation.steps}
    if endpoint.startswith(FLUX_PREFIX):
        # FLUX accepts multiples of 64 only. Round down, so that the estimate holds.
        width, height = width - width % 64, height - height % 64
        fields["image_format"] = "png"
    if endpoint == SCHNELL_MODEL:
        fields["num_inference_steps"] = min(operation.steps, MAX_SCHNELL_STEPS)
    fields |= {"width": width, "height": height}
    if operation.negative_prompt:
        fields["negative_prompt"] = operation.negative_prompt
    if operation.seed is not None:
        fields["seed"] = operation.seed
    return fields


def read_image(output: object, access: Access, job: str) -> Flow[bytes]:
    """Return the image that a worker's output contains or links to.

    Raises:
        ProviderError: `PROVIDER_REJECTED` for a worker's refusal, `PROVIDER_BAD_RESPONSE` for an
            output without an image or with a link to an untrusted host.
    """
    data = yield from run_in_thread(find_embedded_image, output)
    return data if data is not None else (yield from _fetch_result(output, access, job))


def attach_job_id(fault: ProviderError, job: str) -> ProviderError:
    """Return an error of a status request with the job's id, so that a retry resumes the job.

    A 404 becomes `PROVIDER_BAD_RESPONSE`, because the vendor no longer has the job.
    """
    is_gone = fault.status == 404
    return ProviderError(
        ErrorCode.PROVIDER_BAD_RESPONSE if is_gone else fault.code,
        "runpod no longer has the job: it keeps results for 30 minutes."
        if is_gone
        else fault.message,
        retryable=fault.retryable,
        retry_after=fault.retry_after,
        status=fault.status,
        vendor_request_id=job,
    )


def _fetch_result(output: object, access: Access, job: str) -> Flow[bytes]:
    """Fetch the first linked result whose host is trusted; reject an output without any."""
    links = [text for text in _iter_texts(output) if _LINK.match(text)]
    url = next(
        (url for link in links if (url := _check_result_link(link, access)) is not None), None
    )
    if url is None:
        if links:
            raise build_bad_response(
                "The output links to a host that is not trusted for results.", job
            )
        words = _read_worker_error(output, access)
        if words:
            code, retryable = REFUSED
            message = f"The worker refused the request: {words}"
            raise ProviderError(code, message, retryable=retryable, vendor_request_id=job)
        raise build_bad_response("The worker's output has no image in it.", job)
    try:
        # An operator may have set another host, which need not be public.
        public_only = access.url("", "images") == RESULTS_URL
        request = httpx.Request("GET", url, extensions={PUBLIC_ONLY: public_only})
        answer = VendorResponse(access, (yield from send(request)))
    except ProviderError as fault:
        raise attach_job_id(fault, job) from None
    if answer.is_failure or not is_picture(answer.response.content):
        is_transient = answer.status >= 500 or answer.status == 429
        raise answer.build_error(
            (
                ErrorCode.PROVIDER_UNAVAILABLE if is_transient else ErrorCode.PROVIDER_BAD_RESPONSE,
                is_transient,
            ),
            f"The result's link does not return a PNG, JPEG or WebP ({answer.status}).",
            request_id=job,
        )
    return answer.response.content


def _check_result_link(link: str, access: Access) -> httpx.URL | None:
    """Return a link if it leads below the address of results, or None if it must not be followed.

    The address is `RESULTS_URL`, over https, unless the operator has set another. The key never
    goes there.
    """
    try:
        url, base = httpx.URL(link), httpx.URL(access.url("/", "images"))
    except (httpx.InvalidURL, ValueError):
        return None
    same = (url.scheme, url.host, url.port) == (base.scheme, base.host, base.port)
    return url if same and not url.userinfo and url.path.startswith(base.path) else None


def _read_worker_error(output: object, access: Access) -> str:
    if not isinstance(output, dict):
        return ""
    errors = output.get("errors")
    first = errors[0] if isinstance(errors, list) and errors else errors
    return redact_excerpt(output.get("error") or first, access)


def read_seed(output: object) -> int | None:
    """Return the seed that the worker reports, or None if it reports none."""
    first = output[0] if isinstance(output, list) and output else output
    seed = first.get("seed") if isinstance(first, dict) else None
    return seed if isinstance(seed, int) and not isinstance(seed, bool) else None


def find_embedded_image(output: object) -> bytes | None:
    """Return the first picture in an output, as a data URI or plain base64; None without any."""
    for text in _iter_texts(output):
        if _LINK.match(text):
            continue
        try:
            data = decode_base64(_DATA_URI.sub("", text, count=1))
        except ValueError:
            continue
        if is_picture(data):
            return data
    return None


def _iter_texts(output: object) -> Iterator[str]:
    """Yield every text that may be a picture, in the documented shapes of workers' outputs."""
    match output:
        case str():
            yield output
        case list():
            for item in output:
                yield from _iter_texts(item)
        case dict():
            for name in ("images", "image", "image_url", "data"):
                yield from _iter_texts(output.get(name))
