"""Each database's own work: its tables, triggers and connections, and its handling of NUL."""

import json
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.store.rows import make_row
from toolkit.store import PatchDocument, Store
from toolkit.store.configuration_version import DECISIVE_COLUMNS, READ_VERSION_SQL
from toolkit.store.dialects import DatabaseKind
from toolkit.store.postgres.database import begin_postgres_transaction, create_postgres_engine
from toolkit.store.postgres.reads import spell_parameters
from toolkit.store.postgres.schema import migrate_postgres_schema
from toolkit.store.schema import migrate_schema
from toolkit.store.sqlite.connections import create_sqlite_engine
from toolkit.store.sqlite.writes import begin_sqlite_transaction
from toolkit.store.stored_bytes import (
    COUNTED_COLUMNS,
    EVENT_OVERHEAD_BYTES,
    ROW_OVERHEAD_BYTES,
    build_recount,
    build_shortfall_query,
)
from toolkit.store.writing.direct_writer import WriteTurns

NUL_TEXT = "\x00 \\u0000"


@dataclass
class Database:
    """A new database with the newest tables; each statement is a transaction.

    Attributes:
        kind: SQLite or PostgreSQL.
        execute: runs a statement with its parameters, and returns a cursor.
    """

    kind: DatabaseKind
    execute: Callable[[str, dict[str, object]], Any]

    def run(self, sql: str, **parameters: object) -> None:
        """Run a statement that returns no rows."""
        self.execute(sql, parameters)

    def insert(self, table: str, *rows: dict[str, object]) -> None:
        """Insert rows by one statement; missing columns get a default value."""
        full_rows = [make_row(table, f"{n}", **row).values for n, row in enumerate(rows)]
        parameters = {
            f"{name}_{n}": value for n, row in enumerate(full_rows) for name, value in row.items()
        }
        names = list(full_rows[0])
        values = (f"({', '.join(f':{name}_{n}' for name in names)})" for n in range(len(rows)))
        self.run(
            f"INSERT INTO {table} ({', '.join(names)}) VALUES {', '.join(values)}", **parameters
        )

    def read(self, sql: str) -> list[tuple[Any, ...]]:
        """Read all rows."""
        return list(self.execute(sql, {}).fetchall())

    def list_miscounted(self) -> list[str]:
        """List the accounts with wrong sums."""
        return [row[0] for row in self.read(build_shortfall_query(self.kind))]

    def read_sums(self) -> dict[str, tuple[int, int]]:
        """Read all sums except 0."""
        rows = self.read("SELECT id, artifacts, records FROM stored_bytes")
        return {row[0]: (row[1], row[2]) for row in rows if row[1:] != (0, 0)}

    def read_version(self) -> int:
        """Read the configuration's version."""
        return int(self.read(READ_VERSION_SQL[self.kind])[0][0])


@pytest.fixture
def database(url: str | None, tmp_path: Path) -> Iterator[Database]:
    """A new database of each kind."""
    if url is not None:
        with psycopg.connect(url, autocommit=True) as session:
            migrate_postgres_schema(session)
            yield Database(
                "postgresql",
                lambda sql, values: session.execute(spell_parameters(sql).encode(), values),
            )
        return
    engine = create_sqlite_engine(tmp_path / "state.db", "normal")
    with engine.connect() as connection:
        migrate_schema(connection)
    engine.dispose()
    with closing(sqlite3.connect(tmp_path / "state.db", isolation_level=None)) as file:
        yield Database("sqlite", file.execute)


def test_counts_the_bytes_of_every_record(database: Database) -> None:
    """Given rows of every table, then each account's bytes follow its rows."""
    for table, columns in COUNTED_COLUMNS.items():
        assert database.read_sums() == {}
        texts = dict.fromkeys(columns, '["ü"]')
        size = ROW_OVERHEAD_BYTES + 6 * len(columns)
        rows = [{"id": f"{n}", "account_id": name, **texts} for n, name in enumerate("aab")]
        if table == "map_rows":  # the number of a row is unique in its map
            rows = [{**row, "map_id": row["id"]} for row in rows]
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


def test_counts_the_bytes_of_artifacts_and_events(database: Database) -> None:
    """Given artifacts and events, then their bytes are counted once, until they are deleted."""
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


