"""Rate limits: token buckets, one for each API key or address."""

import time
from collections import OrderedDict
from collections.abc import Callable

KEPT = 10_000


class Rates:
    """A token bucket for each name: so many requests a second, and a burst after a pause.

    Buckets are this process's own; of more than `KEPT` the least recently used is dropped, which
    by then is most likely full again.

    >>> rates = Rates(per_s=10, burst=2, clock=lambda: 0.0)
    >>> [rates.wait_s("ada") for _ in range(3)]
    [0.0, 0.0, 0.1]
    """

    def __init__(
        self, per_s: float, burst: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._per_s = per_s
        self._burst = float(burst)
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait_s(self, name: str) -> float:
        """Take a token and return 0, or return the seconds until there is one."""
        at = self._clock()
        left, since = self._buckets.pop(name, (self._burst, at))
        left = min(self._burst, left + (at - since) * self._per_s)
        wait_s = 0.0 if left >= 1 else (1 - left) / self._per_s
        self._buckets[name] = (left if wait_s else left - 1), at
        if len(self._buckets) > KEPT:
            self._buckets.popitem(last=False)
        return wait_s
