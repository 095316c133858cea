"""Retries and pacing: whether and when a request is sent, or sent again."""

import hashlib
import json
import logging
import math
import os
import random
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import cache

from toolkit.contract.errors import ErrorCode, RequestError, ToolkitError
from toolkit.contract.operations.index import find_entry
from toolkit.profiles.resolution import NOTEBOOK_RUN_VARIABLE

log = logging.getLogger("toolkit.client")
DEFAULT_MAX_RETRIES = 3
DEFAULT_MAX_WAIT_S = 60.0
RETRY_CAP_S = 5.0
MAX_BACKOFF_STEPS = 3  # the delay doubles no further


class RequestPacer:
    """A token bucket that paces one client's requests after the service refused one as too many.

    A token bucket like the service's own, kept as the time at which it is full again (the generic
    cell rate algorithm). All tasks and threads of a client share it, and take turns.

    >>> from toolkit.contract.errors import ErrorCode
    >>> pacer = RequestPacer(clock=lambda: 0.0)
    >>> refusal = ToolkitError(ErrorCode.RATE_LIMITED, retry_after=1.0)
    >>> refusal.rate_limit = (200, 4)
    >>> pacer.reserve_delay_s(), pacer.note_refusal(refusal)
    (0.0, True)
    >>> [round(pacer.reserve_delay_s(), 2) for _ in range(3)]
    [1.02, 1.04, 1.06]
    """

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        self._clock = clock or time.monotonic
        self._lock = threading.Lock()
        self._interval_s = 0.0
        self._window_s = 0.0
        self._opens_at = 0.0
        self._full_at = 0.0

    def note_refusal(self, error: ToolkitError) -> bool:
        """Delay all requests until `Retry-After` has passed, then pace them; return True.

        Args:
            error: the refusal. Without a `rate_limit`, nothing changes and False is returned.
        """
        if error.rate_limit is None or error.retry_after is None:
            return False
        requests, window_s = error.rate_limit
        with self._lock:
            self._interval_s, self._window_s = window_s / requests, float(window_s)
            self._opens_at = max(self._opens_at, self._clock() + error.retry_after)
            # The token bucket counts as empty at that time, so that other clients of the same key
            # get the requests that the service allows until then.
            self._full_at = max(self._full_at, self._opens_at + self._window_s)
        return True

    @property
    def is_closed(self) -> bool:
        """True while no request may be sent."""
        return self._clock() < self._opens_at

    def reserve_delay_s(self) -> float:
        """Reserve the next free turn, and return the seconds until it; 0 before any refusal."""
        if not self._interval_s:
            return 0.0
        with self._lock:
            now = self._clock()
            self._full_at = max(self._full_at, now) + self._interval_s
            return max(0.0, self._full_at - self._window_s - now, self._opens_at - now)


def resolve_max_wait_s(wait_s: float | None) -> float:
    """Return the seconds to wait for a server that is away: as given, or `TOOLKIT_MAX_WAIT_S`.

    Raises:
        RequestError: `INVALID_REQUEST` if the value is no number of seconds.
    """
    text = os.environ.get("TOOLKIT_MAX_WAIT_S", DEFAULT_MAX_WAIT_S) if wait_s is None else wait_s
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            "The wait for an unavailable server (max_wait_s, TOOLKIT_MAX_WAIT_S)"
            " is a number of seconds, 0 or more.",
        )
    return seconds


class RunKeys:
    """The idempotency keys of a notebook that a batch may run twice, after a worker was lost.

    If both runs of a notebook send the same request, its key is the same, so the work is done, and
    paid, once. A request that equals an earlier request of the same run gets another key, because
    without a batch it would be a separate request, too.
    """

    def __init__(self, run: str) -> None:
        self._run = run
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()

    def make_key(self, path: str, body: object) -> str:
        """Make the idempotency key of a request; equal requests of a run are numbered."""
        text = json.dumps([self._run, path, body], sort_keys=True, default=str)
        digest = hashlib.sha256(text.encode()).hexdigest()[:32]
        with self._lock:
            self._counts[digest] += 1
            return f"{digest}-{self._counts[digest]}"


@cache
def _get_run_keys(run: str) -> RunKeys:
    return RunKeys(run)


