"""Reads return the rows of their account scope, on both databases."""

import json
import re
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

import toolkit.store
from tests.store.rows import make_row
from toolkit.store import (
    AccountScope,
    AllAccounts,
    Change,
    ReadScope,
    Store,
)

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
