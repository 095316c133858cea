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

        Rows that a later read does not see are of that time or later. Transactions of SQLite are
        serial, and so are their times, so there is no bound.
        """
        return math.inf

    def build_now(self) -> ColumnElement[float]:
        """Build the expression for the current time of a statement."""
        return literal(time.monotonic(), Float)

    def build_first_end(self, lease_s: float) -> float:
        """Build the value of `lease_until` in a row that is inserted, so many seconds from now."""
        return time.monotonic() + lease_s
