"""The clock that leases end by: one that all engines of a database share, and nobody sets."""

import math
import time
from typing import Protocol

from sqlalchemy import ColumnElement, Float, literal


class SharedClock(Protocol):
    """A clock, in seconds since a moment of its own."""

    async def read(self) -> float:
        """Return the time."""
        ...

    async def read_horizon(self) -> float:
        """Return a time: no transaction that is still to commit has read an earlier one.

        It holds for what is read afterwards: rows that are not seen then are of that time or later.
        """
        ...

    def build_now(self) -> ColumnElement[float]:
        """Build the expression of the time at which a statement runs."""
        ...

    def build_first_end(self, lease_s: float) -> float:
        """Build the value of `lease_until` in a row that is inserted, so many seconds from now."""
        ...


class MachineClock:
    """The machine's monotonic clock, for processes of one machine.

    It starts anew when the machine does, but then every owner is known to be dead.
    """

    async def read(self) -> float:
        """Return the time."""
        return time.monotonic()

    async def read_horizon(self) -> float:
        """Return no bound: transactions of SQLite are one after the other, as their times are."""
        return math.inf

    def build_now(self) -> ColumnElement[float]:
        """Build the expression of the time, which is as of now."""
        return literal(time.monotonic(), Float)

    def build_first_end(self, lease_s: float) -> float:
        """Build the value of `lease_until` in a row that is inserted."""
        return time.monotonic() + lease_s