def make_idempotency_header(method: str, path: str, body: object = None) -> dict[str, str]:
    """Make the header with the idempotency key, so that a repeated request does its work once.

    It is empty for a request that needs no key, or whose answer is not repeated.

    Reading and deleting are idempotent anyway, and a new API key is shown only once.

    Args:
        body: JSON of the request. From it, a notebook that a batch runs again makes the same key.
            None for an upload, which costs nothing.
    """
    if method != "POST":
        return {}
    operation = find_entry(method, f"/v1{path}")
    if operation is not None and not operation.replays:
        return {}
    run = os.environ.get(NOTEBOOK_RUN_VARIABLE)
    if run and body is not None:
        return {"Idempotency-Key": _get_run_keys(run).make_key(path, body)}
    return {"Idempotency-Key": secrets.token_hex(16)}


class RetrySchedule:
    """The retries of one request, which still does its work once.

    Args:
        repeatable: whether the request does its work once however often it is sent.
        max_retries: maximum number of retries after any error. None sets the default for errors
            that the service answers, and no limit while the service is away or limits the rate of
            requests.
        max_wait_s: maximum seconds to wait for a service that is away, and in total for its rate
            limit. None for an embedded engine, which has neither.
        deadline: time, by the monotonic clock, at which the caller gives up.
    """

    def __init__(
        self,
        method: str,
        repeatable: bool,
        max_retries: int | None,
        max_wait_s: float | None,
        deadline: float | None,
    ) -> None:
        self._method = method
        self._repeatable = repeatable
        self._max_retries = max_retries
        self._max_wait_s = max_wait_s
        self._deadline = math.inf if deadline is None else deadline
        self._attempt = 0
        self._until: float | None = None
        self._limited_s = 0.0  # the waits so far that rate limits asked for

    def next_delay_s(self, error: ToolkitError, *, sent: bool) -> float | None:
        """Return the seconds until the next attempt. Returns None if the request is given up.

        Args:
            sent: whether the service may have received it.
        """
        repeatable, attempt = self._repeatable, self._attempt
        self._attempt += 1
        if self._max_retries is not None and attempt >= self._max_retries:
            return None
        if error.code is ErrorCode.RATE_LIMITED and self._max_wait_s is not None:
            return self._limit_rate(error, attempt) if repeatable else None
        if self._max_wait_s is None or not error.is_away:
            # New work is not sent again to a service that failed on it, unless it was unavailable.
            again = error.code.retryable and (
                self._method != "POST" or error.code is ErrorCode.UNAVAILABLE
            )
            limit = DEFAULT_MAX_RETRIES if self._max_retries is None else self._max_retries
            return (
                compute_backoff_s(attempt, error)
                if repeatable and again and attempt < limit
                else None
            )
        if sent and not repeatable:
            return None
        now = time.monotonic()
        if self._until is None:
            self._until = min(now + self._max_wait_s, self._deadline)
            if self._until > now:
                log.warning(
                    "%s Retrying for up to %g s.", error.message, round(self._until - now, 3)
                )
        if now >= self._until:
            return None
        return min(compute_backoff_s(min(attempt, MAX_BACKOFF_STEPS), error), self._until - now)

    def _limit_rate(self, error: ToolkitError, attempt: int) -> float | None:
        """Return the seconds that a rate limit asks for, or None if they exceed the wait limit.

        A request that was refused was not carried out, so that the number of retries is not
        limited. Retrying sooner than `Retry-After` says would only be refused again.
        """
        wait_s = error.retry_after
        if wait_s is None:
            wait_s = compute_backoff_s(min(attempt, MAX_BACKOFF_STEPS), error)
        self._limited_s += wait_s
        if self._max_wait_s is None or self._limited_s > self._max_wait_s:
            return None
        return min(wait_s, max(0.0, self._deadline - time.monotonic()))


def compute_backoff_s(attempt: int, error: ToolkitError) -> float:
    """Return the seconds until a retry, at most 5: `Retry-After`, or a random backoff."""
    if error.retry_after is not None:
        return min(RETRY_CAP_S, error.retry_after)
    return random.uniform(0, min(RETRY_CAP_S, 0.2 * 2**attempt))  # noqa: S311 - no secret
