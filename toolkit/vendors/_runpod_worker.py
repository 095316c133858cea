"""Requests to RunPod's image workers and their answers, be they serverless or in a pod."""

import httpx

from toolkit.contract.errors import ErrorCode
from toolkit.plugins import (
    PUBLIC_ONLY,
    Access,
    Flow,
    ImageRequest,
    VendorFault,
    run_in_thread,
    send,
)
from toolkit.vendors._http import REFUSED, Answer, Json, quoted
from toolkit.vendors._pictures import embedded, links, media_type
from toolkit.vendors._runpod import bad

# Where the vendor keeps results: the only address that they are fetched from, without the key.
RESULTS = "https://image.runpod.ai"
FLUX = "black-forest-labs-flux"  # the public endpoints of that family
SCHNELL = "black-forest-labs-flux-1-schnell"
SCHNELL_STEPS = 8  # it was made for few, and refuses more


def worker_input(operation: ImageRequest, endpoint: str) -> Json:
    """Build the fields that all workers share; they refuse those they do not know."""
    width, height = operation.width, operation.height
    fields: Json = {"prompt": operation.prompt, "num_inference_steps": operation.steps}
    if endpoint.startswith(FLUX):
        # They take multiples of 64 only. Less, not more: the estimate has to hold.
        width, height = width - width % 64, height - height % 64
        fields["image_format"] = "png"
    if endpoint == SCHNELL:
        fields["num_inference_steps"] = min(operation.steps, SCHNELL_STEPS)
    fields |= {"width": width, "height": height}
    if operation.negative_prompt:
        fields["negative_prompt"] = operation.negative_prompt
    if operation.seed is not None:
        fields["seed"] = operation.seed
    return fields


def picture(output: object, access: Access, job: str) -> Flow[bytes]:
    """Return the image of a worker's output: in it, or where it links to.

    Raises:
        VendorFault: `PROVIDER_REJECTED` for a worker's refusal, `PROVIDER_BAD_RESPONSE` for an
            output without an image, or one on a host that results are not fetched from.
    """
    data = yield from run_in_thread(embedded, output)
    return data if data is not None else (yield from _fetched(output, access, job))


def of_job(fault: VendorFault, job: str) -> VendorFault:
    """Attach a job's id to an error in asking about it: the next try takes the job up again."""
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
    """Fetch the first result that is linked to, from a host that is known to keep them."""
    found = links(output)
    url = next((url for link in found if (url := _result(link, access)) is not None), None)
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
        request = httpx.Request("GET", url, extensions=_bounds(access))
        answer = Answer("runpod", access, (yield from send(request)))
    except VendorFault as fault:
        raise of_job(fault, job) from None
    if answer.failed or media_type(answer.response.content) is None:
        later = answer.status >= 500 or answer.status == 429
        raise answer.fault(
            (ErrorCode.PROVIDER_UNAVAILABLE if later else ErrorCode.PROVIDER_BAD_RESPONSE, later),
            f"The result's link leads to no PNG, JPEG or WebP ({answer.status}).",
            request_id=job,
        )
    return answer.response.content


def _bounds(access: Access) -> dict[str, object]:
    """Let a download go to public addresses only, unless the operator has set a host of theirs."""
    return {PUBLIC_ONLY: access.url("", "images") == RESULTS}


def _result(link: str, access: Access) -> httpx.URL | None:
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


def _worker_error(output: object, access: Access) -> str:
    if not isinstance(output, dict):
        return ""
    errors = output.get("errors")
    first = errors[0] if isinstance(errors, list) and errors else errors
    return quoted(output.get("error") or first, access)


def seed_of(output: object) -> int | None:
    """Return the seed that the worker says it took."""
    first = output[0] if isinstance(output, list) and output else output
    seed = first.get("seed") if isinstance(first, dict) else None
    return seed if isinstance(seed, int) and not isinstance(seed, bool) else None
