"""Token buckets: the state of each is one number, the time until which it is used up.

This is the generic cell rate algorithm (https://en.wikipedia.org/wiki/Generic_cell_rate_algorithm).
"""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

MAX_BUCKETS = 10_000
# A time further ahead than this comes from a clock that has restarted.
MAX_AHEAD_S = 7200.0


@dataclass(frozen=True, slots=True)
class UnitPace:
    """A pace of units, such as calls or tokens.

    Attributes:
        per_s: units a second.
        burst: units beyond the first that may be used at once after a pause.

    >>> UnitPace(2.0, 0.0).take(None, 10.0, 1.0)
    (10.0, 10.5)
    """

    per_s: float
    burst: float

    def find_start(self, used_until: float | None, at: float) -> float:
        """Return the time since when units have accumulated, at most a burst before `at`.

        A time after `at` means that no unit is left. A time too far ahead is ignored.
        """
        earliest = at - self.burst / self.per_s
        if used_until is None or used_until > at + MAX_AHEAD_S:
            return earliest
        return max(used_until, earliest)

    def take(self, used_until: float | None, at: float, units: float) -> tuple[float, float]:
        """Take units, even if they are not available yet.

        Returns:
            the time from which they may be used; the new time until which the bucket is used up.
        """
        start = self.find_start(used_until, at)
        return start, start + units / self.per_s

    def take_now(self, used_until: float | None, at: float, units: int) -> tuple[int, float, float]:
        """Take the units that may be used now, at most the given number.

        Returns:
            the number taken; if 0, the seconds until the next unit; the time until all is used up.
        """
        start = self.find_start(used_until, at)
        available = (at - start) * self.per_s
        count = min(units, int(available + 1e-6))
        wait_s = 0.0 if count else (1 - available) / self.per_s
        return count, wait_s, start + count / self.per_s


class TokenBuckets:
    """A token bucket for each name, all of one pace.

    Buckets are this process's own; past `MAX_BUCKETS` the least recently used is dropped, which
    by then is most likely full again.

    >>> rates = TokenBuckets(UnitPace(per_s=10, burst=2), clock=lambda: 0.0)
    >>> [rates.acquire_delay_s("ada") for _ in range(3)]
    [0.0, 0.0, 0.1]
    """

    def __init__(self, pace: UnitPace, clock: Callable[[], float] = time.monotonic) -> None:
        self._pace = pace
        self._clock = clock
        self._used_until: OrderedDict[str, float] = OrderedDict()

    def __len__(self) -> int:
        """Return the number of buckets that are kept."""
        return len(self._used_until)

    def acquire_delay_s(self, name: str) -> float:
        """Take a token and return 0, or return the seconds until there is one."""
        previous = self._used_until.pop(name, None)
        _, wait_s, used_until = self._pace.take_now(previous, self._clock(), 1)
        self.set_used(name, used_until)
        return wait_s

    def set_used(self, name: str, used_until: float) -> None:
        """Set the time until which a bucket is used up."""
        self._used_until[name] = used_until
        if len(self._used_until) > MAX_BUCKETS:
            self._used_until.popitem(last=False)

    def drain_all(self) -> dict[str, float]:
        """Drop all buckets; return by name the tokens that each lacked, if that is at least one."""
        full_at = self._clock() - self._pace.burst / self._pace.per_s
        old_times, self._used_until = self._used_until, OrderedDict()
        missing_units = {
            name: (until - full_at) * self._pace.per_s for name, until in old_times.items()
        }
        return {name: tokens for name, tokens in missing_units.items() if tokens >= 1}
