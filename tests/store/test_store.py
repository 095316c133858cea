"""The store: all or nothing, in order, numbered without gaps, and fenced."""

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, create_engine

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
from toolkit.store.sqlite.checkpoints import WalCheckpointer
from toolkit.store.sqlite.connections import create_sqlite_engine
from toolkit.store.sqlite.writes import SqliteWriteConnection
from toolkit.store.tables import metadata

LEASE_S = 0.2


@pytest.fixture
def clock(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, find_url: Callable[[Path], str | None]
) -> Iterator[LeaseClock]:
    """The clock that leases go by; asked for before the store."""
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
async def other(store: Store, tmp_path: Path) -> AsyncIterator[Store]:
    """The same directory, opened a second time."""
    opened = await Store.open(tmp_path, lease_s=LEASE_S)
    yield opened
    await opened.close()


@pytest.fixture
def write_lock(
    store: Store, tmp_path: Path, find_url: Callable[[Path], str | None]
) -> Iterator[WriteLock]:
    """The lock of the store's database, which is free."""
    lock = WriteLock(tmp_path, find_url(tmp_path))
    yield lock
    lock.close()


def schema(connection: Connection) -> dict[str, object]:
    """All that a database holds its rows to, whatever order it was made in."""

    def ask(sql: str, *parameters: object) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in connection.exec_driver_sql(sql, parameters)]

    tables = {name: rest for _, name, *rest in ask("PRAGMA table_list") if name[:7] != "sqlite_"}
    indexes = ask("SELECT name, tbl_name, sql FROM sqlite_master WHERE type = 'index'")
    return {
        "tables": tables,
        "columns": {
            table: {tuple(column) for _, *column in ask(f"PRAGMA table_xinfo({table})")}
            for table in tables
        },
        "indexes": {(name, " ".join(sql.split())) for name, _, sql in indexes if sql},
        "triggers": set(ask("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")),
        "unique": {
            (table, *(column for _, _, column in ask(f"PRAGMA index_info({name})")))
            for name, table, sql in indexes
            if not sql
        },
    }


def is_declared(name: str | None, kind: str, _parents: object) -> bool:
    """Tell whether a table is in the metadata: those of the index of texts are virtual."""
    return kind != "table" or not str(name).startswith("input_text")


@pytest.mark.filterwarnings("ignore:Skipped unsupported reflection of expression-based index")
def test_an_empty_database_gets_the_tables(tmp_path: Path) -> None:
    """Given an empty database, when made, then it has exactly the tables the code speaks of."""
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


async def test_all_that_was_handed_over_is_written_before_it_closes(
    store: Store, tmp_path: Path
) -> None:
    """Given more than one transaction takes, when closed at once, then all of it is there."""
    (lease,) = await acquire(store, "run_r")
    for n in range(MANY):
        store.write([make_job(str(n))], lease=lease, eager=bool(n % 2))
    store.write([UpdateRow("jobs", "job_0", {"status": "running"})], lease=lease, eager=False)
    await store.close()
    again = await Store.open(tmp_path)
    rows = await again.find_rows("jobs", root_id="r")
    await again.close()
    assert len(rows) == MANY
    assert [row["id"] for row in rows if row["status"] == "running"] == ["job_0"]


async def test_a_closed_store_changes_nothing_more(store: Store) -> None:
    """Given a closed store, when something small is changed still, then it is refused."""
    await store.close()
    with pytest.raises(StoreUnavailableError, match="closed"):
        await store.limits.change(["a row"], lambda documents, _: documents.clear())


