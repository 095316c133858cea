"""A store that is closed while a small change is under way on another thread."""

import sqlite3
from pathlib import Path

import psycopg
import pytest

from toolkit.store.postgres.database import (
    begin_postgres_transaction,
    create_postgres_engine,
)
from toolkit.store.sqlite.connections import create_sqlite_engine
from toolkit.store.sqlite.writes import WriteTurns, begin_sqlite_transaction


def test_the_last_transaction_closes_its_connection(tmp_path: Path, url: str | None) -> None:
    """Given a transaction that ends after the store was closed, then its connection is closed."""
    if url is None:
        engine = create_sqlite_engine(tmp_path / "state.db", "full")
        transaction = begin_sqlite_transaction(engine, WriteTurns())
    else:
        engine = create_postgres_engine(url, "the last of a store")
        transaction = begin_postgres_transaction(engine)
    with transaction as connection:
        left = connection.connection.driver_connection
        assert left is not None
        engine.dispose()
    with pytest.raises((psycopg.OperationalError, sqlite3.ProgrammingError), match="closed"):
        left.execute("SELECT 1")
