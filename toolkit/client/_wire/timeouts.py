"""Timeouts of requests."""

import time

import httpx

DEFAULT_TIMEOUT = httpx.Timeout(60.0)
HTTPX_DEFAULT_TIMEOUT = httpx.Timeout(5.0)
GRACE_S = 5.0


def choose_timeout(
    timeout: float | httpx.Timeout | None, http_client: httpx.Client | httpx.AsyncClient | None
) -> httpx.Timeout:
    """Choose the timeout of requests: as given, or that of the HTTP client, or a minute.

    As in openai-python, an HTTP client with httpx's own default counts as having no timeout.

    Args:
        timeout: timeout of the caller, or `DEFAULT_TIMEOUT` itself if the caller omitted it.

    >>> choose_timeout(None, None), choose_timeout(DEFAULT_TIMEOUT, None)
    (Timeout(timeout=None), Timeout(timeout=60.0))
    >>> choose_timeout(DEFAULT_TIMEOUT, httpx.Client(timeout=9))
    Timeout(timeout=9)
    """
    left_out = timeout is DEFAULT_TIMEOUT
    if left_out and http_client is not None and http_client.timeout != HTTPX_DEFAULT_TIMEOUT:
        return http_client.timeout
    return httpx.Timeout(timeout)


def bound_timeout(
    timeout: httpx.Timeout, hold_s: float = 0.0, deadline: float | None = None
) -> httpx.Timeout:
    """Return the timeout of one request.

    Args:
        hold_s: seconds that the service may hold this request, added to the timeout.
        deadline: time, by the monotonic clock, at which the caller gives up. A reachable service
            may answer a little later, because it holds requests for whole seconds.
    """
    read = None if timeout.read is None else timeout.read + hold_s
    parts = {"connect": timeout.connect, "read": read, "write": timeout.write, "pool": timeout.pool}
    if deadline is not None:
        left_s = max(0.0, deadline - time.monotonic()) + GRACE_S
        parts = {name: left_s if s is None else min(s, left_s) for name, s in parts.items()}
    return httpx.Timeout(**parts)
