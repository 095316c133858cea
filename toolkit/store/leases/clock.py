"""The clock that leases end by: one that all engines of a database share, and nobody sets."""

import math
import time

from sqlalchemy import ColumnElement, Float, literal


class SharedClock:
    """A clock, in seconds since a moment of its own: by default the machine's monotonic clock.

    That is for processes of one machine. It starts anew when the machine does, but then every owner
    is known to be dead. That of a server raises `ServiceError` `UNAVAILABLE` if it does not answer.
    """

    async def read(self) -> float:
        """Return the time."""
        return time.monotonic()

    async def read_horizon(self) -> float:
        """Return a time: no transaction that is still to commit has read an earlier one.

        It holds for what is read afterwards: rows that are not seen then are of that time or later.
        Transactions of SQLite are one after the other, as their times are, so there is no bound.
        """
        return math.inf

    def build_now(self) -> ColumnElement[float]:
        """Build the expression of the time at which a statement runs."""
        return literal(time.monotonic(), Float)

    def build_first_end(self, lease_s: float) -> float:
        """Build the value of `lease_until` in a row that is inserted, so many seconds from now."""
        return time.monotonic() + lease_s
