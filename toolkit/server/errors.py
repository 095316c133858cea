"""Errors of requests, and the information that callers get with them, over HTTP or not."""

import logging
import math

from toolkit.contract.errors import Detail, ErrorCode, RequestError, ServiceError, ToolkitError

log = logging.getLogger(__name__)
RETRY_AFTER_S = 5.0


def find_retry_after_s(error: ToolkitError) -> int | None:
    """Return the whole seconds until a caller may ask again, or None if unknown."""
    if error.retry_after is None and error.code.http_status not in (429, 503):
        return None
    return math.ceil(error.retry_after or RETRY_AFTER_S)


def convert_error(error: Exception, request_id: str) -> ToolkitError:
    """Convert a request's exception: a toolkit error stays, any other is logged and internal."""
    if isinstance(error, ToolkitError):
        return error
    # The log has the error by request id; the answer has no details.
    log.error("%s failed", request_id, exc_info=error)
    return ServiceError(ErrorCode.INTERNAL, "The service failed: report the request id.")


def make_range_error() -> RequestError:
    """Make the error for a range that begins after the last byte."""
    return RequestError(
        ErrorCode.INVALID_REQUEST, "The range is outside the bytes: request a range within them."
    )


def make_upload_error(path: str, why: str) -> RequestError:
    """Make the error for a rejected upload, with the faulty field and the reason."""
    return RequestError(
        ErrorCode.INVALID_REQUEST, "The upload cannot be read.", details=[Detail(path, why)]
    )
