"""Rate limits: token buckets, one for each API key or address."""

import time
from collections import OrderedDict
from collections.abc import Callable

MAX_BUCKETS = 10_000


class TokenBuckets:
    """A token bucket for each name: so many requests a second, and a burst after a pause.

    Buckets are this process's own; past `MAX_BUCKETS` the least recently used is dropped, which
    by then is most likely full again.

    >>> rates = TokenBuckets(per_s=10, burst=2, clock=lambda: 0.0)
    >>> [rates.acquire_delay_s("ada") for _ in range(3)]
    [0.0, 0.0, 0.1]
    """

    def __init__(
        self, per_s: float, burst: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._per_s = per_s
        self._burst = float(burst)
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def __len__(self) -> int:
        """Return the number of buckets that are kept."""
        return len(self._buckets)

    def acquire_delay_s(self, name: str) -> float:
        """Take a token and return 0, or return the seconds until there is one."""
        at = self._clock()
        left, since = self._buckets.pop(name, (self._burst, at))
        left = min(self._burst, left + (at - since) * self._per_s)
        wait_s = 0.0 if left >= 1 else (1 - left) / self._per_s
        self._buckets[name] = (left if wait_s else left - 1), at
        if len(self._buckets) > MAX_BUCKETS:
            self._buckets.popitem(last=False)
        return wait_s

    def drain_all(self) -> dict[str, float]:
        """Forget all buckets; return how many tokens each lacked, where it was one at least."""
        at = self._clock()
        lacked = {
            name: self._burst - left - (at - since) * self._per_s
            for name, (left, since) in self._buckets.items()
        }
        self._buckets.clear()
        return {name: tokens for name, tokens in lacked.items() if tokens >= 1}

    def spend(self, name: str, tokens: float) -> None:
        """Have a name's bucket lack so many tokens."""
        if tokens > 0:
            self._buckets[name] = max(0.0, self._burst - tokens), self._clock()
