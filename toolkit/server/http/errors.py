"""The one place where an exception becomes a response of HTTP."""

import logging
from collections.abc import Mapping

from pydantic_core import to_json
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from toolkit.contract.base import ErrorEnvelope, ErrorInfo
from toolkit.contract.errors import ErrorCode, RequestError, ServiceError, ToolkitError
from toolkit.server.errors import UNEXPECTED_MESSAGE, find_retry_after_s, find_status

log = logging.getLogger(__name__)


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
