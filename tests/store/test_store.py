"""The store: whole transactions in order, event numbers without gaps, and fenced leases."""

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import create_engine

from tests.store.rows import AT, acquire, claim_ended, make_job, make_row
from tests.support.clock import LeaseClock
from tests.support.sqlite import get_sqlite
from tests.support.timing import PATIENCE_S, Watch, wait_until, yield_turns
from tests.support.write_lock import WriteLock
from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.store import (
    AppendEvent,
    Change,
    Conflict,
    LeaseLost,
    Store,
    StoreUnavailableError,
    UpdateRow,
)
from toolkit.store.postgres.writing.writes import PostgresWriteConnection
from toolkit.store.schema import HEAD_REVISION, MIGRATIONS_DIR, migrate_schema
from toolkit.store.sqlite.connections import create_sqlite_engine
from toolkit.store.sqlite.database import WalCheckpointer
from toolkit.store.sqlite.writes import SqliteWriteConnection
from toolkit.store.tables import metadata

LEASE_S = 0.2


@pytest.fixture
def clock(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, find_url: Callable[[Path], str | None]
) -> Iterator[LeaseClock]:
    """The clock of leases; requested before the store."""
    clock = LeaseClock(monkeypatch, find_url(tmp_path))
    yield clock
    clock.close()


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    """An open store."""
    opened = await Store.open(tmp_path, lease_s=LEASE_S)
    yield opened
    await opened.close()


@pytest.fixture
async def other_store(store: Store, tmp_path: Path) -> AsyncIterator[Store]:
    """A second store of the directory."""
    opened = await Store.open(tmp_path, lease_s=LEASE_S)
    yield opened
    await opened.close()


@pytest.fixture
def write_lock(
    store: Store, tmp_path: Path, find_url: Callable[[Path], str | None]
) -> Iterator[WriteLock]:
    """The write lock of the store's database, not yet taken."""
    lock = WriteLock(tmp_path, find_url(tmp_path))
    yield lock
    lock.close()


def is_declared(name: str | None, kind: str, _parents: object) -> bool:
    """Return whether the metadata has a table: the text index has virtual tables."""
    return kind != "table" or not str(name).startswith("input_text")


@pytest.mark.filterwarnings("ignore:Skipped unsupported reflection of expression-based index")
def test_creates_the_tables_of_the_metadata(tmp_path: Path) -> None:
    """Given an empty database, when migrated, then it has exactly the tables of the metadata."""
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    engine = create_engine(f"sqlite:///{tmp_path / 'new'}.db")
    with engine.connect() as connection:
        migrate_schema(connection)
        context = MigrationContext.configure(connection, opts={"include_name": is_declared})
        assert compare_metadata(context, metadata) == []
    engine.dispose()
    newest = max(path.name[:4] for path in (MIGRATIONS_DIR / "versions").glob("0*.py"))
    assert newest == HEAD_REVISION


MANY = 500


async def test_writes_everything_before_it_closes(store: Store, tmp_path: Path) -> None:
    """Given more writes than one transaction takes, when closed at once, then all are there."""
    (lease,) = await acquire(store, "run_r")
    for n in range(MANY):
        store.write([make_job(str(n))], lease=lease, eager=bool(n % 2))
    store.write([UpdateRow("jobs", "job_0", {"status": "running"})], lease=lease, eager=False)
    await store.close()
    reopened = await Store.open(tmp_path)
    rows = await reopened.find_rows("jobs", root_id="r")
    await reopened.close()
    assert len(rows) == MANY
    assert [row["id"] for row in rows if row["status"] == "running"] == ["job_0"]


async def test_refuses_a_change_after_closing(store: Store) -> None:
    """Given a closed store, then a small change is refused."""
    await store.close()
    with pytest.raises(StoreUnavailableError, match="closed"):
        await store.limits.change(["a row"], lambda documents, _: documents.clear())


