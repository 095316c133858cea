"""What both databases do for themselves: each trigger, and each filter of a list."""

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from tests.store.rows import make_row
from tests.support.database_pool import BOTH_DATABASES
from toolkit.store.configuration_version import DECISIVE_COLUMNS, READ_VERSION_SQL
from toolkit.store.dialects import DatabaseKind
from toolkit.store.postgres.reads import spell_parameters
from toolkit.store.postgres.schema import migrate_postgres_schema
from toolkit.store.read_connection import Row
from toolkit.store.schema import migrate_schema
from toolkit.store.sqlite.connections import create_sqlite_engine
from toolkit.store.sqlite.database import SqliteReadConnection
from toolkit.store.stored_bytes import (
    COUNTED_COLUMNS,
    EVENT_OVERHEAD_BYTES,
    ROW_OVERHEAD_BYTES,
    build_recount,
    build_shortfall_query,
)

AT = "2026-11-20T00:00:00Z"
NUL_TEXT = "\x00 \\u0000"


class TriedDatabase:
    """A new database with the newest tables; each statement is a transaction of its own."""

    kind: DatabaseKind

    def read_rows(self, sql: str, given: Mapping[str, object]) -> list[Row]:
        """Fetch all rows."""
        raise NotImplementedError

    def run(self, sql: str, **given: object) -> None:
        """Run a statement that returns nothing."""
        raise NotImplementedError

    def insert(self, table: str, *rows: dict[str, object]) -> None:
        """Insert rows by one statement; columns that are not given have some value."""
        made = [make_row(table, f"{n}", **row).values for n, row in enumerate(rows)]
        given = {f"{name}_{n}": value for n, row in enumerate(made) for name, value in row.items()}
        values = (f"({', '.join(f':{name}_{n}' for name in row)})" for n, row in enumerate(made))
        self.run(f"INSERT INTO {table} ({', '.join(made[0])}) VALUES {', '.join(values)}", **given)

    def read_tuples(self, sql: str) -> list[tuple[Any, ...]]:
        """Fetch all rows as tuples."""
        return [tuple(row.values()) for row in self.read_rows(sql, {})]

    def list_miscounted(self) -> list[str]:
        """List the accounts whose sums are wrong."""
        return [row[0] for row in self.read_tuples(build_shortfall_query(self.kind))]

    def read_sums(self) -> dict[str, tuple[int, int]]:
        """Read all sums that are not 0."""
        rows = self.read_tuples("SELECT id, artifacts, records FROM stored_bytes")
        return {row[0]: (row[1], row[2]) for row in rows if row[1:] != (0, 0)}

    def read_version(self) -> int:
        """Read the configuration's version."""
        return int(self.read_tuples(READ_VERSION_SQL[self.kind])[0][0])


class TriedSqlite(TriedDatabase):
    """A file."""

    kind = "sqlite"

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._reads = SqliteReadConnection(connection)

    def read_rows(self, sql: str, given: Mapping[str, object]) -> list[Row]:
        """Fetch all rows."""
        return self._reads.read_rows(sql, given)

    def run(self, sql: str, **given: object) -> None:
        """Run a statement that returns nothing."""
        self._connection.execute(sql, given)


class TriedPostgres(TriedDatabase):
    """A database of the tests' cluster."""

    kind = "postgresql"

    def __init__(self, connection: "psycopg.Connection[Row]") -> None:
        self._connection = connection

    def read_rows(self, sql: str, given: Mapping[str, object]) -> list[Row]:
        """Fetch all rows."""
        return self._connection.execute(spell_parameters(sql).encode(), given).fetchall()

    def run(self, sql: str, **given: object) -> None:
        """Run a statement that returns nothing."""
        self._connection.execute(spell_parameters(sql).encode(), given)


@pytest.fixture(params=BOTH_DATABASES)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[TriedDatabase]:
    """A new database of each kind."""
    if request.param == "sqlite":
        engine = create_sqlite_engine(tmp_path / "state.db", "normal")
        with engine.connect() as connection:
            migrate_schema(connection)
        engine.dispose()
        with closing(sqlite3.connect(tmp_path / "state.db", isolation_level=None)) as driver:
            yield TriedSqlite(driver)
        return
    url = request.getfixturevalue("postgres_url")
    with psycopg.connect(url, autocommit=True) as plain:
        migrate_postgres_schema(plain)
    with psycopg.connect(url, autocommit=True, row_factory=dict_row) as rows:
        yield TriedPostgres(rows)


def test_every_record_is_counted(database: TriedDatabase) -> None:
    """Given rows of every table, then each account's bytes follow what is written of them."""
    for table, columns in COUNTED_COLUMNS.items():
        assert database.read_sums() == {}
        texts = dict.fromkeys(columns, '["ü"]')
        size = ROW_OVERHEAD_BYTES + 6 * len(columns)
        rows = [{"id": f"{n}", "account_id": whose, **texts} for n, whose in enumerate("aab")]
        database.insert(table, *rows)
        assert database.read_sums() == {"a": (0, 2 * size), "b": (0, size)}, table

        changed = ", ".join(f"{name} = '[]'" for name in columns)
        database.run(f"UPDATE {table} SET {changed} WHERE id = '0' OR account_id = 'b'")
        less = 4 * len(columns)
        assert database.read_sums() == {"a": (0, 2 * size - less), "b": (0, size - less)}, table
        assert database.list_miscounted() == []
        database.run(f"DELETE FROM {table} WHERE id < '2'")
        assert database.read_sums() == {"b": (0, size - less)}, table
        database.run(f"DELETE FROM {table}")


