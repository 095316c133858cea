"""The tables of PostgreSQL: made once by many, and refused."""

from concurrent.futures import ThreadPoolExecutor

import psycopg

from toolkit.store.postgres.schema import migrate_postgres_schema


def _migrate(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        migrate_postgres_schema(connection)


def test_many_who_open_it_make_it_once(postgres_url: str) -> None:
    """Given several who open a new database at once, then one makes the tables, and all succeed."""
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(_migrate, [postgres_url] * 4))
    with psycopg.connect(postgres_url) as connection:
        assert connection.execute("SELECT version FROM configuration").fetchall() == [(1,)]