async def test_a_new_request_waits_for_one_transaction(store: Store) -> None:
    """Given the backlog of a large workflow, then another request does not wait for all of it."""
    (lease,) = await acquire(store, "run_r")
    many = 2 * MANY
    large = [store.write([make_job(str(n))], lease=lease) for n in range(many)]
    inserted, _ = store.leases.build_root("run_other", "run", "other")
    event = AppendEvent("run_other", "run.queued", {}, AT)
    await store.write([inserted, event])
    assert sum(not write.done() for write in large) > many // 2
    assert (await store.get_row("roots", "run_other")) is not None
    await asyncio.gather(*large)
    states = [UpdateRow("jobs", f"job_{n}", {"status": f"{n % 7}"}) for n in range(many)]
    await store.write(states, lease=lease)
    rows = await store.find_rows("jobs", root_id="r")
    assert {row["id"]: row["status"] for row in rows} == {
        f"job_{n}": f"{n % 7}" for n in range(many)
    }


def test_concurrent_openers_create_the_tables_once(tmp_path: Path) -> None:
    """Given an empty database that several threads open at once, then all have the same tables."""
    start = threading.Barrier(4)

    def open_database(path: Path) -> set[tuple[Any, ...]]:
        engine = create_sqlite_engine(path, "normal")
        start.wait()
        with engine.connect() as connection:
            migrate_schema(connection)
            rows = connection.exec_driver_sql("SELECT name, sql FROM sqlite_master").fetchall()
        engine.dispose()
        return {tuple(row) for row in rows}

    with ThreadPoolExecutor(4) as threads:
        for turn in range(25):  # about one of twenty has a conflict
            first, *rest = threads.map(open_database, [tmp_path / f"{turn}.db"] * 4)
            assert first
            assert rest == [first] * 3


async def test_writes_a_call_completely_or_not_at_all(store: Store) -> None:
    """Given concurrent calls of which one conflicts, then that one writes nothing."""
    await store.write([make_row("accounts", "acc_1", email="a@x.org")])
    calls = [
        store.write([make_job("a"), AppendEvent("wfl", "node.queued", {}, AT)]),
        store.write(
            [
                make_job("b"),
                make_row("accounts", "acc_2", email="a@x.org"),
                AppendEvent("wfl", "node.queued", {}, AT),
            ]
        ),
        store.write([make_job("c"), AppendEvent("wfl", "node.queued", {}, AT)]),
    ]
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [type(None), Conflict, type(None)]
    assert [row["id"] for row in await store.find_rows("jobs")] == ["job_a", "job_c"]
    assert [event["n"] for event in await store.list_events("wfl", after=0)] == [1, 2]


async def test_merges_changes_of_a_row_in_order(store: Store) -> None:
    """Given an insert and updates in one turn, then the row has the last values."""
    store.write([make_job("a"), UpdateRow("jobs", "job_a", {"status": "running"})])
    await store.write([UpdateRow("jobs", "job_a", {"status": "completed", "doc": "1"})])
    row = await store.get_row("jobs", "job_a")
    assert row is not None
    assert (row["status"], row["doc"]) == ("completed", "1")


@settings(max_examples=25)
@given(st.lists(st.tuples(st.sampled_from("xyz"), st.integers(1, 3), st.booleans()), max_size=20))
def test_event_numbers_have_no_gaps(calls: list[tuple[str, int, bool]]) -> None:
    """Given concurrent calls, of which some fail, then each resource counts from 1 without gaps."""

    async def main(folder: str) -> None:
        store = await Store.open(Path(folder))
        await store.write([make_row("accounts", "acc_1", email="a@x.org")])
        counts = Counter[str]()
        writes = []
        for resource, count, fails in calls:
            event = AppendEvent(resource, "node.queued", {}, AT, f"job_{resource}")
            changes: list[Change] = [event] * count
            if fails:
                changes.append(make_row("accounts", "acc_2", email="a@x.org"))
            else:
                counts[resource] += count
            writes.append(store.write(changes))
        await asyncio.gather(*writes, return_exceptions=True)
        for resource in "xyz":
            for key in (resource, f"job_{resource}"):
                numbers = [event["n"] for event in await store.list_events(key, after=0)]
                assert numbers == [*range(1, counts[resource] + 1)]
        await store.close()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(folder))


