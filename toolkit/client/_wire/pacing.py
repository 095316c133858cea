"""Pacing: a client sends no more requests than the service's rate limit allows."""

import threading
import time
from collections.abc import Callable

from toolkit.contract.errors import ToolkitError


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
        """Hold all requests until `Retry-After` has passed; return whether they are paced then.

        Args:
            error: the refusal. Without a `rate_limit`, it concerns only one request.
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
        """Reserve the next free turn, and return the seconds until it."""
        if not self._interval_s:
            return 0.0
        with self._lock:
            now = self._clock()
            self._full_at = max(self._full_at, now) + self._interval_s
            return max(0.0, self._full_at - self._window_s - now, self._opens_at - now)
