"""Exception handlers: the one place where an exception becomes a response."""

import logging
import math
from collections.abc import Mapping

from pydantic_core import to_json
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
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


def install_errors(app: Starlette) -> None:
    """Register handlers that render every exception by its code's status and sentence."""
    app.add_exception_handler(ToolkitError, _handle_toolkit_error)
    app.add_exception_handler(HTTPException, _handle_routing_error)
    app.add_exception_handler(ClientDisconnect, _handle_disconnect)
    app.add_exception_handler(Exception, _handle_unexpected)


def _get_request_id(request: Request) -> str:
    return str(request.state.request_id)


async def _handle_toolkit_error(request: Request, error: Exception) -> Response:
    if not isinstance(error, ToolkitError):
        raise error
    return render_error(error, _get_request_id(request))


async def _handle_routing_error(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    codes = {404: ErrorCode.NOT_FOUND, 405: ErrorCode.METHOD_NOT_ALLOWED}
    if status not in codes:
        return await _handle_unexpected(request, error)
    message = "There is no such path." if status == 404 else ""
    headers = getattr(error, "headers", None)
    return render_error(
        RequestError(codes[status], message), _get_request_id(request), headers=headers
    )


async def _handle_disconnect(request: Request, _error: Exception) -> Response:
    """Answer a caller who disconnected within a body, as logs and counts need an answer."""
    error = RequestError(ErrorCode.INVALID_REQUEST, "The body did not come to its end.")
    return render_error(error, _get_request_id(request))


async def _handle_unexpected(request: Request, error: Exception) -> Response:
    """Answer a fault of our own: the log has it by request id, the answer tells nothing."""
    request_id = _get_request_id(request)
    log.error("%s failed", request_id, exc_info=error)
    response = render_error(
        ServiceError(ErrorCode.INTERNAL, UNEXPECTED_MESSAGE),
        request_id,
    )
    response.headers["X-Request-Id"] = request_id
    return response