async def test_only_the_holder_of_a_lease_can_write(
    clock: LeaseClock, store: Store, other_store: Store
) -> None:
    """Given a lease that expired and was claimed, then its former holder is fenced off."""
    (old_lease,) = await acquire(store, "run_r")
    assert await other_store.leases.claim(10) == []
    clock.now += LEASE_S * 1.25
    (new_lease,) = await claim_ended(other_store)
    assert new_lease.fence == old_lease.fence + 1
    with pytest.raises(LeaseLost):
        await store.write([make_job("a", "run_r")], lease=old_lease)
    await other_store.write([make_job("b", "run_r")], lease=new_lease)
    assert [row["id"] for row in await store.find_rows("jobs")] == ["job_b"]


async def test_keeps_a_renewed_lease(clock: LeaseClock, store: Store, other_store: Store) -> None:
    """Given a heartbeat, then no other store can claim the root."""
    await acquire(store, "run_r")
    for _ in range(3):
        clock.now += LEASE_S / 2
        store.leases.renew()
    assert await other_store.leases.claim(10) == []


async def test_one_of_two_claims_gets_a_root(store: Store, other_store: Store) -> None:
    """Given a released root, when two stores claim it at once, then one of them gets it."""
    (lease,) = await acquire(store, "run_r")
    await store.leases.release(lease, is_done=False)
    claims = await asyncio.gather(store.leases.claim(10), other_store.leases.claim(10))
    assert sorted(map(len, claims)) == [0, 1]


async def test_a_closed_root_can_be_reacquired_once(store: Store, other_store: Store) -> None:
    """Given a root that is done, then no store claims it, and one store can reacquire it."""
    (lease,) = await acquire(store, "run_r")
    await store.leases.release(lease, is_done=True)
    assert await other_store.leases.claim(10) == []
    new_lease = await other_store.leases.reacquire("run_r")
    assert new_lease is not None
    assert new_lease.fence > lease.fence
    assert await store.leases.reacquire("run_r") is None


async def test_a_cancel_request_reaches_the_holder(store: Store, other_store: Store) -> None:
    """Given a root of one store, when another store cancels it, then the holder knows."""
    await acquire(store, "run_r")
    await other_store.leases.request_cancel("run_r")
    assert await store.leases.list_cancel_requests() == {"run_r"}
    assert await other_store.leases.list_cancel_requests() == set()


CHILD = """
import asyncio, sys
from pathlib import Path
from toolkit.store import AppendEvent, InsertRow, Store
AT = "2026-11-20T08:00:00.000Z"
async def main():
    url = sys.argv[2] or None
    store = await Store.open(Path(sys.argv[1]), lease_s=60, database=url)
    inserted, lease = store.leases.build_root("run_r", "run", "acc")
    await store.write([inserted])
    for i in range(100_000):
        row = {"id": f"art_{i:06}", "account_id": "acc", "job_id": None, "sha256": "0",
               "deleted": False, "created_at": AT, "doc": "{}"}
        event = AppendEvent("run_r", "run.x", {"i": i}, AT)
        await store.write([InsertRow("artifacts", row), event], lease=lease)
        print(i, flush=True)
asyncio.run(main())
"""


