"""PostgreSQL databases that tests reuse, because a new database per test costs more than a test.

With `TOOLKIT_TEST_DATABASE=postgresql`, each data directory that a test opens keeps its rows in one
of these databases, unless the test names a database. All rows are deleted after the test.
"""

import os
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest

from tests._postgres import PostgresCluster
from toolkit.store import Store
from toolkit.store.configuration_version import FIRST_VERSION_SQL
from toolkit.store.postgres.schema import migrate_postgres_schema
from toolkit.store.tables import metadata

# Read before the tests clear the variable.
ON_POSTGRESQL: Final = os.environ.get("TOOLKIT_TEST_DATABASE", "sqlite") == "postgresql"
MAX_LEAVING_CHECKS: Final = 50
# Parameters of tests that run on both databases, and need not run a second time.
BOTH_DATABASES: Final = (
    pytest.param("sqlite", marks=pytest.mark.sqlite("the other of two")),
    pytest.param("postgresql", marks=pytest.mark.postgresql),
)
_OF_POSTGRESQL: Final = {"postgres", "postgres_url", "own_postgres"}
_LIST_OTHERS_SQL: Final = (
    "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
    " AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
)
# Triggers are off, because they would only update sums of rows that are deleted.
_WIPE_SQL: Final = "; ".join(
    [
        "SET session_replication_role = replica",
        *(f"DELETE FROM {name}" for name in metadata.tables),
        "DELETE FROM input_texts",  # usually emptied by triggers
        FIRST_VERSION_SQL,
        "COMMENT ON TABLE configuration IS NULL",
    ]
)


class DatabasePool:
    """The databases that hold the rows of data directories.

    Args:
        cluster: server of the databases.
    """

    def __init__(self, cluster: PostgresCluster) -> None:
        self._cluster = cluster
        self._turn = threading.Lock()
        self._template: str | None = None
        self._spare: list[str] = []
        self._taken: dict[Path, str] = {}

    def find_url(self, data_dir: Path) -> str:
        """Return the address of a data directory's database, which is empty the first time."""
        key = data_dir.resolve()
        with self._turn:
            if key not in self._taken:
                self._wipe(path for path in self._taken if not path.exists())
                with suppress(OSError):
                    key.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._taken[key] = self._spare.pop() if self._spare else self._make()
            return self._taken[key]

    def copy(self, data_dir: Path, target: Path) -> None:
        """Copy the rows of a data directory, which no process has open, to another directory."""
        with self._turn:
            name = self._taken[data_dir.resolve()].rpartition("/")[2]
            self._taken[target.resolve()] = self._cluster.create_database(name)

    def drop(self, data_dir: Path) -> None:
        """Delete the database of a data directory."""
        with self._turn:
            self._cluster.drop_database(self._taken.pop(data_dir.resolve()))

    def _make(self) -> str:
        if self._template is None:
            url = self._cluster.create_database()
            self._template = url.rpartition("/")[2]
            with self._cluster.connect(self._template) as connection:
                migrate_postgres_schema(connection)
        return self._cluster.create_database(self._template)

    def give_back(self, folder: Path = Path("/")) -> None:
        """Wipe the databases of all data directories in a folder, for use by other tests."""
        with self._turn:
            self._wipe(path for path in self._taken if path.is_relative_to(folder.resolve()))

    def _wipe(self, folders: Iterable[Path]) -> None:
        for path in list(folders):
            url = self._taken.pop(path)
            with self._cluster.connect(url.rpartition("/")[2]) as connection:
                is_left = _wait_until_left(connection)
                if is_left:
                    connection.execute(_WIPE_SQL.encode())
            if is_left:
                self._spare.append(url)
            else:  # an engine of a failed test may be running, and would do other tests' work
                self._cluster.drop_database(url)


