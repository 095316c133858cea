"""Responses: envelopes of resources, pages and errors (decisions, "Envelope")."""

from collections.abc import Mapping

from pydantic import BaseModel
from pydantic_core import to_json
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from toolkit.contract.base import ErrorEnvelope, ErrorInfo, WrittenRecord, dump_envelope
from toolkit.contract.errors import ErrorCode, RequestError, ToolkitError
from toolkit.contract.operations.messages import OperationAnswer
from toolkit.server.errors import convert_error, find_retry_after_s


def render_resource(
    record: BaseModel | WrittenRecord, status: int, headers: Mapping[str, str] | None = None
) -> Response:
    """Render the envelope of one resource."""
    return Response(dump_envelope(record), status, headers, media_type="application/json")


def render_page(answer: OperationAnswer, status: int) -> Response:
    """Render the envelope of a page."""
    return Response(b'{"data":%s}' % answer.to_json(), status, media_type="application/json")


def render_error(
    error: ToolkitError,
    request_id: str,
    *,
    status: int | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Render a toolkit error, with another status than its code's if HTTP has a better status."""
    info = ErrorInfo.of(error)
    info.request_id = request_id
    fields = dict(headers or {})
    if error.code is ErrorCode.UNAUTHENTICATED:
        fields["WWW-Authenticate"] = "Bearer"
    retry_after_s = find_retry_after_s(error)
    if retry_after_s is not None:
        fields["Retry-After"] = str(retry_after_s)
    if error.rate_limit is not None:
        requests, window_s = error.rate_limit
        fields["RateLimit-Policy"] = f'"key";q={requests};w={window_s}'
    body = ErrorEnvelope(error=info).model_dump(mode="json")
    if not body["error"]["details"]:
        del body["error"]["details"]
    # The error of failed work is on its record; as the answer to a request it is a server fault.
    status = status or error.code.http_status or 500
    return Response(to_json(body), status, fields, media_type="application/json")


def render_exception(error: Exception, request_id: str) -> Response:
    """Render the exception of a request: a toolkit error by its code, any other as internal."""
    if isinstance(error, ClientDisconnect):
        # Nobody reads it, but logs and counts need an answer.
        error = RequestError(ErrorCode.INVALID_REQUEST, "The body is incomplete: send all of it.")
    return render_error(convert_error(error, request_id), request_id)
