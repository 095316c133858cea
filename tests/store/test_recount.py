"""Repairs of sums, and the scope of an account."""

import json
import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final

import psycopg
import pytest

import toolkit.store
from tests.store.rows import make_row
from tests.store.upkeep import diagnose
from tests.support.timing import wait_until
from toolkit import Client
from toolkit.settings import Settings
from toolkit.store import (
    AccountScope,
    AllAccounts,
    Change,
    ReadScope,
    Store,
)
from toolkit.store.blobs import open_place
from toolkit.store.maintenance.doctor import repair_database
from toolkit.store.postgres.upkeep import PostgresUpkeep

ASKED: Final = {"objective": "One line on tides"}

WAITING_SQL: Final = (
    "SELECT 1 FROM pg_stat_activity WHERE application_name = 'toolkit-command'"
    " AND wait_event_type = 'Lock' AND datname = current_database()"
)

WRONG: Final = (
    "UPDATE stored_bytes SET records = records + 1000",
    "UPDATE stored_bytes SET artifacts = artifacts - 7",
    "DELETE FROM stored_bytes",
    "INSERT INTO stored_bytes VALUES ('acc_gone', 3, 4)",
)


@pytest.fixture
def database(database: Client) -> Client:
    """An engine with some work in its PostgreSQL database."""
    database.artifacts.upload(b"leaf" * 50)
    database.runs.create("llm.generate", ASKED).wait(progress=False)
    return database


@pytest.mark.parametrize("wrong", WRONG)
def test_repair_corrects_wrong_sums_once(
    database: Client, settings: Settings, postgres_url: str, wrong: str
) -> None:
    """Given sums that are wrong or gone, or of no account, then one repair corrects them."""
    assert "sums of stored bytes" not in diagnose(settings.data_dir)[1]
    with psycopg.connect(postgres_url, autocommit=True) as session:
        session.execute(wrong.encode())
    assert "sums of stored bytes" in diagnose(settings.data_dir)[1]
    _, output = diagnose(settings.data_dir, "--repair")
    assert "Recounted the stored bytes of accounts." in output
    assert "sums of stored bytes" not in output
    assert "Recounted" not in diagnose(settings.data_dir, "--repair")[1]
    assert database.health().status == "ok"


def test_an_engine_writes_during_a_repair(
    database: Client, settings: Settings, postgres_url: str
) -> None:
    """Given a long repair, then an engine writes meanwhile, and the sums include its rows."""
    with (
        psycopg.connect(postgres_url, autocommit=True) as session,
        psycopg.connect(postgres_url) as holder,
        ThreadPoolExecutor(1) as pool,
    ):
        session.execute("UPDATE stored_bytes SET records = records + 1000, artifacts = 0")
        # The repair waits when it adds up these rows, after its snapshot has begun.
        holder.execute("LOCK TABLE templates IN ACCESS EXCLUSIVE MODE")
        repairing = pool.submit(diagnose, settings.data_dir, "--repair")
        try:
            wait_until(lambda: session.execute(WAITING_SQL).fetchone(), "the repair has begun")
            database.artifacts.upload(b"bark" * 70)
            run = database.runs.create("llm.generate", ASKED).wait(progress=False)
            assert run.status == "completed"
            assert not repairing.done()
        finally:
            holder.rollback()
        _, output = repairing.result()
    assert "Recounted the stored bytes of accounts." in output
    assert "sums of stored bytes" not in output


def test_concurrent_repairs_correct_once(
    database: Client, settings: Settings, postgres_url: str
) -> None:
    """Given two repairs of the same sums, then one of them corrects the sums."""
    with (
        psycopg.connect(postgres_url, autocommit=True) as session,
        psycopg.connect(postgres_url) as holder,
        ThreadPoolExecutor(2) as pool,
    ):
        session.execute("UPDATE stored_bytes SET records = records - 1000")
        holder.execute("SELECT 1 FROM stored_bytes FOR UPDATE")  # so that neither is done
        # Not by the command, because its output is that of the whole process.
        place = open_place(settings.data_dir, None)

        def run_repair() -> list[str]:
            with PostgresUpkeep.open(postgres_url) as records:
                return repair_database(records, place)

        repairs = [pool.submit(run_repair) for _ in range(2)]
        wait_until(lambda: len(session.execute(WAITING_SQL).fetchall()) == 2, "both have begun")
        holder.rollback()
        actions = [repair.result() for repair in repairs]
    assert sorted(actions) == [[], ["Recounted the stored bytes of accounts."]]
    assert "sums of stored bytes" not in diagnose(settings.data_dir)[1]
    assert database.health().status == "ok"


