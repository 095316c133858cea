"""Errors of requests, and what a caller is told beside them, over HTTP or not."""

import math

from toolkit.contract.errors import Detail, ErrorCode, RequestError, ServiceError, ToolkitError

RETRY_AFTER_S = 5.0
UNEXPECTED_MESSAGE = "Something failed here; report the request id."


def find_status(error: ToolkitError) -> int:
    """Find the status that an error is answered with."""
    # The error of failed work is on its record; as the answer to a request it is our fault.
    return error.code.http_status or 500


def find_retry_after_s(error: ToolkitError) -> int | None:
    """Find after how many whole seconds a caller may ask again; none where nobody can say."""
    if error.retry_after is None and error.code.http_status not in (429, 503):
        return None
    return math.ceil(error.retry_after or RETRY_AFTER_S)


def make_draining_error() -> ServiceError:
    """Make the error of new work that comes during shutdown."""
    return ServiceError(ErrorCode.UNAVAILABLE, "The service is stopping.")


def make_cut_off_error() -> ServiceError:
    """Make the error of a request that a server ends in the middle of."""
    return ServiceError(
        ErrorCode.UNAVAILABLE,
        "The service stopped before this was answered, and may have done it: ask again, with the"
        " same `Idempotency-Key` if it had one.",
    )


def make_range_error() -> RequestError:
    """Make the error for a range that begins after the last byte."""
    return RequestError(ErrorCode.INVALID_REQUEST, "Ask for a range within the bytes.")


def make_upload_error(path: str, why: str) -> RequestError:
    """Make the error for an upload that is refused: why, and where."""
    return RequestError(
        ErrorCode.INVALID_REQUEST, "The upload cannot be read.", details=[Detail(path, why)]
    )
