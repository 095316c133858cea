"""The errors of faults, in each vendor's own format."""

from collections.abc import Callable

from toolkit.sandbox.json_http import RefusalError
from toolkit.sandbox.wires import (
    anthropic,
    aws,
    elevenlabs,
    google,
    minimax,
    openai,
    runpod,
    runpod_jobs,
)

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
# Statuses that Bedrock never sends, and their replacements.
_AWS_STATUSES = {401: 403, 402: 400, 529: 503}


def build_vendor_error(wire: str, status: int) -> RefusalError:
    """Build an error as a vendor sends it.

    If a vendor does not use the status, the error has the vendor's status. MiniMax's errors come
    with HTTP 200, and Bedrock has neither 401 nor 402 nor 529.
    """
    words = _MESSAGES.get(status, "The server had an error while processing your request.")
    return _BUILDERS.get(wire, openai.refuse)(status, words)


def _build_minimax_error(status: int, words: str) -> RefusalError:
    code = _MINIMAX_CODES.get(status)
    return (
        openai.refuse(status, words) if code is None else minimax.MiniMaxRefusalError(code, words)
    )


def _build_elevenlabs_error(status: int, words: str) -> RefusalError:
    return elevenlabs.refuse(status, _ELEVENLABS_STATUSES.get(status, "internal_error"), words)


def _build_aws_error(status: int, words: str) -> RefusalError:
    name = _AWS_TYPES.get(status, "InternalServerException")
    return aws.refuse(_AWS_STATUSES.get(status, status), name, words)


_BUILDERS: dict[str, Callable[[int, str], RefusalError]] = {
    "anthropic": anthropic.AnthropicRefusalError,
    "google": google.refuse,
    "minimax": _build_minimax_error,
    "elevenlabs": _build_elevenlabs_error,
    "aws": _build_aws_error,
    "runpod": runpod.refuse,
    "runpod-jobs": runpod_jobs.refuse,
}
