"""Errors in each vendor's own format: the body, the headers and the status."""

import json
from collections.abc import Callable
from typing import Any

JSON_TYPE = "application/json"
PROBLEM_TYPE = "application/problem+json"
ErrorBody = dict[str, Any]


def build_vendor_error(
    wire: str, status: int, request_id: str
) -> tuple[bytes, dict[str, str], int]:
    """Build an error as a vendor sends it: its body, headers and status.

    Where a vendor does not use the given status, it gets its own: MiniMax's errors come with HTTP
    200, and Bedrock has neither 401 nor 402 nor 529.
    """
    told = _STATUS_OVERRIDES.get(wire, {}).get(status, status)
    words = _MESSAGES.get(status, "The server had an error while processing your request.")
    if wire == "minimax" and status in _MINIMAX_CODES:
        body = {"base_resp": {"status_code": _MINIMAX_CODES[status], "status_msg": words}}
        return json.dumps(body).encode(), {"content-type": JSON_TYPE}, 200
    body, headers = _ERROR_BUILDERS.get(wire, _build_openai_error)(status, words, request_id)
    return json.dumps(body).encode(), {"content-type": JSON_TYPE, **headers}, told


def _build_openai_error(
    status: int, words: str, _request_id: str
) -> tuple[ErrorBody, dict[str, str]]:
    kind = _OPENAI_TYPES.get(status, "server_error")
    return {"error": {"message": words, "type": kind, "param": None, "code": None}}, {}


def _build_anthropic_error(
    status: int, words: str, request_id: str
) -> tuple[ErrorBody, dict[str, str]]:
    request_id = f"req_{request_id[:24]}"
    error = {"type": _ANTHROPIC_TYPES.get(status, "api_error"), "message": words}
    body = {"type": "error", "error": error, "request_id": request_id}
    return body, {"request-id": request_id}


def _build_google_error(
    status: int, words: str, _request_id: str
) -> tuple[ErrorBody, dict[str, str]]:
    kind = _GOOGLE_STATUSES.get(status, "INTERNAL")
    return {"error": {"code": status, "message": words, "status": kind}}, {}


def _build_elevenlabs_error(
    status: int, words: str, _request_id: str
) -> tuple[ErrorBody, dict[str, str]]:
    return {
        "detail": {"status": _ELEVENLABS_STATUSES.get(status, "internal_error"), "message": words}
    }, {}


def _build_aws_error(status: int, words: str, _request_id: str) -> tuple[ErrorBody, dict[str, str]]:
    name = _AWS_TYPES.get(status, "InternalServerException")
    return {"message": words}, {"x-amzn-errortype": name}


def _build_runpod_error(
    status: int, words: str, _request_id: str
) -> tuple[ErrorBody, dict[str, str]]:
    body = {"title": words.rstrip("."), "status": status, "detail": words}
    return body, {"content-type": PROBLEM_TYPE}


def _build_runpod_jobs_error(
    _status: int, words: str, _request_id: str
) -> tuple[ErrorBody, dict[str, str]]:
    return {"error": words}, {}


_ERROR_BUILDERS: dict[str, Callable[[int, str, str], tuple[ErrorBody, dict[str, str]]]] = {
    "anthropic": _build_anthropic_error,
    "google": _build_google_error,
    "elevenlabs": _build_elevenlabs_error,
    "aws": _build_aws_error,
    "runpod": _build_runpod_error,
    "runpod-jobs": _build_runpod_jobs_error,
}
# Statuses that a vendor never sends, and those that it sends instead.
_STATUS_OVERRIDES = {"aws": {401: 403, 402: 400, 529: 503}}
_MESSAGES = {
    401: "The API key is not valid.",
    402: "The account is out of credit.",
    403: "The key may not do this.",
    404: "No such resource.",
    409: "The request is not valid for the current status.",
    429: "Rate limit reached.",
    503: "The service is not available.",
    529: "Overloaded.",
}
_MINIMAX_CODES = {401: 1004, 402: 1008, 429: 1002, 500: 1000, 503: 1033}
_OPENAI_TYPES = {
    401: "invalid_request_error",
    402: "insufficient_quota",
    404: "invalid_request_error",
    429: "rate_limit_error",
}
_ANTHROPIC_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_GOOGLE_STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
_ELEVENLABS_STATUSES = {
    401: "invalid_api_key",
    402: "quota_exceeded",
    429: "too_many_concurrent_requests",
}
_AWS_TYPES = {
    400: "ValidationException",
    401: "UnrecognizedClientException",
    402: "ServiceQuotaExceededException",
    403: "AccessDeniedException",
    404: "ResourceNotFoundException",
    408: "ModelTimeoutException",
    424: "ModelErrorException",
    429: "ThrottlingException",
    503: "ServiceUnavailableException",
    529: "ServiceUnavailableException",
}
