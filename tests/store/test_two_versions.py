"""A database that a later version has migrated: used by this one, or refused."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.store.conftest import Execute
from tests.store.rows import make_row
from toolkit.cli import app
from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.contract.ids import Prefix, new_id
from toolkit.contract.operations.work_queries import WorkFilter
from toolkit.store import AccountScope, AddSpending, ReadOnlyStore, Store
from toolkit.store.schema import HEAD_REVISION
from toolkit.store.tables import metadata
from toolkit.store.work_lists import RUN_LIST

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
    """An open store with an account, a run, and a connection that is shared."""
    opened = await Store.open(tmp_path, database=url)
    await opened.write(ROWS)
    yield opened
    await opened.close()


def expand(execute: Execute, oldest: str) -> None:
    """Do what the migration of a later version does: a column in each table, and a new table."""
    # Triggers of SQLite insert whole rows of sums: a migration that adds to them makes those anew.
    for table in metadata.tables.keys() - {"stored_bytes"}:
        execute(f"ALTER TABLE {table} ADD COLUMN later TEXT")
    execute("CREATE TABLE later (id TEXT PRIMARY KEY)")
    execute(f"UPDATE alembic_version SET version_num = '9999', oldest = '{oldest}'")


async def use(store: Store, number: int) -> None:
    """Read and write all tables that statements by hand are about."""
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


async def test_who_runs_goes_on_with_what_a_later_version_adds(
    store: Store, execute: Execute
) -> None:
    """Given statements in use, when all tables get another column, then they go on."""
    for number in range(1, 4):
        await use(store, number)
    expand(execute, HEAD_REVISION)
    for number in range(4, 7):
        await use(store, number)


async def test_who_starts_is_let_in_where_it_may(
    store: Store, execute: Execute, tmp_path: Path, url: str | None
) -> None:
    """Given the tables of a later version that says this one may use them, then it does."""
    expand(execute, HEAD_REVISION)
    again = await Store.open(tmp_path, database=url)
    await use(again, 1)
    await again.close()
    assert execute("SELECT version_num FROM alembic_version") == [("9999",)]
    looking = await ReadOnlyStore.view(tmp_path, None, database=url)
    assert await looking.get_row("jobs", "job_a") is not None
    await looking.close()


async def test_who_starts_is_refused_where_it_may_not(
    store: Store, execute: Execute, tmp_path: Path, url: str | None
) -> None:
    """Given the tables of a later version that took something away, then it is told in one line."""
    expand(execute, "9998")
    with pytest.raises(ServiceError, match="use the later version") as refused:
        await Store.open(tmp_path, database=url)
    assert refused.value.code is ErrorCode.UNAVAILABLE
    assert "\n" not in refused.value.message


async def test_what_has_to_know_all_tables_is_for_that_version(
    store: Store, execute: Execute, tmp_path: Path, url: str | None
) -> None:
    """Given the tables of a later version, then they are not examined or moved by this one."""
    await store.close()
    expand(execute, HEAD_REVISION)
    command = ["doctor", "--no-vendors", "--data-dir", str(tmp_path)]
    env = {} if url is None else {"TOOLKIT_DATABASE": url}
    shown = CliRunner().invoke(app, command, env=env)
    if url is None:
        assert "of a later version" in shown.output
        moved = ["migrate", "--from", str(tmp_path), "--to", "postgresql://127.0.0.1:1/none"]
        shown = CliRunner().invoke(app, moved)
    assert shown.exit_code == 1
    assert "later version" in str(shown.exception)
