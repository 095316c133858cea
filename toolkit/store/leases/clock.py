"""The clock by which leases expire: all engines of a database share it, and nobody sets it."""

import math
import time

from sqlalchemy import ColumnElement, Float, literal


class SharedClock:
    """A clock, in seconds since a moment of its own: by default the machine's monotonic clock.

    That is for processes of one machine. It starts anew when the machine does, but then every owner
    is known to be dead. That of a server raises `ServiceError` `UNAVAILABLE` if it does not answer.
    """

    async def read(self) -> float:
        """Return the time of this clock, in seconds."""
        return time.monotonic()

    async def read_horizon(self) -> float:
        """Return a lower bound of the times that uncommitted transactions have read.

        Rows that a later read does not see are of that time or later. Transactions of SQLite are
        serial, and so are their times, so there is no bound.
        """
        return math.inf

    def build_now(self) -> ColumnElement[float]:
        """Build the expression for the current time of a statement."""
        return literal(time.monotonic(), Float)

    def build_first_end(self, lease_s: float) -> float:
        """Build the value of `lease_until` for an inserted row, `lease_s` seconds from now."""
        return time.monotonic() + lease_s
