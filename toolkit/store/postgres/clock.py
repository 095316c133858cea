"""The clock of a PostgreSQL server, which the leases of all its engines end by."""

import asyncio

from sqlalchemy import ColumnElement, Engine, Float, literal_column, select

from toolkit.store.postgres.statements import CLOCK_SQL
from toolkit.store.postgres.transactions import begin_postgres_transaction


class PostgresClock:
    """The server's clock.

    Args:
        engine: of the database.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def read(self) -> float:
        """Return the time.

        Raises:
            ServiceError: `UNAVAILABLE` when the server does not answer.
        """
        return await asyncio.to_thread(self._read_now)

    def _read_now(self) -> float:
        with begin_postgres_transaction(self._engine) as connection:
            return float(connection.execute(select(self.build_now())).scalar_one())

    def build_now(self) -> ColumnElement[float]:
        """Build the expression of the time at which a statement runs."""
        return literal_column(f"({CLOCK_SQL})", Float)

    def build_first_end(self, lease_s: float) -> float:
        """Build the value of `lease_until` in a row that is inserted: the writer adds the time."""
        return lease_s
