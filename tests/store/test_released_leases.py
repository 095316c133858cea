"""Leases that are released while others wait for the work, in a database of either kind."""

import asyncio
from pathlib import Path
from typing import Final

import psycopg
import pytest

from tests.store.rows import acquire, make_row
from tests.support.clock import LeaseClock
from tests.support.timing import wait_until_async
from toolkit.store import AppendEvent, ReadOnlyStore, Store, UpdateRow
from toolkit.store.writing.event_numbers import EventNumbers

WAITING_SQL: Final = "SELECT 1 FROM pg_locks WHERE NOT granted"
AT = "2026-11-23T08:00:00.000Z"


async def test_what_was_written_before_is_kept(stores: tuple[Store, Store]) -> None:
    """Given writes that nobody waited for, when the lease is released, then they are made first."""
    first, second = stores
    (lease,) = await acquire(first, "run_a")
    written = [first.write([make_row("plans", f"{n}")], lease=lease, eager=False) for n in range(5)]
    await first.leases.release(lease, is_done=False)
    await asyncio.gather(*written)
    assert len(await second.find_rows("plans")) == 5
    (taken,) = await second.leases.claim(10)
    assert taken.root_id == "run_a"


async def test_what_waits_for_the_database_is_kept(tmp_path: Path, postgres_url: str) -> None:
    """Given a write in the queue behind one that is held up, then a release waits for both."""
    store = await Store.open(tmp_path, database=postgres_url)
    (lease,) = await acquire(store, "run_a")
    with psycopg.connect(postgres_url) as holder:
        holder.execute("LOCK TABLE plans IN EXCLUSIVE MODE")
        written = [store.write([make_row("plans", "0")], lease=lease)]
        with psycopg.connect(postgres_url, autocommit=True) as onlooker:
            await wait_until_async(lambda: bool(onlooker.execute(WAITING_SQL).fetchone()))
        written.append(store.write([make_row("plans", "1")], lease=lease))
        releasing = asyncio.create_task(store.leases.release(lease, is_done=False))
        for _ in range(10):
            await store.find_rows("roots")  # time enough to get in between
    await asyncio.gather(*written, releasing)
    assert len(await store.find_rows("plans")) == 2
    await store.close()


async def test_a_reader_sees_that_work_is_abandoned(tmp_path: Path, url: str | None) -> None:
    """Given a lease that has ended though its owner lives, then a reader reports it, unwritten."""
    store = await Store.open(tmp_path, database=url)
    await acquire(store, "run_a", "run_b")
    await store.write([UpdateRow("roots", "run_a", {"lease_until": 1.0})])
    reader = await ReadOnlyStore.view(tmp_path, None, database=url)
    assert await reader.leases.is_abandoned("run_a")
    assert not await reader.leases.is_abandoned("run_b")
    await reader.close()
    (row,) = await store.find_rows("roots", id="run_a")
    assert row["lease_until"] == 1.0
    await store.close()


def test_numbers_are_forgotten_between_transactions() -> None:
    """Given a claim while events are written, then these have the numbers that are theirs."""
    known = {"wfl_a": 7}
    numbers = EventNumbers(lambda _key, _column, value: known.pop(value))
    events = [AppendEvent("wfl_a", "node.queued", {}, AT)] * 3
    numbers.begin()
    first = numbers.make_rows(events[:1])
    numbers.forget()  # on another thread, in the middle
    assert [row[1] for row in (*first, *numbers.make_rows(events))] == [8, 9, 10, 11]
    known["wfl_a"] = 20  # as somebody else has added some
    numbers.begin()
    assert [row[1] for row in numbers.make_rows(events)] == [21, 22, 23]


async def test_a_lease_is_renewed_when_that_is_due(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str | None
) -> None:
    """Given leases that were just taken, then they are written again once a quarter has passed."""
    clock = LeaseClock(monkeypatch, url)
    store = await Store.open(tmp_path, database=url, lease_s=8.0)
    await acquire(store, "run_a", "run_b")
    ends = []
    for _ in range(5):
        store.leases.renew()
        ends.append([row["lease_until"] for row in await store.find_rows("roots")])
        clock.now += 1.5
    assert ends[0] == ends[1] < ends[2] == ends[3] < ends[4]
    assert min(ends[4]) == clock.now - 1.5 + 8.0
    await store.close()
    clock.close()