async def test_acknowledged_writes_survive_kill_9(
    tmp_path: Path, find_url: Callable[[Path], str | None]
) -> None:
    """Given a process that is killed while it writes, then its acknowledged writes are complete.

    Its lease is free at once, because the system reports that the process has died.
    """
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(tmp_path), find_url(tmp_path) or ""],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    acknowledged = -1
    for line in child.stdout:
        acknowledged = int(line)
        if acknowledged >= 200:
            break
    os.kill(child.pid, signal.SIGKILL)
    acknowledged = max([acknowledged, *map(int, child.stdout.read().split()[:-1])])
    child.stdout.close()
    child.wait()
    store = await Store.open(tmp_path)
    rows = await store.find_rows("artifacts")
    events = await store.list_events("run_r", after=0, limit=1_000_000)
    assert len(rows) >= acknowledged + 1
    assert [event["data"]["i"] for event in events] == list(range(len(rows)))
    (lease,) = await store.leases.claim(10)
    assert lease.fence == 2
    await store.close()


@pytest.mark.parametrize("is_same_store", [True, False])
async def test_wakes_a_waiter(store: Store, other_store: Store, is_same_store: bool) -> None:
    """Given a waiter for an event, when it is written by either store, then the waiter wakes."""
    writer = store if is_same_store else other_store
    watch = Watch()
    waiting = asyncio.create_task(store.wait_for_event("run_r", after=0, timeout_s=PATIENCE_S))
    await yield_turns()
    await writer.write([AppendEvent("run_r", "run.queued", {}, AT)])
    await waiting
    assert watch.measure_elapsed_s() < 2