async def test_a_new_request_waits_for_one_group_only(store: Store) -> None:
    """Given all that a large workflow writes, then another's request is not behind all of it."""
    (lease,) = await acquire(store, "run_r")
    many = 2 * MANY
    large = [store.write([make_job(str(n))], lease=lease) for n in range(many)]
    inserted, _ = store.leases.build_root("run_other", "run", "other")
    event = AppendEvent("run_other", "run.queued", {}, AT)
    await store.write([inserted, event])
    left = sum(not each.done() for each in large)
    assert left > many // 2
    assert (await store.get_row("roots", "run_other")) is not None
    await asyncio.gather(*large)
    states = [UpdateRow("jobs", f"job_{n}", {"status": f"{n % 7}"}) for n in range(many)]
    await store.write(states, lease=lease)
    rows = await store.find_rows("jobs", root_id="r")
    assert {row["id"]: row["status"] for row in rows} == {
        f"job_{n}": f"{n % 7}" for n in range(many)
    }


def test_many_at_once_make_one_directory(tmp_path: Path) -> None:
    """Given an empty database that several open at once, then all have the same tables."""
    start = threading.Barrier(4)

    def opened(path: Path) -> dict[str, object]:
        engine = create_sqlite_engine(path, "normal")
        start.wait()
        with engine.connect() as connection:
            migrate_schema(connection)
            made = schema(connection)
        engine.dispose()
        return made

    with ThreadPoolExecutor(4) as threads:
        for turn in range(25):  # they get in each other's way in about one of twenty
            path = tmp_path / f"{turn}.db"
            under_way = [threads.submit(opened, path) for _ in range(4)]
            first, *others = [each.result() for each in under_way]
            assert first["tables"]
            assert others == [first] * 3


async def test_a_call_is_written_whole_or_not_at_all(store: Store) -> None:
    """Given calls at once of which one conflicts, then that one leaves nothing and the rest all."""
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


async def test_changes_of_a_row_merge_in_order(store: Store) -> None:
    """Given an insert and updates in one turn, then the last values are there."""
    store.write([make_job("a"), UpdateRow("jobs", "job_a", {"status": "running"})])
    await store.write([UpdateRow("jobs", "job_a", {"status": "completed", "doc": "1"})])
    row = await store.get_row("jobs", "job_a")
    assert row is not None
    assert (row["status"], row["doc"]) == ("completed", "1")


@settings(max_examples=25)
@given(st.lists(st.tuples(st.sampled_from("xyz"), st.integers(1, 3), st.booleans()), max_size=20))
def test_event_numbers_have_no_gaps(calls: list[tuple[str, int, bool]]) -> None:
    """Given any calls at once, some of which fail, then each resource counts from 1 to its end."""

    async def main(folder: str) -> None:
        store = await Store.open(Path(folder))
        await store.write([make_row("accounts", "acc_1", email="a@x.org")])
        wanted: dict[str, int] = {}
        sent = []
        for resource, count, fails in calls:
            changes: list[Change] = [
                AppendEvent(resource, "node.queued", {}, AT, f"job_{resource}")
                for _ in range(count)
            ]
            if fails:
                changes.append(make_row("accounts", "acc_2", email="a@x.org"))
            else:
                wanted[resource] = wanted.get(resource, 0) + count
            sent.append(store.write(changes))
        await asyncio.gather(*sent, return_exceptions=True)
        for resource in "xyz":
            expected = list(range(1, wanted.get(resource, 0) + 1))
            assert [e["n"] for e in await store.list_events(resource, after=0)] == expected
            assert [e["n"] for e in await store.list_events(f"job_{resource}", after=0)] == expected
        await store.close()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(folder))


async def test_only_the_holder_of_a_lease_can_write(
    clock: LeaseClock, store: Store, other: Store
) -> None:
    """Given a lease that ran out and was taken, then whoever had it is fenced off."""
    (old,) = await acquire(store, "run_r")
    assert await other.leases.claim(10) == []
    clock.now += LEASE_S * 1.25
    (new,) = await claim_ended(other)
    assert new.fence == old.fence + 1
    with pytest.raises(LeaseLost):
        await store.write([make_job("a", "run_r")], lease=old)
    await other.write([make_job("b", "run_r")], lease=new)
    assert [row["id"] for row in await store.find_rows("jobs")] == ["job_b"]


