"""The tables of PostgreSQL: made once by many, and refused."""

from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from toolkit.contract.errors import ServiceError
from toolkit.store.postgres.schema import migrate_postgres_schema

COLUMNS = """
SELECT table_name, column_name, data_type, collation_name, is_nullable, column_default
FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1, 2
"""
TRIGGERS = (
    "SELECT tgname, tgrelid::regclass::text FROM pg_trigger WHERE NOT tgisinternal ORDER BY 1"
)
FUNCTIONS = (
    "SELECT proname, prosrc FROM pg_proc WHERE pronamespace = 'public'::regnamespace ORDER BY 1"
)
INDEXES = "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1"
SCHEMA = (COLUMNS, INDEXES, TRIGGERS, FUNCTIONS)


def _read_schema(url: str) -> list[list[tuple[object, ...]]]:
    with psycopg.connect(url) as connection:
        return [connection.execute(sql).fetchall() for sql in SCHEMA]


def _migrate(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        migrate_postgres_schema(connection)


def test_many_who_open_it_make_it_once(postgres_url: str) -> None:
    """Given several who open a new database at once, then one makes the tables, and all succeed."""
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(_migrate, [postgres_url] * 4))
    with psycopg.connect(postgres_url) as connection:
        assert connection.execute("SELECT version FROM configuration").fetchall() == [(1,)]


def test_a_later_version_is_refused(postgres_url: str) -> None:
    """Given the tables of a later version, then they are refused, and left alone."""
    _migrate(postgres_url)
    with psycopg.connect(postgres_url) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999', oldest = '9999'")
    before = _read_schema(postgres_url)
    with pytest.raises(ServiceError, match="later version of the toolkit"):
        _migrate(postgres_url)
    assert _read_schema(postgres_url) == before
