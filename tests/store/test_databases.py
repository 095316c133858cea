"""What both databases do for themselves: each trigger, and each filter of a list."""

import itertools
import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row
from sqlalchemy import Boolean, Float, Integer, LargeBinary

from tests.support.database_pool import BOTH_DATABASES
from toolkit.contract.operations.work_queries import WorkFilter
from toolkit.store import AGENT_RUN_LIST, RUN_LIST, TASK_LIST, WORKFLOW_LIST, AccountScope
from toolkit.store.configuration_version import DECISIVE_COLUMNS, READ_VERSION_SQL
from toolkit.store.dialects import DatabaseKind
from toolkit.store.postgres.reads import spell_parameters
from toolkit.store.postgres.schema import migrate_postgres_schema
from toolkit.store.read_connection import Row
from toolkit.store.reader import RowReader
from toolkit.store.schema import migrate_schema
from toolkit.store.sqlite.connections import create_sqlite_engine
from toolkit.store.sqlite.reads import SqliteReadConnection
from toolkit.store.stored_bytes import (
    COUNTED_COLUMNS,
    EVENT_OVERHEAD_BYTES,
    ROW_OVERHEAD_BYTES,
    build_recount,
    build_shortfall_query,
)
from toolkit.store.tables import metadata
from toolkit.store.work_lists import WorkList

AT = "2026-11-20T00:00:00Z"
NUL_TEXT = "\x00 \\u0000"


class TriedDatabase:
    """A new database with the newest tables; each statement is a transaction of its own."""

    kind: DatabaseKind

    def read_rows(self, sql: str, given: Mapping[str, object]) -> list[Row]:
        """Fetch all rows."""
        raise NotImplementedError

    async def fetch_rows(self, sql: str, given: Mapping[str, object]) -> list[Row]:
        """Fetch all rows, as a reader does."""
        return self.read_rows(sql, given)

    async def fetch_values(self, sql: str, given: Mapping[str, object]) -> tuple[Any, ...] | None:
        """Fetch the first row's values, as a reader does."""
        rows = self.read_rows(sql, given)
        return tuple(rows[0].values()) if rows else None

    def run(self, sql: str, **given: object) -> None:
        """Run a statement that returns nothing."""
        raise NotImplementedError

    def insert(self, table: str, *rows: dict[str, object]) -> None:
        """Insert rows by one statement; columns that are not given have some value."""
        of = metadata.tables[table]
        given: dict[str, object] = {}
        for n, row in enumerate(rows):
            given |= {f"{c.name}_{n}": row.get(c.name, _make_value(c)) for c in of.columns}
        names = [column.name for column in of.columns]
        values = ("(" + ", ".join(f":{name}_{n}" for name in names) + ")" for n in range(len(rows)))
        self.run(f"INSERT INTO {table} ({', '.join(names)}) VALUES {', '.join(values)}", **given)

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


_numbers = itertools.count()


def _make_value(column: Any) -> object:
    """Make a value for a column: a text of its own, or what its type and rules allow."""
    if column.nullable:
        return None
    if isinstance(column.type, Boolean):
        return False
    if isinstance(column.type, Integer | Float):
        return 0
    assert not isinstance(column.type, LargeBinary)
    if column.name == "tags":
        return "[]"
    return "{}" if column.name in ("doc", "spec", "body") else f"{column.name}{next(_numbers)}"


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


def _write_doc(**members: object) -> str:
    return json.dumps({**members, "other": NUL_TEXT}, ensure_ascii=False)


@pytest.fixture
def work(database: TriedDatabase) -> TriedDatabase:
    """Runs, an agent's run, workflows and tasks of an account, and a run of another one."""
    common = {"account_id": "a", "created_at": AT, "status": "completed"}
    for n, whose in enumerate("aaab", 1):
        database.insert("roots", {"id": f"run_00{n}", "account_id": whose, "kind": "run"})
        doc = _write_doc(input={"text": f"Straße {n} \u212a"}, cost_usd=n / 8 if n < 3 else None)
        row = {"id": f"job_{n}", "run_id": f"run_00{n}", "provider": f"p{n}", "doc": doc}
        row |= {"capability": f"llm.generate@{n}", "account_id": whose}
        database.insert("jobs", {**common, **row})
    agent = {"name": "maker", "version": 2, "input": {"topic": "TEA"}}
    tasks: list[dict[str, object]] = [
        {"run_id": "run_005", "doc": _write_doc(agent=agent, objective="", cost_usd=1)},
        {"doc": _write_doc(objective='Say "hi"/\n', workflow_ids=["wfl_1"], agent=None)},
        {"doc": _write_doc(objective="none", workflow_ids=None, error=None)},
    ]
    for n, task in enumerate(tasks, 1):
        database.insert("tasks", {**common, "id": f"tsk_{n}", **task})
    nodes = [{"capability": "speech.say@1", "provider": "kept", "input": {"a": "deep"}}]
    for n, items in enumerate((nodes, None), 1):
        doc = _write_doc(name="Cards", nodes=items, cost_usd=n)
        database.insert("workflows", {**common, "id": f"wfl_{n}", "doc": doc, "spec": "{}"})
    node = {"id": "job_8", "workflow_id": "wfl_1", "capability": "img.draw@1", "provider": "pn"}
    database.insert("jobs", {**common, **node})
    tagged: list[dict[str, object]] = [
        {"id": "run_001", "tags": '["t", "u"]', "note": "n"}, {"id": "run_002", "tags": '["t"]'},
        {"id": "tsk_1", "tags": '["t"]'}, {"id": "wfl_2", "tags": '["t"]'},
    ]  # fmt: skip
    database.insert("annotations", *({"account_id": "a", **row} for row in tagged))
    return database