async def test_a_renewed_lease_is_kept(clock: LeaseClock, store: Store, other: Store) -> None:
    """Given a heartbeat, then nobody else can claim the root."""
    await acquire(store, "run_r")
    for _ in range(3):
        clock.now += LEASE_S / 2
        store.leases.renew()
    assert await other.leases.claim(10) == []


async def test_two_claim_a_root_once(store: Store, other: Store) -> None:
    """Given a root that was given back, when two claim it at once, then one of them gets it."""
    (lease,) = await acquire(store, "run_r")
    await store.leases.release(lease, is_done=False)
    claims = await asyncio.gather(store.leases.claim(10), other.leases.claim(10))
    assert sorted(map(len, claims)) == [0, 1]


async def test_a_closed_root_is_left_alone_until_reopened(store: Store, other: Store) -> None:
    """Given a root that is done, then nobody claims it, and it can be taken up again once."""
    (lease,) = await acquire(store, "run_r")
    await store.leases.release(lease, is_done=True)
    assert await other.leases.claim(10) == []
    again = await other.leases.reacquire("run_r")
    assert again is not None
    assert again.fence > lease.fence
    assert await store.leases.reacquire("run_r") is None


async def test_a_cancel_reaches_the_holder(store: Store, other: Store) -> None:
    """Given a root held by one process, when another asks to cancel it, then the holder is told."""
    await acquire(store, "run_r")
    await other.leases.request_cancel("run_r")
    assert await store.leases.list_cancel_requests() == {"run_r"}
    assert await other.leases.list_cancel_requests() == set()


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


async def test_what_was_acknowledged_survives_kill_9(
    tmp_path: Path, find_url: Callable[[Path], str | None]
) -> None:
    """Given a process killed in mid-write, then its acknowledged writes are there, whole.

    Its lease, which would hold for a minute, is free at once: the system says that it has died.
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


@pytest.mark.parametrize("within", ["one store", "two stores"])
async def test_a_waiter_is_woken(store: Store, other: Store, within: str) -> None:
    """Given somebody who waits for an event, when it is written, then they are told soon."""
    writer = store if within == "one store" else other
    watch = Watch()
    waiting = asyncio.create_task(store.wait_for_event("run_r", after=0, timeout_s=PATIENCE_S))
    await yield_turns()
    await writer.write([AppendEvent("run_r", "run.queued", {}, AT)])
    await waiting
    assert watch.measure_elapsed_s() < 2


async def test_a_locked_database_is_unavailable_and_then_works_again(
    store: Store, write_lock: WriteLock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a database that another process keeps locked, then writes fail clearly, reads go on."""
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


