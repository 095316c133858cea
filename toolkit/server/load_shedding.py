"""Shedding of load: what is asked for beyond a bound is refused, before all of it becomes slow."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from toolkit.contract.errors import ErrorCode, ServiceError


class InFlightLimit:
    """A bound on what is under way at once for each key or account; nothing beyond it waits.

    Args:
        limit: the most for one.
        code: of the error of what is refused.
        message: likewise.
        retry_after_s: likewise.
        in_all: the most for all of them; none for no bound.
    """

    def __init__(
        self,
        limit: int,
        code: ErrorCode,
        message: str,
        retry_after_s: float = 5.0,
        in_all: int | None = None,
    ) -> None:
        self._limit = limit
        self._refusal = code, message, retry_after_s
        self._in_all = in_all
        self._held: Counter[str | None] = Counter()

    def check(self, owner: str | None, amount: int = 1) -> None:
        """Refuse what would be too much.

        Raises:
            ServiceError: as the limit says.
        """
        is_full = self._in_all is not None and self._held.total() + amount > self._in_all
        if is_full or self._held[owner] + amount > self._limit:
            code, message, retry_after_s = self._refusal
            raise ServiceError(code, message, retry_after=retry_after_s)

    @contextmanager
    def hold(self, owner: str | None, amount: int = 1) -> Iterator[None]:
        """Count something while it is under way."""
        self._held[owner] += amount
        try:
            yield
        finally:
            self._held[owner] -= amount
            if not self._held[owner]:
                del self._held[owner]
