"""Requests to RunPod's two APIs, for jobs and for management."""

import re

import httpx

from toolkit.contract.errors import ErrorCode
from toolkit.plugins import Access, Flow, ProviderError, send
from toolkit.plugins.streaming import StreamReader
from toolkit.vendors._http import REFUSED, Json, VendorResponse, build_bearer_headers
from toolkit.vendors._wire import VendorWire

_ID_PATTERN = re.compile(r"[A-Za-z0-9_-]{1,128}")


def build_request(
    access: Access, method: str, path: str, body: Json | None = None, host: str = "jobs"
) -> httpx.Request:
    """Build a request to the job API, or to the management API at the host `api`."""
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
    """Send a request, and return the answer.

    Raises:
        ProviderError: the answer's status is a failure.
    """
    response = yield from send(build_request(access, method, path, body, host), stream=stream)
    answer = VendorResponse(access, response)
    if answer.is_failure:
        raise _build_failure(answer, answer.json())
    return answer


def _build_failure(answer: VendorResponse, body: Json) -> ProviderError:
    words = body.get("detail") or body.get("error") or body.get("title")
    errors = body.get("errors")
    texts = [text for text in errors if isinstance(text, str)] if isinstance(errors, list) else []
    if isinstance(words, str) and texts:
        words = f"{words.rstrip('.')}: {'; '.join(texts)}"
    # 409 is a conflict with the present state, not an outage: a retry would be refused, too.
    return answer.build_failure(words, verdict=REFUSED if answer.status == 409 else None)


def check_id(name: object) -> str:
    """Return an id if it is safe in a path, because ids of the vendor are not trusted.

    Raises:
        ProviderError: `PROVIDER_BAD_RESPONSE` for a value that is no id.
    """
    if not isinstance(name, str) or not _ID_PATTERN.fullmatch(name):
        raise build_bad_response("An id of a runpod resource is not valid.")
    return name


def build_bad_response(message: str, job: str | None = None) -> ProviderError:
    """Build an error for a bad answer that a retry would not cure."""
    return ProviderError(
        ErrorCode.PROVIDER_BAD_RESPONSE, message, retryable=False, vendor_request_id=job
    )


probe = VendorWire(_build_failure).make_probe("/serverless")