async def test_a_store_that_closes_waits_for_no_lock_for_long(
    store: Store, write_lock: WriteLock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a result that waits for a locked database, when the store closes, then it is refused.

    Else it would wait for as long as a database takes to be there again.
    """
    monkeypatch.setattr("toolkit.store.writing.writer.LAST_WAIT_S", 0.1)
    (held,) = await acquire(store, "run_r")
    write_lock.take()
    writing = asyncio.ensure_future(store.write([make_job("a")], lease=held))
    await yield_turns(5)
    await store.close()
    with pytest.raises(ServiceError, match=r"^UNAVAILABLE:"):
        await writing


async def test_what_is_written_under_a_lease_has_no_gaps(
    store: Store, write_lock: WriteLock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a write that failed, then nothing more is written until the lease is taken anew."""
    monkeypatch.setattr("toolkit.store.writing.writer.WORK_WAIT_S", 0.1)
    held, elsewhere = await acquire(store, "run_r", "run_s")
    write_lock.take()
    with pytest.raises(ServiceError):
        await store.write([make_job("a")], lease=held)
    write_lock.release()
    with pytest.raises(ServiceError):
        await store.write([make_job("b")], lease=held)
    await store.write([make_job("c", "run_s")], lease=elsewhere)
    await store.leases.release(held, is_done=False)
    (again,) = await store.leases.claim(10)
    await store.write([make_job("d")], lease=again)
    assert [row["node_id"] for row in await store.find_rows("jobs")] == ["c", "d"]


@pytest.mark.sqlite("a PRAGMA")
async def test_full_durability_commits_in_the_writer_thread(tmp_path: Path) -> None:
    """Given durability=full, then SQLite syncs each commit, and nothing else changes."""
    store = await Store.open(tmp_path, durability="full")
    assert (
        get_sqlite(store).write_connection.exec_driver_sql("PRAGMA synchronous").scalar_one() == 2
    )
    await asyncio.gather(*(store.write([make_job(str(i))]) for i in range(50)))
    assert len(await store.find_rows("jobs")) == 50
    await store.close()


async def test_numbers_go_on_when_they_are_not_remembered_any_more(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given more resources than numbers are kept of, then memory is bounded and events go on."""
    monkeypatch.setattr("toolkit.store.writing.event_numbers.NUMBER_CACHE_SIZE", 10)
    for _ in range(3):
        for i in range(30):
            emit = AppendEvent(f"wfl_{i}", "node.queued", {}, AT, f"job_{i}")
            await store.write([emit, emit])
    for i in range(30):
        events = await store.list_events(f"wfl_{i}", after=0)
        assert [event["n"] for event in events] == [1, 2, 3, 4, 5, 6]
        assert [event["n"] for event in await store.list_events(f"job_{i}", after=0)] == list(
            range(1, 7)
        )
    connection = store.writer._connection
    assert isinstance(connection, SqliteWriteConnection | PostgresWriteConnection)
    assert len(connection.numbers) <= 10


@pytest.mark.sqlite("the WAL of its file")
async def test_a_log_that_is_written_to_all_the_time_is_begun_anew(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given commits without a pause, then the log is cut off once it is huge."""
    monkeypatch.setattr("toolkit.store.sqlite.checkpoints.LARGE_WAL_BYTES", 64 * 1024)
    monkeypatch.setattr("toolkit.store.sqlite.checkpoints.HUGE_WAL_BYTES", 256 * 1024)
    log, most = tmp_path / "state.db-wal", 0
    async with asyncio.timeout(PATIENCE_S):
        while log.stat().st_size >= most:  # by itself the file never becomes shorter
            most = max(most, log.stat().st_size)
            await store.write([AppendEvent("run_r", "run.noted", {"text": "x" * 4_000}, AT)])
    assert most >= 256 * 1024


def test_a_log_that_stays_long_is_moved_as_it_grows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a log that a reader keeps from being begun anew, then it is moved once per length."""
    monkeypatch.setattr("toolkit.store.sqlite.checkpoints.COMMITS_PER_CHECK", 1)
    monkeypatch.setattr("toolkit.store.sqlite.checkpoints.LARGE_WAL_BYTES", 64 * 1024)
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

        def list_moves() -> list[str]:
            return [each for each in statements if "PASSIVE" in each]

        def write_on() -> bool:
            for _ in range(20):
                database.execute("INSERT INTO row VALUES (?)", ("x" * 4_000,))
                checkpointer.checkpoint_if_due()
            return len(list_moves()) >= 2

        wait_until(write_on, "the log is moved twice")
        grown = (tmp_path / "some.db-wal").stat().st_size
        reader.close()
        checkpointer.close()
    assert len(list_moves()) <= grown // (64 * 1024)


async def test_renewing_leases_holds_nothing_up(store: Store, write_lock: WriteLock) -> None:
    """Given a long transaction, when leases are renewed, then it waits and the loop goes on."""
    await acquire(store, "run_r")
    write_lock.take()
    renewing = asyncio.create_task(asyncio.to_thread(store.leases.renew))
    longest = 0.0
    for _ in range(30):
        watch = Watch()
        await asyncio.sleep(0.01)
        longest = max(longest, watch.measure_elapsed_s())
    assert longest < 0.15
    assert not renewing.done()
    write_lock.release()
    await renewing