async def test_refuses_writes_while_the_database_is_locked(
    store: Store, write_lock: WriteLock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a locked database, then writes fail with 503, reads work, and later writes work."""
    monkeypatch.setattr("toolkit.store.writing.writer.REQUEST_WAIT_S", 0.1)
    write_lock.take()
    with pytest.raises(ServiceError) as refused:
        await store.write([make_job("a")])
    assert refused.value.code is ErrorCode.UNAVAILABLE
    assert refused.value.retry_after is not None
    assert await store.find_rows("jobs") == []
    write_lock.release()
    await store.write([make_job("a")])
    assert len(await store.find_rows("jobs")) == 1


async def test_closing_gives_up_writes_to_a_locked_database(
    store: Store, write_lock: WriteLock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a write that waits for a locked database, when the store closes, then it is refused.

    Otherwise closing would wait until the database is available again.
    """
    monkeypatch.setattr("toolkit.store.writing.writer.LAST_WAIT_S", 0.1)
    (lease,) = await acquire(store, "run_r")
    write_lock.take()
    writing = asyncio.ensure_future(store.write([make_job("a")], lease=lease))
    await yield_turns(5)
    await store.close()
    with pytest.raises(ServiceError, match=r"^UNAVAILABLE:"):
        await writing


async def test_refuses_writes_under_a_lease_after_a_failed_write(
    store: Store, write_lock: WriteLock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a failed write, then later writes of its lease fail until the root is claimed again."""
    monkeypatch.setattr("toolkit.store.writing.writer.WORK_WAIT_S", 0.1)
    lease, second_lease = await acquire(store, "run_r", "run_s")
    write_lock.take()
    with pytest.raises(ServiceError):
        await store.write([make_job("a")], lease=lease)
    write_lock.release()
    with pytest.raises(ServiceError):
        await store.write([make_job("b")], lease=lease)
    await store.write([make_job("c", "run_s")], lease=second_lease)
    await store.leases.release(lease, is_done=False)
    (new_lease,) = await store.leases.claim(10)
    await store.write([make_job("d")], lease=new_lease)
    assert [row["node_id"] for row in await store.find_rows("jobs")] == ["c", "d"]


@pytest.mark.sqlite("a PRAGMA")
async def test_full_durability_syncs_each_commit(tmp_path: Path) -> None:
    """Given durability=full, then SQLite syncs each commit."""
    store = await Store.open(tmp_path, durability="full")
    assert (
        get_sqlite(store).write_connection.exec_driver_sql("PRAGMA synchronous").scalar_one() == 2
    )
    await asyncio.gather(*(store.write([make_job(str(i))]) for i in range(50)))
    assert len(await store.find_rows("jobs")) == 50
    await store.close()


async def test_event_numbers_continue_beyond_the_cache(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given more resources than the cache has entries, then event numbers continue."""
    monkeypatch.setattr("toolkit.store.writing.write_connection.NUMBER_CACHE_SIZE", 10)
    for _ in range(3):
        for i in range(30):
            emit = AppendEvent(f"wfl_{i}", "node.queued", {}, AT, f"job_{i}")
            await store.write([emit, emit])
    for key in (f"{prefix}_{i}" for i in range(30) for prefix in ("wfl", "job")):
        events = await store.list_events(key, after=0)
        assert [event["n"] for event in events] == [1, 2, 3, 4, 5, 6]
    connection = store.writer._connection
    assert isinstance(connection, SqliteWriteConnection | PostgresWriteConnection)
    assert len(connection.numbers) <= 10


@pytest.mark.sqlite("the WAL of its file")
async def test_truncates_a_huge_write_ahead_log(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given commits without a pause, then the write-ahead log is truncated once it is huge."""
    monkeypatch.setattr("toolkit.store.sqlite.database.LARGE_WAL_BYTES", 64 * 1024)
    monkeypatch.setattr("toolkit.store.sqlite.database.HUGE_WAL_BYTES", 256 * 1024)
    log, max_size = tmp_path / "state.db-wal", 0
    async with asyncio.timeout(PATIENCE_S):
        while log.stat().st_size >= max_size:  # SQLite never truncates the file by itself
            max_size = log.stat().st_size
            await store.write([AppendEvent("run_r", "run.noted", {"text": "x" * 4_000}, AT)])
    assert max_size >= 256 * 1024


def test_checkpoints_a_long_write_ahead_log_as_it_grows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a reader that prevents truncation, then the log has one checkpoint per length."""
    monkeypatch.setattr("toolkit.store.sqlite.database.COMMITS_PER_CHECK", 1)
    monkeypatch.setattr("toolkit.store.sqlite.database.LARGE_WAL_BYTES", 64 * 1024)
    with closing(sqlite3.connect(tmp_path / "some.db", isolation_level=None)) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("PRAGMA wal_autocheckpoint=0")
        database.execute("CREATE TABLE row (doc TEXT)")
        reader = sqlite3.connect(tmp_path / "some.db", isolation_level=None)
        reader.execute("BEGIN").execute("SELECT count(*) FROM row").fetchone()
        checkpointer = WalCheckpointer(tmp_path / "some.db")
        statements: list[str] = []
        connect = sqlite3.connect

        def connect_watched(*args: Any, **options: Any) -> sqlite3.Connection:
            connection = connect(*args, **options)
            connection.set_trace_callback(statements.append)
            return connection

        monkeypatch.setattr(sqlite3, "connect", connect_watched)

        def count_checkpoints() -> int:
            return sum("PASSIVE" in statement for statement in statements)

        def write_rows() -> bool:
            for _ in range(20):
                database.execute("INSERT INTO row VALUES (?)", ("x" * 4_000,))
                checkpointer.checkpoint_if_due()
            return count_checkpoints() >= 2

        wait_until(write_rows, "the log has two checkpoints")
        size = (tmp_path / "some.db-wal").stat().st_size
        reader.close()
        checkpointer.close()
    assert count_checkpoints() <= size // (64 * 1024)


async def test_renewing_leases_does_not_block_the_loop(store: Store, write_lock: WriteLock) -> None:
    """Given a long transaction, then a renewal waits for it, and the event loop goes on."""
    await acquire(store, "run_r")
    write_lock.take()
    renewing = asyncio.create_task(asyncio.to_thread(store.leases.renew))
    longest_s = 0.0
    for _ in range(30):
        watch = Watch()
        await asyncio.sleep(0.01)
        longest_s = max(longest_s, watch.measure_elapsed_s())
    assert longest_s < 0.15
    assert not renewing.done()
    write_lock.release()
    await renewing