ACCOUNTS = ("acc_ada", "acc_grace")

SCOPES: list[ReadScope] = [*map(AccountScope, ACCOUNTS), AccountScope("acc_none"), AllAccounts()]

STATUSES = ("completed", "failed")

COUNT = 12


def _get_account(number: int) -> str:
    return ACCOUNTS[number % 3 == 0]


def _make_rows(number: int) -> list[Change]:
    account_id, run_id = _get_account(number), f"run_{number:02}"
    owned = partial(make_row, account_id=account_id)
    # Some work of each account uses a connection of the other account.
    spent = {"connection_id": f"prv_{(number * 5) % COUNT:02}", "jobs": number}
    status = STATUSES[number % 2]
    return [
        owned("usage", f"{number}", day="2026-11-20", **spent),
        owned("roots", run_id, kind="run", open=number % 2 == 0),
        owned("jobs", f"job_{number:02}", root_id=run_id, run_id=run_id, status=status),
        owned("annotations", run_id, tags=json.dumps(["t", f"t{number % 4}"])),
        owned("connections", f"prv_{number:02}"),
    ]


def _list_numbers(scope: ReadScope) -> list[int]:
    accounts = ACCOUNTS if isinstance(scope, AllAccounts) else (scope.account_id,)
    return [number for number in range(COUNT) if _get_account(number) in accounts]


@pytest.mark.parametrize("scope", SCOPES, ids=repr)
async def test_reads_only_the_rows_of_the_scope(
    stores: tuple[Store, Store], scope: ReadScope
) -> None:
    """Given rows of two accounts, then every read returns only the rows of its scope."""
    store = stores[0]
    await store.write([change for number in range(COUNT) for change in _make_rows(number)])
    numbers = _list_numbers(scope)
    newest_first = [f"job_{number:02}" for number in reversed(numbers)]

    page = await store.list_page("jobs", scope, limit=100)
    assert [row["id"] for row in page] == newest_first
    below = await store.list_page("jobs", scope, limit=2, before="job_07", without="failed")
    assert [row["id"] for row in below] == [
        f"job_{n:02}" for n in reversed(numbers) if n < 7 and n % 2 == 0
    ][:2]
    failed_rows = await store.find_owned_rows("jobs", scope, status="failed")
    assert [row["id"] for row in failed_rows] == [f"job_{n:02}" for n in numbers if n % 2]
    for number in range(COUNT):
        row = await store.find_owned_row("jobs", scope, f"job_{number:02}", "id", "account_id")
        expected = {"id": f"job_{number:02}", "account_id": _get_account(number)}
        assert row == (expected if number in numbers else None)
    assert await store.count_rows("jobs", scope) == len(numbers)

    span = ("2026-11-01", "2026-11-30")
    sums = await store.sum_rows("usage", ["jobs"], ["account_id"], scope, "day", span)
    expected_sums = Counter[str]()
    for number in numbers:
        expected_sums[_get_account(number)] += number
    assert {row["spender_id"]: row["jobs"] for row in sums} == expected_sums
    sums_through = await store.sum_rows(
        "usage", ["jobs"], ["account_id"], scope, "day", span, through=True
    )
    expected_through = Counter[str]()
    for number in range(COUNT):
        if (number * 5) % COUNT in numbers:
            expected_through[_get_account(number)] += number
    assert {row["spender_id"]: row["jobs"] for row in sums_through} == expected_through


def test_one_module_builds_the_condition_of_an_account() -> None:
    """Given the store's source, then one module builds the condition on `account_id`."""
    spelling = re.compile(r"account_id = :|c\.account_id == |[\"']account_id[\"']\s*,?\s*\*equals")
    folder = Path(toolkit.store.__file__).parent
    modules = {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*.py")
        if spelling.search(path.read_text())
    }
    assert modules == {"account_scope.py"}
