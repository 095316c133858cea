"""The clock of a PostgreSQL server, which the leases of all its engines end by."""

from typing import Final

from sqlalchemy import ColumnElement, Float, literal_column

from toolkit.store.leases.clock import SharedClock
from toolkit.store.postgres.connections import IS_ENGINE_SQL
from toolkit.store.postgres.writing.statements import CLOCK_SQL
from toolkit.store.read_connection import ReadConnection

_READ_SQL: Final = f"SELECT {CLOCK_SQL}"
# Of transactions that are under way, and where there are none, of this statement: one that begins
# while it runs is later. Those of engines alone, as a dump may take hours, and writes nothing.
_HORIZON_SQL: Final = (
    "SELECT extract(epoch FROM coalesce(min(xact_start), statement_timestamp()))::float8"  # noqa: S608 - our condition
    f" FROM pg_stat_activity WHERE {IS_ENGINE_SQL}"
)


class PostgresClock(SharedClock):
    """The server's clock.

    Args:
        reads: of the database.
    """

    def __init__(self, reads: ReadConnection) -> None:
        self._reads = reads

    async def read(self) -> float:
        """Return the time.

        Raises:
            ServiceError: `UNAVAILABLE` when the server does not answer.
        """
        (at,) = await self._reads.fetch_values(_READ_SQL, {}) or (0.0,)
        return float(at)

    async def read_horizon(self) -> float:
        """Return when the oldest transaction of an engine began that has not ended yet.

        A transaction reads the clock after it began, and is listed until others see what it wrote.

        Raises:
            ServiceError: `UNAVAILABLE` when the server does not answer.
        """
        (at,) = await self._reads.fetch_values(_HORIZON_SQL, {}) or (0.0,)
        return float(at)

    def build_now(self) -> ColumnElement[float]:
        """Build the expression of the time at which a statement runs."""
        return literal_column(f"({CLOCK_SQL})", Float)

    def build_first_end(self, lease_s: float) -> float:
        """Build the value of `lease_until` in a row that is inserted: the writer adds the time."""
        return lease_s