def test_artifacts_and_events_are_counted(database: TriedDatabase) -> None:
    """Given artifacts and events, then bytes are counted once, and those of the deleted no more."""
    rows = [{"id": f"{n}", "account_id": "a", "doc": "", "size_bytes": 10**12} for n in range(2)]
    database.insert("artifacts", *rows)
    assert database.read_sums() == {"a": (2 * 10**12, 2 * ROW_OVERHEAD_BYTES)}
    database.run("UPDATE artifacts SET deleted = TRUE WHERE id = '0'")
    assert database.read_sums() == {"a": (10**12, 2 * ROW_OVERHEAD_BYTES)}
    database.run("DELETE FROM artifacts")

    database.insert("roots", {"id": "run_a", "account_id": "a"})
    database.insert("workflows", {"id": "wfl_b", "account_id": "b", "doc": "", "spec": ""})
    database.insert(
        "events",
        *({"resource_id": "run_a", "n": n, "data": "ü"} for n in range(3)),
        {"resource_id": "wfl_b", "n": 1, "data": ""},
        {"resource_id": "nothing", "n": 1, "data": ""},
    )
    size = EVENT_OVERHEAD_BYTES
    counted = {"a": (0, 3 * (size + 2)), "b": (0, ROW_OVERHEAD_BYTES + size)}
    assert database.read_sums() == counted
    assert database.list_miscounted() == []
    database.run("DELETE FROM events WHERE n = 1")
    assert database.read_sums() == {"a": (0, 2 * (size + 2)), "b": (0, ROW_OVERHEAD_BYTES)}

    database.run("UPDATE stored_bytes SET records = 1")
    assert database.list_miscounted() == ["a", "b"]
    for statement in build_recount(database.kind):
        database.run(statement)
    assert database.list_miscounted() == []


def test_the_configuration_has_a_version(database: TriedDatabase) -> None:
    """Given what decides who may do what, then each change of it raises the version, no other."""
    for table, columns in DECISIVE_COLUMNS.items():
        version = database.read_version()
        database.insert(table, {"id": "1"})
        assert database.read_version() == version + 1, table
        for name in columns:
            new = "TRUE" if name in ("operator", "deleted") else "'{\"a\": 1}'"
            version = database.read_version()
            database.run(f"UPDATE {table} SET {name} = {new} WHERE id = '1'")
            assert database.read_version() == version + 1, name
            database.run(f"UPDATE {table} SET {name} = {new} WHERE id = '1'")
            database.run(f"UPDATE {table} SET {name} = {new} WHERE id = '2'")
            assert database.read_version() == version + 1, "nothing was changed"
        version = database.read_version()
        database.run(f"DELETE FROM {table} WHERE id = '2'")
        assert database.read_version() == version
        database.run(f"DELETE FROM {table}")
        assert database.read_version() == version + 1


def test_what_decides_nothing_raises_no_version(database: TriedDatabase) -> None:
    """Given when a key was last used, and a connection's health, then the version stays."""
    database.insert("api_keys", {"id": "1", "doc": '{"a": 1, "last_used_at": null}'})
    database.insert("connections", {"id": "1"})
    version = database.read_version()
    used = json.dumps({"a": 1, "last_used_at": NUL_TEXT})
    database.run("UPDATE api_keys SET doc = :doc", doc=used)
    database.run("UPDATE connections SET health = '{}'")
    assert database.read_version() == version
    database.run("UPDATE api_keys SET doc = :doc", doc=used.replace("1,", "2,"))
    assert database.read_version() == version + 1


def test_tags_are_indexed(database: TriedDatabase) -> None:
    """Given annotations, then there is a row for each tag of each, once."""

    def read_tags() -> list[tuple[str, str, str]]:
        rows = database.read_tuples("SELECT account_id, tag, resource_id FROM tags")
        return sorted(rows)  # type: ignore[arg-type]

    first, second = ({"id": each, "account_id": "a", "tags": '["x", "y"]'} for each in "12")
    database.insert("annotations", first, second)
    assert read_tags() == [("a", tag, each) for tag in "xy" for each in "12"]
    database.run("UPDATE annotations SET tags = '[\"y\", \"Zé\"]' WHERE id = '1'")
    assert read_tags() == [("a", "Zé", "1"), ("a", "x", "2"), ("a", "y", "1"), ("a", "y", "2")]
    database.run("UPDATE annotations SET note = 'n'")
    assert len(read_tags()) == 4
    database.run("DELETE FROM annotations WHERE id = '1'")
    assert read_tags() == [("a", "x", "2"), ("a", "y", "2")]
