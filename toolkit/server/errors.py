"""The one place where an exception becomes a response."""

import logging
import math
from collections.abc import Mapping

from pydantic_core import to_json
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from toolkit.contract.base import ErrorEnvelope, ErrorInfo
from toolkit.contract.errors import ErrorCode, RequestError, ServiceError, ToolkitError

log = logging.getLogger(__name__)


RETRY_AFTER_S = 5.0
UNEXPECTED_MESSAGE = "Something failed here; report the request id."


def render_error(
    error: ToolkitError,
    request_id: str,
    *,
    status: int | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Render one of our errors, with another status than its code's where HTTP has one."""
    info = ErrorInfo.of(error)
    info.request_id = request_id
    sent = dict(headers or {})
    if error.code is ErrorCode.UNAUTHENTICATED:
        sent["WWW-Authenticate"] = "Bearer"
    retry_after_s = find_retry_after_s(error)
    if retry_after_s is not None:
        sent["Retry-After"] = str(retry_after_s)
    if error.rate_limit is not None:
        requests, window_s = error.rate_limit
        sent["RateLimit-Policy"] = f'"key";q={requests};w={window_s}'
    body = ErrorEnvelope(error=info).model_dump(mode="json")
    if not body["error"]["details"]:
        del body["error"]["details"]
    status = status or find_status(error)
    return Response(to_json(body), status, sent, media_type="application/json")


def find_status(error: ToolkitError) -> int:
    """Find the status that an error is answered with."""
    # The error of failed work is on its record; as the answer to a request it is our fault.
    return error.code.http_status or 500


def find_retry_after_s(error: ToolkitError) -> int | None:
    """Find after how many whole seconds a caller may ask again; none where nobody can say."""
    if error.retry_after is None and error.code.http_status not in (429, 503):
        return None
    return math.ceil(error.retry_after or RETRY_AFTER_S)


def render_exception(error: Exception, request_id: str) -> Response:
    """Render an exception that ended a request: ours by its code, any other as our own fault."""
    match error:
        case ToolkitError():
            return render_error(error, request_id)
        case ClientDisconnect():
            # Nobody reads it, but logs and counts need an answer.
            broken = RequestError(ErrorCode.INVALID_REQUEST, "The body did not come to its end.")
            return render_error(broken, request_id)
    # The log has it by request id, the answer tells nothing.
    log.error("%s failed", request_id, exc_info=error)
    return render_error(
        ServiceError(ErrorCode.INTERNAL, UNEXPECTED_MESSAGE),
        request_id,
    )


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
