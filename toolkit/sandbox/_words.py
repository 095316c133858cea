"""Errors in each vendor's own format: the body, the headers and the status."""

import json
from collections.abc import Callable
from typing import Any

JSON = "application/json"
PROBLEM = "application/problem+json"
Words = dict[str, Any]


def own_words(wire: str, status: int, request_id: str) -> tuple[bytes, dict[str, str], int]:
    """Build an error as a vendor sends it: its body, headers and status.

    Where a vendor does not use the given status, it gets its own: MiniMax's errors come with HTTP
    200, and Bedrock has neither 401 nor 402 nor 529.
    """
    told = _OWN_STATUSES.get(wire, {}).get(status, status)
    words = _MESSAGES.get(status, "The server had an error while processing your request.")
    if wire == "minimax" and status in _MINIMAX_CODES:
        body = {"base_resp": {"status_code": _MINIMAX_CODES[status], "status_msg": words}}
        return json.dumps(body).encode(), {"content-type": JSON}, 200
    body, headers = _WORDINGS.get(wire, _openai)(status, words, request_id)
    return json.dumps(body).encode(), {"content-type": JSON, **headers}, told


def _openai(status: int, words: str, _request_id: str) -> tuple[Words, dict[str, str]]:
    kind = _OPENAI_TYPES.get(status, "server_error")
    return {"error": {"message": words, "type": kind, "param": None, "code": None}}, {}


def _anthropic(status: int, words: str, request_id: str) -> tuple[Words, dict[str, str]]:
    request_id = f"req_{request_id[:24]}"
    error = {"type": _ANTHROPIC_TYPES.get(status, "api_error"), "message": words}
    body = {"type": "error", "error": error, "request_id": request_id}
    return body, {"request-id": request_id}


def _google(status: int, words: str, _request_id: str) -> tuple[Words, dict[str, str]]:
    kind = _GOOGLE_STATUSES.get(status, "INTERNAL")
    return {"error": {"code": status, "message": words, "status": kind}}, {}


def _elevenlabs(status: int, words: str, _request_id: str) -> tuple[Words, dict[str, str]]:
    return {"detail": {"status": _ELEVENLABS.get(status, "internal_error"), "message": words}}, {}


def _aws(status: int, words: str, _request_id: str) -> tuple[Words, dict[str, str]]:
    name = _AWS_TYPES.get(status, "InternalServerException")
    return {"message": words}, {"x-amzn-errortype": name}


def _runpod(status: int, words: str, _request_id: str) -> tuple[Words, dict[str, str]]:
    body = {"title": words.rstrip("."), "status": status, "detail": words}
    return body, {"content-type": PROBLEM}


def _runpod_jobs(_status: int, words: str, _request_id: str) -> tuple[Words, dict[str, str]]:
    return {"error": words}, {}


_WORDINGS: dict[str, Callable[[int, str, str], tuple[Words, dict[str, str]]]] = {
    "anthropic": _anthropic,
    "google": _google,
    "elevenlabs": _elevenlabs,
    "aws": _aws,
    "runpod": _runpod,
    "runpod-jobs": _runpod_jobs,
}
# Statuses that a vendor never sends, and those that it sends instead.
_OWN_STATUSES = {"aws": {401: 403, 402: 400, 529: 503}}
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
_ELEVENLABS = {401: "invalid_api_key", 402: "quota_exceeded", 429: "too_many_concurrent_requests"}
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
