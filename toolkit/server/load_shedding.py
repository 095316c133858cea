"""Load shedding: requests beyond a bound are rejected before all requests become slow."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from toolkit.contract.errors import ErrorCode, ServiceError


class InFlightLimit:
    """A limit on concurrent work of each key or account; work beyond it is rejected, never queued.

    Args:
        limit: maximum for each owner.
        code: code of the error.
        message: message of the error.
        retry_after_s: seconds after which the error says to retry.
        in_all: maximum for all owners together; None for no bound.
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
        """Reject an amount beyond the limit.

        Raises:
            ServiceError: with the code and message of the limit.
        """
        is_full = self._in_all is not None and self._held.total() + amount > self._in_all
        if is_full or self._held[owner] + amount > self._limit:
            code, message, retry_after_s = self._refusal
            raise ServiceError(code, message, retry_after=retry_after_s)

    @contextmanager
    def hold(self, owner: str | None, amount: int = 1) -> Iterator[None]:
        """Count an amount for an owner until the block ends, without checking the limit."""
        self._held[owner] += amount
        try:
            yield
        finally:
            self._held[owner] -= amount
            if not self._held[owner]:
                del self._held[owner]