EARLY, LATE = datetime(2026, 11, 20, tzinfo=UTC), datetime(2026, 11, 21, tzinfo=UTC)
FILTERS: list[tuple[WorkList, dict[str, object], str]] = [
    (RUN_LIST, {}, "3 2 1"),
    (RUN_LIST, {"capability": "llm.generate"}, "3 2 1"),
    (RUN_LIST, {"capability": "llm.generate@2"}, "2"),
    (RUN_LIST, {"capability": "llm.gen"}, ""),
    (RUN_LIST, {"provider": "p3"}, "3"),
    (RUN_LIST, {"status": "failed"}, ""),
    (RUN_LIST, {"tags": ("t",)}, "2 1"),
    (RUN_LIST, {"tags": ("t", "u"), "status": "completed"}, "1"),
    (RUN_LIST, {"min_cost_usd": 0.2}, "2"),
    (RUN_LIST, {"max_cost_usd": 0.125}, "1"),
    (RUN_LIST, {"until": EARLY}, ""),
    (RUN_LIST, {"until": LATE}, "3 2 1"),
    (RUN_LIST, {"text": "STRASSE 2"}, "2"),
    (RUN_LIST, {"text": "3 k"}, "3"),
    (RUN_LIST, {"text": "\u212a"}, "3 2 1"),
    (RUN_LIST, {"text": "input"}, ""),
    (AGENT_RUN_LIST, {}, "5"),
    (AGENT_RUN_LIST, {"capability": "maker"}, "5"),
    (AGENT_RUN_LIST, {"capability": "maker@2", "tags": ("t",), "status": "completed"}, "5"),
    (AGENT_RUN_LIST, {"capability": "maker@1"}, ""),
    (AGENT_RUN_LIST, {"provider": "p1"}, ""),
    (AGENT_RUN_LIST, {"text": "tea", "min_cost_usd": 1}, "5"),
    (WORKFLOW_LIST, {"capability": "speech.say"}, "1"),
    (WORKFLOW_LIST, {"provider": "kept"}, "1"),
    (WORKFLOW_LIST, {"provider": "pn"}, "1"),
    (WORKFLOW_LIST, {"provider": "p1"}, ""),
    (WORKFLOW_LIST, {"text": "deep"}, "1"),
    (WORKFLOW_LIST, {"text": "cards", "tags": ("t",)}, "2"),
    (TASK_LIST, {}, "3 2 1"),
    (TASK_LIST, {"capability": "img.draw@1"}, "2"),
    (TASK_LIST, {"provider": "pn"}, "2"),
    (TASK_LIST, {"text": '"hi"/'}, "2"),
    (TASK_LIST, {"tags": ("t",)}, "1"),
]


async def test_every_filter(work: TriedDatabase) -> None:
    """Given every filter of every list, then both databases find the same, newest first."""
    reader = RowReader(work)
    for listed, given, expected in FILTERS:
        wanted = WorkFilter(**given)  # type: ignore[arg-type]
        rows = await reader.list_work(listed, AccountScope("a"), wanted, 50, None)
        found = " ".join(str(row["listed_id"])[-1] for row in rows)
        assert found == expected, (listed.prefix, given)
        first = await reader.list_work(listed, AccountScope("a"), wanted, 1, None)
        assert [row["id"] for row in first] == [row["id"] for row in rows[:1]]
    (row,) = await reader.list_work(RUN_LIST, AccountScope("a"), WorkFilter(), 50, "run_002")
    assert (row["listed_id"], row["tags"], row["note"]) == ("run_001", '["t", "u"]', "n")
