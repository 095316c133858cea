"""Shedding of load: a burst of new work is refused in part, before all of it becomes slow."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from toolkit.contract.errors import ErrorCode, ServiceError

RETRY_AFTER_S = 1.0


class LoadShedder:
    """Bounds how many requests for work are being accepted at once.

    Without a bound they queue in the event loop, where each waits for every other. One account gets
    half of the places at most, so that its burst leaves room for the others.

    Args:
        limit: the number of places.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._account_limit = max(1, limit // 2)
        self._count = 0
        self._counts: Counter[str] = Counter()

    @contextmanager
    def take_place(self, account_id: str) -> Iterator[None]:
        """Take a place for as long as a request is being accepted.

        Raises:
            ServiceError: `UNAVAILABLE` when no place is free.
        """
        if self._count >= self._limit or self._counts[account_id] >= self._account_limit:
            raise ServiceError(
                ErrorCode.UNAVAILABLE,
                "More work is asked for than can be accepted at once: ask again in a moment.",
                retry_after=RETRY_AFTER_S,
            )
        self._count += 1
        self._counts[account_id] += 1
        try:
            yield
        finally:
            self._count -= 1
            self._counts[account_id] -= 1
            if not self._counts[account_id]:
                del self._counts[account_id]
