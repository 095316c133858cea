"""Errors: responses outside 2xx, and services that cannot be reached, as exceptions."""

import re
import socket

import httpx

from toolkit.contract.errors import (
    AWAY_STATUSES,
    ErrorCode,
    RequestError,
    ServiceError,
    ServiceTimeoutError,
    ToolkitError,
)
from toolkit.profiles.resolution import ServerAccess, make_refused_key_error

# As in `"key";q=200;w=4` (draft-ietf-httpapi-ratelimit-headers).
_RATE_LIMIT = re.compile(r";\s*q=([1-9]\d{0,8})\s*;\s*w=([1-9]\d{0,8})\b", re.ASCII)


def parse_error(response: httpx.Response, access: ServerAccess) -> ToolkitError:
    """Make the exception for a response outside 2xx."""
    from pydantic import ValidationError

    from toolkit.contract.base import ErrorEnvelope

    try:
        info = ErrorEnvelope.model_validate_json(response.content).error
    except ValidationError:
        return make_foreign_error(response)
    refused = info.code == ErrorCode.UNAUTHENTICATED.name
    if refused and access.api_key is None:
        info.message = (
            "No key was given: pass api_key=, set TOOLKIT_API_KEY, or run"
            f" `toolkit login {access.server}`; client.account.create(email) opens"
            " an account with a key."
        )
    # A specific reason in the answer, such as a disabled account, is better than a guess.
    is_specific = info.message != ErrorCode.UNAUTHENTICATED.hint
    is_profiles = refused and access.key_from == "profile" and not is_specific
    error = make_refused_key_error(access) if is_profiles else info.to_exception()
    error.retry_after = _parse_retry_after(response)
    error.rate_limit = _parse_rate_limit(response)
    error.request_id = info.request_id or response.headers.get("x-request-id")
    error.is_away = response.status_code in AWAY_STATUSES
    return error


def check_stream(response: httpx.Response, access: ServerAccess) -> None:
    """Require that a response is a stream of events.

    Raises:
        ToolkitError: the error that the service answered, or that it is another service.
    """
    if response.status_code >= 400:
        raise parse_error(response, access)
    if not response.headers.get("content-type", "").startswith("text/event-stream"):
        raise make_foreign_error(response)


def make_foreign_error(response: httpx.Response) -> ToolkitError:
    """Make the exception for a response of another service, or of a proxy."""
    if response.status_code in AWAY_STATUSES:  # from a proxy whose service is away
        error = ServiceError(
            ErrorCode.UNAVAILABLE,
            f"{_format_origin(response.url)} answered {response.status_code}.",
        )
        error.is_away = True
        return error
    if response.status_code == ErrorCode.RATE_LIMITED.http_status:  # of a proxy with limits
        return ServiceError(
            ErrorCode.RATE_LIMITED,
            f"{_format_origin(response.url)} answered 429.",
            retry_after=_parse_retry_after(response),
        )
    origin = _format_origin(response.url)
    if response.status_code == ErrorCode.PAYLOAD_TOO_LARGE.http_status:  # of a proxy with limits
        return RequestError(
            ErrorCode.PAYLOAD_TOO_LARGE,
            f"A proxy at {origin} answered 413: the body is larger than the proxy accepts."
            f" {ErrorCode.PAYLOAD_TOO_LARGE.hint}",
        )
    text = f"{origin} answered {response.status_code}, which is not an answer of this service"
    if response.has_redirect_location:
        text += f", but points to {_format_origin(response.url.join(response.headers['location']))}"
    return ServiceError(ErrorCode.UNAVAILABLE, f"{text}: check the base_url.")


def _parse_retry_after(response: httpx.Response) -> float | None:
    """Parse the seconds of `Retry-After`, or return None if it has none."""
    wait = response.headers.get("retry-after", "")
    return float(wait) if wait.isdigit() else None


def _parse_rate_limit(response: httpx.Response) -> tuple[int, int] | None:
    """Parse the requests and the seconds of `RateLimit-Policy`, or return None without them."""
    limit = _RATE_LIMIT.search(response.headers.get("ratelimit-policy", ""))
    return None if limit is None else (int(limit[1]), int(limit[2]))


def make_unreachable_error(
    error: httpx.TransportError, url: httpx.URL, *, has_answered: bool
) -> ServiceError:
    """Make the exception for a service that cannot be reached.

    Args:
        has_answered: whether it has ever answered; an address that never answered may be mistyped.
    """
    why, away = f"{type(error).__name__}); is it running, and is this its port?", True
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        why, away = _explain_distrust(str(error)), False
    elif url.scheme == "https" and "SSL" in str(error):
        why, away = "it does not speak https); try http:// in base_url.", False
    elif isinstance(error, httpx.RemoteProtocolError | httpx.ReadError):
        why = f"{type(error).__name__}); is it a server of this toolkit, and does it use http://?"
        away = has_answered
    elif isinstance(error, httpx.ConnectError) and isinstance(
        _find_root_cause(error), socket.gaierror
    ):
        why, away = "its name is unknown); is the name spelled correctly?", has_answered
    is_timeout = isinstance(error, httpx.TimeoutException)
    raised = (ServiceTimeoutError if is_timeout else ServiceError)(
        ErrorCode.UNAVAILABLE, f"{_format_origin(url)} could not be reached ({why}"
    )
    raised.is_away = away
    return raised


def _explain_distrust(message: str) -> str:
    if "mismatch" in message or "not valid for" in message:
        return "its certificate is for another name); use the name that the certificate is for."
    if "expired" in message:
        return "its certificate has expired); renew the certificate."
    return (
        "its certificate is not trusted here); name the file of its certificate"
        " authority with cacert= (--cacert) or SSL_CERT_FILE."
    )


def _find_root_cause(error: BaseException) -> BaseException:
    """Return the innermost error in the chain of an error's causes."""
    while (earlier := error.__cause__ or error.__context__) is not None:
        error = earlier
    return error


def _format_origin(url: httpx.URL) -> str:
    """Format the scheme, host and port of an address: the rest of it may be a secret."""
    return str(httpx.URL(scheme=url.scheme, host=url.host, port=url.port))
