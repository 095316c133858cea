"""Leases: claims of free work, releases, and renewals, on both databases."""

import asyncio
from pathlib import Path
from typing import Final

import psycopg
import pytest

from tests.store.rows import AT, acquire, make_row
from tests.support.clock import LeaseClock
from tests.support.s3_server import S3Link
from tests.support.timing import wait_until_async
from toolkit.store import AppendEvent, Lease, ReadOnlyStore, Row, Store, UpdateRow
from toolkit.store.writing.write_connection import EventNumbers

MANY: Final = 2_000
PLAIN: Final = "sslmode=disable&gssencmode=disable"
# All rows would take far more: about 150 bytes each.
LITTLE_BYTES: Final = 20_000


async def release(store: Store, *leases: Lease) -> None:
    """Release roots that are not done."""
    await store.write([UpdateRow("roots", lease.root_id, {"owner": None}) for lease in leases])


async def test_claims_the_oldest_work_first(stores: tuple[Store, Store]) -> None:
    """Given free work of several kinds, then the oldest work is claimed first."""
    first, second = stores
    kinds = {"wfl_a": "workflow", "run_b": "run", "job_c": "job", "run_a": "run"}
    for day, (name, kind) in enumerate(kinds.items(), 1):
        await release(first, *await acquire(first, name, kind=kind))
        at = f"2026-01-0{day}T08:00:00.000Z"
        await first.write([UpdateRow("roots", name, {"created_at": at})])
    claimed = [lease.root_id for lease in await second.leases.claim(3)]
    claimed += [lease.root_id for lease in await second.leases.claim(3)]
    assert claimed == list(kinds)
    assert await first.leases.claim(3) == []


async def test_finds_suitable_work_behind_unsuitable_work(stores: tuple[Store, Store]) -> None:
    """Given much free work that an engine cannot do, then it finds the work that it can do."""
    first, second = stores
    names = [f"run_{n:05}" for n in range(MANY)]
    await release(first, *await acquire(first, *names))
    checked_ids: list[str] = []

    async def is_last(row: Row) -> bool:
        checked_ids.append(row["id"])
        return bool(row["id"] == names[-1])

    (lease,) = await second.leases.claim(64, is_last)
    assert lease.root_id == names[-1]
    assert sorted(checked_ids) == names


async def test_claims_only_a_free_root_by_its_id(stores: tuple[Store, Store]) -> None:
    """Given roots that are free, held and done, then only the free root is claimed by its id."""
    first, second = stores
    free_lease, done_lease, _ = await acquire(first, "run_free", "run_done", "run_held")
    await release(first, free_lease)
    await first.leases.release(done_lease, is_done=True)
    for name in ("run_done", "run_held", "run_nobody"):
        assert await second.leases.claim_root(name) is None
    claimed = await second.leases.claim_root("run_free")
    assert claimed is not None
    assert claimed.fence == free_lease.fence + 1
    assert await second.leases.claim_root("run_free") is None


async def test_claims_skip_the_work_of_other_engines(tmp_path: Path, postgres_url: str) -> None:
    """Given thousands of runs of another engine, then a search for abandoned work reads little."""
    address, _, name = postgres_url.rpartition("/")
    server = address.rpartition("@")[2]
    busy = await Store.open(tmp_path / "busy", database=postgres_url)
    leases = await acquire(busy, *(f"run_{n:05}" for n in range(MANY)))
    with S3Link(f"http://{server}") as relay:
        near = address.replace(server, relay.url.removeprefix("http://"))
        store = await Store.open(tmp_path / "idle", database=f"{near}/{name}?{PLAIN}")
        assert await store.leases.claim(1) == []
        before = relay.counts["back"]
        assert await store.leases.claim(1) == []
        assert relay.counts["back"] - before < LITTLE_BYTES
        # Of the free roots, the store reads few more than it claims.
        await release(busy, *leases)
        before = relay.counts["back"]
        (lease,) = await store.leases.claim(1)
        assert lease.root_id == "run_00000"
        assert relay.counts["back"] - before < MANY * 50
        await store.close()
    await busy.close()


WAITING_SQL: Final = "SELECT 1 FROM pg_locks WHERE NOT granted"


async def test_a_release_follows_the_writes_before_it(stores: tuple[Store, Store]) -> None:
    """Given writes without a waiter, then a release of their lease follows them."""
    first, second = stores
    (lease,) = await acquire(first, "run_a")
    writes = [first.write([make_row("plans", f"{n}")], lease=lease, eager=False) for n in range(5)]
    await first.leases.release(lease, is_done=False)
    await asyncio.gather(*writes)
    assert len(await second.find_rows("plans")) == 5
    (new_lease,) = await second.leases.claim(10)
    assert new_lease.root_id == "run_a"


async def test_a_release_waits_for_locked_writes(tmp_path: Path, postgres_url: str) -> None:
    """Given a write behind a write that waits for a lock, then a release waits for both."""
    store = await Store.open(tmp_path, database=postgres_url)
    (lease,) = await acquire(store, "run_a")
    with psycopg.connect(postgres_url) as holder:
        holder.execute("LOCK TABLE plans IN EXCLUSIVE MODE")
        writes = [store.write([make_row("plans", "0")], lease=lease)]
        with psycopg.connect(postgres_url, autocommit=True) as onlooker:
            await wait_until_async(lambda: bool(onlooker.execute(WAITING_SQL).fetchone()))
        writes.append(store.write([make_row("plans", "1")], lease=lease))
        releasing = asyncio.create_task(store.leases.release(lease, is_done=False))
        for _ in range(10):
            await store.find_rows("roots")  # enough time for a wrong release
    await asyncio.gather(*writes, releasing)
    assert len(await store.find_rows("plans")) == 2
    await store.close()


async def test_a_reader_reports_abandoned_work(tmp_path: Path, url: str | None) -> None:
    """Given an expired lease of a live owner, then a reader reports it, and writes nothing."""
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


def test_event_numbers_are_cleared_between_transactions() -> None:
    """Given a claim during a transaction, then the transaction's events keep their numbers."""
    last_numbers = {"wfl_a": 7}
    numbers = EventNumbers(lambda _key, _column, value: last_numbers.pop(value))
    events = [AppendEvent("wfl_a", "node.queued", {}, AT)] * 3
    numbers.begin()
    first = numbers.make_rows(events[:1])
    numbers.forget()  # by another thread, during the transaction
    assert [row[1] for row in (*first, *numbers.make_rows(events))] == [8, 9, 10, 11]
    last_numbers["wfl_a"] = 20  # another store has added events
    numbers.begin()
    assert [row[1] for row in numbers.make_rows(events)] == [21, 22, 23]


async def test_renews_a_lease_after_a_quarter_of_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str | None
) -> None:
    """Given new leases, then a renewal writes them once a quarter of their time has passed."""
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
