"""Links: signed URLs of artifacts' bytes, which a service may send in place of the bytes."""

import hashlib
from collections.abc import Mapping
from typing import Any

import httpx

from toolkit.contract.errors import AWAY_STATUSES, ErrorCode, ServiceError

LINK_STATUS = 307


def find_link(response: httpx.Response) -> str | None:
    """Find the URL that a response has in place of bytes; return None if it has bytes.

    Raises:
        ServiceError: `UNAVAILABLE` for a URL that is not http or https.
    """
    if response.status_code != LINK_STATUS:
        return None
    link = str(response.headers.get("location", ""))
    if not link.startswith(("https://", "http://")):
        raise ServiceError(ErrorCode.UNAVAILABLE, "The service answered with an invalid link.")
    return link


def make_link_options(link: str, headers: Mapping[str, str]) -> dict[str, Any]:
    """Make the options of a request to a signed URL.

    The signature is only in the raw target, because httpx logs the URLs of requests.
    """
    url = httpx.URL(link)
    target = {"target": url.raw_path}
    return {"url": url.copy_with(query=None), "headers": headers, "extensions": target}


def read_linked_bytes(
    answer: httpx.Response, response: httpx.Response, span: tuple[int, int | None]
) -> bytes:
    """Return the bytes that the storage answered with.

    Args:
        answer: response of the storage.
        response: response of the service with the link; its `ETag` is the SHA-256 of all bytes.
        span: requested bytes, as start and end.

    Raises:
        ServiceError: `UNAVAILABLE` if the storage sent an error, or other bytes.
    """
    if answer.status_code not in (200, 206):
        raise make_storage_error(f"answered {answer.status_code}", away=_is_passing(answer))
    data, (start, end) = answer.content, span
    if answer.status_code == 200:
        sha256 = response.headers.get("etag", "").strip('"')
        if sha256 and hashlib.sha256(data).hexdigest() != sha256:
            raise make_storage_error("sent bytes that differ from the stored bytes", away=False)
        data = data[start:end]
    return data


def make_storage_error(why: str, *, away: bool) -> ServiceError:
    """Make the error for storage that does not send bytes, without its signed URL."""
    error = ServiceError(ErrorCode.UNAVAILABLE, f"The storage of this artifact's bytes {why}.")
    error.is_away = away
    return error


def _is_passing(answer: httpx.Response) -> bool:
    """Check whether a new link may help, because this link expired or the storage is away."""
    return answer.status_code in AWAY_STATUSES or answer.status_code in (403, 404, 500)
