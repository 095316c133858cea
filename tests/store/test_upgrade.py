"""Databases of a later version: upgraded, used or refused."""

import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.store.conftest import Execute
from tests.store.rows import make_row
from tests.support.commands import run_toolkit
from tests.support.database_pool import execute_sql
from tests.support.later_version import LATER, make_later_version
from toolkit import Client
from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.contract.ids import Prefix, new_id
from toolkit.contract.operations.work_queries import WorkFilter
from toolkit.store import AccountScope, AddSpending, ReadOnlyStore, Store
from toolkit.store.schema import HEAD_REVISION
from toolkit.store.tables import metadata
from toolkit.store.work_lists import RUN_LIST

LINE = {"objective": "Salt"}


def run_migrate(version: Path, folder: Path, url: str | None) -> subprocess.CompletedProcess[str]:
    """Run `toolkit migrate` of a version of the package."""
    words = [sys.executable, "-m", "toolkit", "migrate", "--data-dir", str(folder)]
    env = {**os.environ, "PYTHONPATH": str(version)}
    if url is not None:
        words += ["--database", url]
    return subprocess.run(words, cwd=version, env=env, capture_output=True, text=True, timeout=60)


def test_the_next_version_upgrades_a_database(
    tmp_path: Path, url: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a run, when the next version migrates its database, then both versions read the run."""
    folder = tmp_path / "data"
    if url is not None:
        monkeypatch.setenv("TOOLKIT_DATABASE", url)
    with Client.local(folder, sandbox=True) as client:
        run = client.runs.create("llm.generate", LINE).wait()
    result = run_migrate(make_later_version(tmp_path / "later"), folder, url)
    assert (result.returncode, LATER in result.stdout) == (0, True), result.stderr
    versions = execute_sql(folder, url, "SELECT version_num, oldest FROM alembic_version")
    assert versions == [(LATER, HEAD_REVISION)]
    assert execute_sql(folder, url, "SELECT later FROM jobs") == [(None,)]
    with Client.local(folder, sandbox=True) as client:
        assert client.runs.get(run.id).output == run.output
        assert client.runs.create("llm.generate", LINE).wait().status == "completed"


async def test_no_incompatible_upgrade_while_engines_run(tmp_path: Path, url: str | None) -> None:
    """Given engines that cannot use the next tables, then no migration runs until they stop."""
    later = make_later_version(tmp_path / "later", oldest=LATER)
    store = await Store.open(tmp_path / "data", database=url)
    try:
        result = run_migrate(later, tmp_path / "data", url)
        assert (result.returncode, "stop them" in result.stderr) == (4, True), result.stderr
        versions = execute_sql(tmp_path / "data", url, "SELECT version_num FROM alembic_version")
        assert versions == [(HEAD_REVISION,)]
    finally:
        await store.close()
    assert run_migrate(later, tmp_path / "data", url).returncode == 0


async def test_refuses_tables_of_an_unreleased_version(tmp_path: Path, url: str | None) -> None:
    """Given tables of a version before the first release, then one line says what to do."""
    await (await Store.open(tmp_path, database=url)).close()
    execute_sql(tmp_path, url, "UPDATE alembic_version SET version_num = '0015'")
    before = (tmp_path / "state.db").read_bytes() if url is None else b""
    with pytest.raises(ServiceError, match="begin with a new data directory") as refused:
        await Store.open(tmp_path, database=url)
    assert refused.value.code is ErrorCode.UNAVAILABLE
    assert "\n" not in refused.value.message
    options = [] if url is None else ["--database", url]
    result = run_toolkit("doctor", "--no-vendors", "--data-dir", tmp_path, *options)
    assert (result.exit_code, "unreleased" in f"{result.output}{result.exception}") == (1, True)
    assert execute_sql(tmp_path, url, "SELECT version_num FROM alembic_version") == [("0015",)]
    assert url is not None or (tmp_path / "state.db").read_bytes() == before


RUN_ID = new_id(Prefix.RUN)
ROWS = (
    make_row("accounts", "acc_a"),
    make_row("accounts", "acc_b", operator=True),
    make_row("connections", "prv_a", account_id="acc_b"),
    make_row("shares", "prv_a|*", connection_id="prv_a", shared_with="*"),
    make_row("roots", RUN_ID, account_id="acc_a", kind="run"),
    make_row("jobs", "job_a", account_id="acc_a", root_id=RUN_ID, run_id=RUN_ID),
)


@pytest.fixture
async def store(tmp_path: Path, url: str | None) -> AsyncIterator[Store]:
    """An open store with two accounts, a run and a shared connection."""
    opened = await Store.open(tmp_path, database=url)
    await opened.write(ROWS)
    yield opened
    await opened.close()


def expand(execute: Execute, oldest: str) -> None:
    """Migrate as a later version: add a column to each table, and a table."""
    # Triggers of SQLite insert whole rows of sums, so a migration of that table replaces them.
    for table in metadata.tables.keys() - {"stored_bytes"}:
        execute(f"ALTER TABLE {table} ADD COLUMN later TEXT")
    execute("CREATE TABLE later (id TEXT PRIMARY KEY)")
    execute(f"UPDATE alembic_version SET version_num = '9999', oldest = '{oldest}'")


async def use(store: Store, number: int) -> None:
    """Read and write all tables that have hand-written statements."""
    await store.write([AddSpending("day", "key", 1, None)])
    assert (await store.get_spending("day"))[0] == number
    (shared,) = await store.list_shared_connections("acc_a")
    assert shared["id"] == "prv_a"
    (run,) = await store.list_work(RUN_LIST, AccountScope("acc_a"), WorkFilter(), 10, None)
    assert run["id"] == "job_a"
    (row,) = await store.find_rows("jobs", account_id="acc_a")
    assert row["root_id"] == RUN_ID
    name = f"plan_{number}"
    await store.write([make_row("plans", name)])
    assert await store.get_row("plans", name) is not None


async def test_a_running_store_tolerates_new_columns(store: Store, execute: Execute) -> None:
    """Given statements in use, when all tables get a column, then the statements still work."""
    for number in range(1, 4):
        await use(store, number)
    expand(execute, HEAD_REVISION)
    for number in range(4, 7):
        await use(store, number)


async def test_opens_a_compatible_later_database(
    store: Store, execute: Execute, tmp_path: Path, url: str | None
) -> None:
    """Given tables of a later version that this version may use, then stores open them."""
    expand(execute, HEAD_REVISION)
    again = await Store.open(tmp_path, database=url)
    await use(again, 1)
    await again.close()
    assert execute("SELECT version_num FROM alembic_version") == [("9999",)]
    looking = await ReadOnlyStore.view(tmp_path, None, database=url)
    assert await looking.get_row("jobs", "job_a") is not None
    await looking.close()


async def test_refuses_an_incompatible_later_database(
    store: Store, execute: Execute, tmp_path: Path, url: str | None
) -> None:
    """Given tables of a later version that removed something, then one line refuses them."""
    expand(execute, "9998")
    with pytest.raises(ServiceError, match="use the later version") as refused:
        await Store.open(tmp_path, database=url)
    assert refused.value.code is ErrorCode.UNAVAILABLE
    assert "\n" not in refused.value.message


async def test_doctor_and_migrate_refuse_a_later_database(
    store: Store, execute: Execute, tmp_path: Path, url: str | None
) -> None:
    """Given the tables of a later version, then doctor and migrate refuse them."""
    await store.close()
    expand(execute, HEAD_REVISION)
    options = [] if url is None else ["--database", url]
    result = run_toolkit("doctor", "--no-vendors", "--data-dir", tmp_path, *options)
    if url is None:
        assert "of a later version" in result.output
        result = run_toolkit("migrate", "--from", tmp_path, "--to", "postgresql://127.0.0.1:1/none")
    assert result.exit_code == 1
    assert "later version" in str(result.exception)
