"""A clock that a test moves, so that no test waits for time to pass."""

from types import SimpleNamespace
from typing import Final

import psycopg
import pytest

# New sessions find this function before the server's own.
_MAKE_SQL: Final = """
CREATE SCHEMA told;
CREATE TABLE told.clock AS SELECT 1000.0::float8 AS at;
CREATE FUNCTION told.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE
    AS 'SELECT to_timestamp(at) FROM told.clock'
"""


class LeaseClock:
    """The clock of leases: the clock of this process, or of a PostgreSQL database.

    Args:
        url: address of the database, which no store has open yet; None for SQLite.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, url: str | None = None) -> None:
        self._now = 1000.0
        self._database: psycopg.Connection[tuple[object, ...]] | None = None
        if url is None:
            fake_time = SimpleNamespace(monotonic=lambda: self._now)
            monkeypatch.setattr("toolkit.store.leases.clock.time", fake_time)
            return
        self._name = url.rpartition("/")[2]
        self._database = psycopg.connect(url, autocommit=True)
        self._database.execute(_MAKE_SQL)
        self._run(f"ALTER DATABASE {self._name} SET search_path = told, public, pg_catalog")

    def _run(self, statement: str) -> None:
        assert self._database is not None
        self._database.execute(statement.encode())

    @property
    def now(self) -> float:
        """Return the time in seconds."""
        return self._now

    @now.setter
    def now(self, at: float) -> None:
        self._now = at
        if self._database is not None:
            self._run(f"UPDATE told.clock SET at = {at!r}")

    def close(self) -> None:
        """Restore the database's own clock."""
        if self._database is not None:
            self._run(f"ALTER DATABASE {self._name} RESET search_path")
            self._run("DROP SCHEMA told CASCADE")
            self._database.close()