def test_decisive_changes_increment_the_version(database: Database) -> None:
    """Given columns that decide on permissions, then each change increments the version once."""
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
            assert database.read_version() == version + 1, "nothing changed"
        version = database.read_version()
        database.run(f"DELETE FROM {table} WHERE id = '2'")
        assert database.read_version() == version
        database.run(f"DELETE FROM {table}")
        assert database.read_version() == version + 1


def test_other_changes_keep_the_version(database: Database) -> None:
    """Given a key's last use and a connection's health, then their changes keep the version."""
    database.insert("api_keys", {"id": "1", "doc": '{"a": 1, "last_used_at": null}'})
    database.insert("connections", {"id": "1"})
    version = database.read_version()
    doc = json.dumps({"a": 1, "last_used_at": NUL_TEXT})
    database.run("UPDATE api_keys SET doc = :doc", doc=doc)
    database.run("UPDATE connections SET health = '{}'")
    assert database.read_version() == version
    database.run("UPDATE api_keys SET doc = :doc", doc=doc.replace("1,", "2,"))
    assert database.read_version() == version + 1


def test_indexes_tags(database: Database) -> None:
    """Given annotations, then the index has one row for each tag."""

    def read_tags() -> list[tuple[Any, ...]]:
        return sorted(database.read("SELECT account_id, tag, resource_id FROM tags"))

    database.insert(
        "annotations", *({"id": n, "account_id": "a", "tags": '["x", "y"]'} for n in "12")
    )
    assert read_tags() == [("a", tag, n) for tag in "xy" for n in "12"]
    database.run("UPDATE annotations SET tags = '[\"y\", \"Zé\"]' WHERE id = '1'")
    assert read_tags() == [("a", "Zé", "1"), ("a", "x", "2"), ("a", "y", "1"), ("a", "y", "2")]
    database.run("UPDATE annotations SET note = 'n'")
    assert len(read_tags()) == 4
    database.run("DELETE FROM annotations WHERE id = '1'")
    assert read_tags() == [("a", "x", "2"), ("a", "y", "2")]


def test_the_last_transaction_closes_its_connection(tmp_path: Path, url: str | None) -> None:
    """Given a transaction that ends after the store has closed, then its connection closes."""
    if url is None:
        engine = create_sqlite_engine(tmp_path / "state.db", "full")
        transaction = begin_sqlite_transaction(engine, WriteTurns())
    else:
        engine = create_postgres_engine(url, "toolkit test")
        transaction = begin_postgres_transaction(engine)
    with transaction as connection:
        driver_connection = connection.connection.driver_connection
        assert driver_connection is not None
        engine.dispose()
    with pytest.raises((psycopg.OperationalError, sqlite3.ProgrammingError), match="closed"):
        driver_connection.execute("SELECT 1")


def test_concurrent_migrations_create_the_tables_once(postgres_url: str) -> None:
    """Given a new database that several processes open at once, then all of them succeed."""

    def migrate(url: str) -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            migrate_postgres_schema(connection)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(migrate, [postgres_url] * 4))
    with psycopg.connect(postgres_url) as connection:
        assert connection.execute("SELECT version FROM configuration").fetchall() == [(1,)]


async def test_patches_documents_with_a_nul(stores: tuple[Store, Store]) -> None:
    """Given documents with NULs, then a patch sets its member, and keeps the other members."""
    store = stores[0]
    first_doc = {"nul": "a\0b", "text": r"\u0000", "usd": 0.1, "n": 2**53 + 1}
    for name, doc in (("acc_a", first_doc), ("acc_b", {"n": 1})):
        await store.write([make_row("accounts", name, doc=json.dumps(doc))])
    await store.write([PatchDocument("accounts", f"acc_{n}", {"at": "now"}) for n in "abc"])
    docs = {row["id"]: json.loads(row["doc"]) for row in await store.find_rows("accounts")}
    assert docs == {"acc_a": {**first_doc, "at": "now"}, "acc_b": {"n": 1, "at": "now"}}


async def test_finds_no_row_by_a_nul(stores: tuple[Store, Store]) -> None:
    """Given a value with a NUL, then no row has it."""
    store = stores[0]
    assert await store.get_row("accounts", "acc_\0") is None
    assert await store.find_rows("accounts", email="\0") == []