def _wait_until_left(connection: "psycopg.Connection[tuple[object, ...]]") -> bool:
    """Wait for sessions that are just ending; return whether no other session is connected."""
    for _ in range(MAX_LEAVING_CHECKS):
        if not connection.execute(_LIST_OTHERS_SQL).fetchall():
            return True
        connection.execute("SELECT pg_sleep(0.01)")
    return False


@contextmanager
def open_rows(data_dir: Path, url: str | None, *, read_only: bool = False) -> Iterator[Any]:
    """Open the rows of a data directory directly, while another process may have it open.

    Args:
        data_dir: folder of the rows, unless they are in a database.
        url: address of the database; None for SQLite.
        read_only: True does not recover the log of a process that died, as a writer would.
    """
    if url is not None:
        with psycopg.connect(url, autocommit=True) as session:
            yield session
        return
    place = f"file:{data_dir / 'state.db'}?mode={'ro' if read_only else 'rwc'}"
    with closing(sqlite3.connect(place, uri=True, isolation_level=None)) as file:
        yield file


def execute_sql(data_dir: Path, url: str | None, sql: str) -> list[tuple[Any, ...]]:
    """Run a statement on the rows of a data directory, and return the rows that it selects."""
    with open_rows(data_dir, url) as rows:
        cursor = rows.execute(sql)
        return list(cursor.fetchall()) if cursor.description else []


@contextmanager
def keep_rows_in(pool: DatabasePool) -> Iterator[None]:
    """Keep the rows of each data directory of this process in a database of the pool."""
    open_store = Store.open

    async def open_pooled(data_dir: Path, *, database: str | None = None, **options: Any) -> Store:
        if database is None and not (data_dir / "state.db").exists():
            database = pool.find_url(data_dir)
        return await open_store(data_dir, database=database, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Store, "open", open_pooled)
        yield


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests of PostgreSQL itself, which are the same with and without the variable."""
    for item in items:
        if not _OF_POSTGRESQL.isdisjoint(getattr(item, "fixturenames", ())):
            item.add_marker("postgresql")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip tests that apply to SQLite only, with their reason."""
    mark = item.get_closest_marker("sqlite")
    if mark is not None and ON_POSTGRESQL:
        pytest.skip(f"on SQLite alone: {mark.args[0]}")


@pytest.fixture(autouse=True, scope="session")
def database_pool(request: pytest.FixtureRequest) -> Iterator[DatabasePool | None]:
    """Provide the pool in tests on PostgreSQL, so that no data directory has rows of its own."""
    if not ON_POSTGRESQL:
        yield None
        return
    pool = DatabasePool(request.getfixturevalue("postgres"))
    with keep_rows_in(pool):
        yield pool


@pytest.fixture(autouse=True, scope="module")
def _give_back_of_module(database_pool: DatabasePool | None) -> Iterator[None]:
    """Wipe the databases that the tests of a module shared."""
    yield
    if database_pool is not None:
        database_pool.give_back()


@pytest.fixture(autouse=True)
def _give_back_of_test(
    request: pytest.FixtureRequest, database_pool: DatabasePool | None
) -> Iterator[None]:
    """Wipe the databases of a test after its end."""
    if database_pool is None or "tmp_path" not in request.fixturenames:
        yield
        return
    folder = request.getfixturevalue("tmp_path")
    yield
    database_pool.give_back(folder)


@pytest.fixture
def find_url(database_pool: DatabasePool | None) -> Callable[[Path], str | None]:
    """Returns the address of a data directory's database, or None for a file."""
    return lambda data_dir: None if database_pool is None else database_pool.find_url(data_dir)


@pytest.fixture
def name_dir(find_url: Callable[[Path], str | None]) -> Callable[[Path], tuple[str, ...]]:
    """Returns the options of a command that name a data directory and its database."""

    def name(data_dir: Path) -> tuple[str, ...]:
        url = find_url(data_dir)
        return ("--data-dir", str(data_dir), *(() if url is None else ("--database", url)))

    return name
