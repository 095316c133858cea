"""Requests to RunPod's image workers and their answers, be they serverless or in a pod."""

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
from toolkit.vendors._http import REFUSED, Json, VendorResponse, redact_excerpt
from toolkit.vendors._images import find_embedded_image, find_links
from toolkit.vendors._runpod_api import build_bad_response

# Where the vendor keeps results: the only address that they are fetched from, without the key.
RESULTS_URL = "https://image.runpod.ai"
FLUX_PREFIX = "black-forest-labs-flux"  # the public endpoints of that family
SCHNELL_MODEL = "black-forest-labs-flux-1-schnell"
MAX_SCHNELL_STEPS = 8  # it was made for few, and refuses more


def build_worker_input(operation: ImageRequest, endpoint: str) -> Json:
    """Build the fields that all workers share; they refuse those they do not know."""
    width, height = operation.width, operation.height
    fields: Json = {"prompt": operation.prompt, "num_inference_steps": operation.steps}
    if endpoint.startswith(FLUX_PREFIX):
        # They take multiples of 64 only. Less, not more: the estimate has to hold.
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
    """Return the image of a worker's output: in it, or where it links to.

    Raises:
        ProviderError: `PROVIDER_REJECTED` for a worker's refusal, `PROVIDER_BAD_RESPONSE` for an
            output without an image, or one on a host that results are not fetched from.
    """
    data = yield from run_in_thread(find_embedded_image, output)
    return data if data is not None else (yield from _fetch_result(output, access, job))


def attach_job_id(fault: ProviderError, job: str) -> ProviderError:
    """Attach a job's id to an error in asking about it: the next try takes the job up again."""
    gone = fault.status == 404
    return ProviderError(
        ErrorCode.PROVIDER_BAD_RESPONSE if gone else fault.code,
        "runpod does not know the job any more: results are kept for half an hour."
        if gone
        else fault.message,
        retryable=fault.retryable,
        retry_after=fault.retry_after,
        status=fault.status,
        vendor_request_id=job,
    )


def _fetch_result(output: object, access: Access, job: str) -> Flow[bytes]:
    """Fetch the first result that is linked to, from a host that is known to keep them."""
    found = find_links(output)
    url = next(
        (url for link in found if (url := _check_result_link(link, access)) is not None), None
    )
    if url is None:
        if found:
            raise build_bad_response(
                "The output links to a host that results are not fetched from.", job
            )
        words = _read_worker_error(output, access)
        if words:
            code, retryable = REFUSED
            said = f"The worker refused this: {words}"
            raise ProviderError(code, said, retryable=retryable, vendor_request_id=job)
        raise build_bad_response("The worker's output has no image in it.", job)
    try:
        request = httpx.Request("GET", url, extensions=_build_extensions(access))
        answer = VendorResponse("runpod", access, (yield from send(request)))
    except ProviderError as fault:
        raise attach_job_id(fault, job) from None
    if answer.is_failure or not is_picture(answer.response.content):
        later = answer.status >= 500 or answer.status == 429
        raise answer.build_error(
            (ErrorCode.PROVIDER_UNAVAILABLE if later else ErrorCode.PROVIDER_BAD_RESPONSE, later),
            f"The result's link leads to no PNG, JPEG or WebP ({answer.status}).",
            request_id=job,
        )
    return answer.response.content


def _build_extensions(access: Access) -> dict[str, object]:
    """Let a download go to public addresses only, unless the operator has set a host of theirs."""
    return {PUBLIC_ONLY: access.url("", "images") == RESULTS_URL}


def _check_result_link(link: str, access: Access) -> httpx.URL | None:
    """Return a link if it may be followed: it leads below the address that results are kept at.

    That address is the vendor's file's, over https, unless the operator has set another one. The
    key never goes there.
    """
    try:
        url, kept = httpx.URL(link), httpx.URL(access.url("/", "images"))
    except (httpx.InvalidURL, ValueError):
        return None
    same = (url.scheme, url.host, url.port) == (kept.scheme, kept.host, kept.port)
    return url if same and not url.userinfo and url.path.startswith(kept.path) else None


def _read_worker_error(output: object, access: Access) -> str:
    if not isinstance(output, dict):
        return ""
    errors = output.get("errors")
    first = errors[0] if isinstance(errors, list) and errors else errors
    return redact_excerpt(output.get("error") or first, access)


def read_seed(output: object) -> int | None:
    """Return the seed that the worker says it took."""
    first = output[0] if isinstance(output, list) and output else output
    seed = first.get("seed") if isinstance(first, dict) else None
    return seed if isinstance(seed, int) and not isinstance(seed, bool) else None
