"""A polite GET as a flow: redirects on the same host, `Retry-After`, two retries."""

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx

from toolkit.contract.errors import ErrorCode
from toolkit.plugins import Flow, ProviderError, pause, send
from toolkit.plugins.json_reader import read_json

MAX_RETRIES = 2
MAX_REDIRECTS = 3
MAX_WAIT_S = 30.0
FIRST_WAIT_S = 0.5
MIN_LAG_WAIT_S = 5.0  # the least the API asks for when it lags, or limits without saying how long
_REDIRECT_STATUSES = frozenset({301, 302, 303, 307, 308})
_BUSY_CODES = frozenset({"maxlag", "ratelimited", "readonly"})


def fetch_response(address: str, headers: Mapping[str, str]) -> Flow[httpx.Response]:
    """Send a GET to an address, and retry if waiting may help.

    Returns:
        a response with status 200 or 404.

    Raises:
        ProviderError: `PROVIDER_RATE_LIMITED`, `PROVIDER_UNAVAILABLE`, `PROVIDER_REJECTED`, or
            `PROVIDER_BAD_RESPONSE` for a redirect that is not followed.
    """
    url, redirects, tries = httpx.URL(address), 0, 0
    while True:
        fault: ProviderError
        try:
            response = yield from send(httpx.Request("GET", url, headers=dict(headers)))
        except ProviderError as lost:
            # Reading twice does no harm, so an unknown outcome is retried, too.
            fault, wait = lost, FIRST_WAIT_S * 2**tries
        else:
            if response.status_code in _REDIRECT_STATUSES:
                redirects += 1
                url = _follow_redirect(url, response.headers.get("location", ""), redirects)
                continue
            refused = _build_failure(response)
            if refused is None:
                return response
            fault = refused
            wait = FIRST_WAIT_S * 2**tries if fault.retry_after is None else fault.retry_after
        if not fault.retryable or tries == MAX_RETRIES or wait > MAX_WAIT_S:
            raise fault
        tries += 1
        yield from pause(wait, "retrying")


def _follow_redirect(url: httpx.URL, location: str, redirects: int) -> httpx.URL:
    """Return the target of a redirect on the same host, because no answer may lead elsewhere."""
    try:
        target = url.join(location)
    except httpx.InvalidURL:
        target = httpx.URL("")
    same = target.host == url.host and (
        (target.scheme, target.port) == (url.scheme, url.port)
        or (url.scheme, target.scheme, target.port) == ("http", "https", None)
    )
    if not location or not same or redirects > MAX_REDIRECTS:
        raise ProviderError(
            ErrorCode.PROVIDER_BAD_RESPONSE,
            f"{url.host} redirects too often or to another host.",
            retryable=False,
        )
    return target


def _build_failure(response: httpx.Response) -> ProviderError | None:
    """Build the error for a response that failed; returns None for 200 and 404."""
    status = response.status_code
    after = _parse_retry_after(response.headers.get("retry-after"))
    code, message = ErrorCode.PROVIDER_REJECTED, f"The encyclopedia answered {status}."
    if status in (200, 404):
        error = _read_api_error(response) if status == 200 else None
        if error is None:
            return None
        message = "The encyclopedia refused the query."
        if error in _BUSY_CODES:
            code, message = (
                ErrorCode.PROVIDER_RATE_LIMITED,
                "The encyclopedia is too busy to answer.",
            )
            after = max(after or 0.0, MIN_LAG_WAIT_S)
    elif status == 429:
        code = ErrorCode.PROVIDER_RATE_LIMITED
        message = "The encyclopedia limits the rate of requests."
        after = MIN_LAG_WAIT_S if after is None else after
    elif status >= 500 or status == 408:
        code = ErrorCode.PROVIDER_UNAVAILABLE
    if code is ErrorCode.PROVIDER_REJECTED:
        after = None  # waiting would change nothing
    return ProviderError(code, message, retry_after=after, status=status)


def _read_api_error(response: httpx.Response) -> str | None:
    """Read the error that the action API sends with HTTP 200."""
    if response.request.url.path.rpartition("/")[2] != "api.php":
        return None
    try:
        body = read_json(response.content)
    except (ValueError, RecursionError):
        return None
    error = body.get("error") if isinstance(body, dict) else None
    return str(error.get("code", "")) if isinstance(error, dict) else None


def _parse_retry_after(value: str | None) -> float | None:
    """Parse a `Retry-After` as seconds from now, given as seconds or as a date."""
    if value is None:
        return None
    if value.strip().isascii() and value.strip().isdigit():
        return float(value.strip()[:9])
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())
