"""Waiters for events of other engines, while PostgreSQL comes and goes."""

import asyncio
import logging
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import psycopg
import pytest

from tests._postgres import PostgresCluster
from tests.store.conftest import Execute
from tests.store.rows import make_row
from tests.support.timing import PATIENCE_S, Watch, wait_until_async, yield_turns
from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.store import AppendEvent, Store
from toolkit.store.postgres.database import PostgresDatabase

AT = "2026-11-20T08:00:00.000Z"
SLOW_POLL_S = 600.0
LISTENERS_SQL = "SELECT pid FROM pg_stat_activity WHERE starts_with(query, 'LISTEN')"


@pytest.fixture
async def stores(tmp_path: Path, postgres_url: str) -> AsyncIterator[list[Store]]:
    """Two stores, as of two machines."""
    opened = [await Store.open(tmp_path / str(n), database=postgres_url) for n in range(2)]
    yield opened
    for store in opened:
        await store.close()


@pytest.fixture
def listeners(postgres_url: str) -> Callable[[], list[int]]:
    """Finds the sessions of this database that listen."""

    def find() -> list[int]:
        name = postgres_url.rpartition("/")[2]
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            rows = connection.execute(f"{LISTENERS_SQL} AND datname = %s".encode(), (name,))
            return [int(pid) for (pid,) in rows]

    return find


async def wait_for_listeners(listeners: Callable[[], list[int]], number: int) -> None:
    """Wait until a number of sessions listen."""
    async with asyncio.timeout(PATIENCE_S):
        await wait_until_async(lambda: len(listeners()) == number)


@pytest.fixture
def without_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stops new stores from polling."""
    monkeypatch.setattr(PostgresDatabase, "poll_interval_s", SLOW_POLL_S)


@pytest.mark.usefixtures("without_polls")
async def test_a_write_of_another_store_wakes_a_waiter(
    stores: list[Store], listeners: Callable[[], list[int]]
) -> None:
    """Given a waiter of one store, when another store writes, then it wakes without polling."""
    first, second = stores
    await wait_for_listeners(listeners, 2)
    async with asyncio.timeout(PATIENCE_S):
        for n in range(5):
            waiting = asyncio.create_task(
                first.wait_for_event("run_a", after=n, timeout_s=SLOW_POLL_S)
            )
            await yield_turns(3)
            await second.write([AppendEvent("run_a", "run.queued", {}, AT)])
            await waiting
            assert await first.get_last_event_number("run_a") == n + 1


async def test_finds_events_without_notices(
    tmp_path: Path, url: str | None, execute: Execute
) -> None:
    """Given events without notices, then their waiters find them, and other waiters wait."""
    store = await Store.open(tmp_path, database=url)

    def insert(resource: str, n: int, kind: str, job: str = "NULL, NULL") -> None:
        """Add an event as an engine that dies before its notice."""
        values = f"'{resource}', {n}, '{kind}', 'now', '{{}}', {job}"
        execute(
            f"INSERT INTO events (resource_id, n, type, at, data, job_id, job_n) VALUES ({values})"
        )

    insert("wfl_a", 1, "node.queued", "'job_a', 1")

    async def wait(key: str, after: int, *types: str) -> None:
        await store.wait_for_event(
            key, after=after, timeout_s=SLOW_POLL_S, types=frozenset(types) or None
        )

    woken = [("wfl_a", 1), ("job_a", 1), ("wfl_a", 0, "node.completed"), ("wfl_b", 0)]
    asleep = [("wfl_a", 1, "workflow.completed"), ("wfl_a", 2), ("job_b", 0), ("wfl_c", 0)]
    tasks = [asyncio.create_task(wait(*call)) for call in (*woken, *asleep)]  # type: ignore[arg-type]
    await asyncio.wait(tasks, timeout=0.01)
    assert not any(task.done() for task in tasks)
    insert("wfl_a", 2, "node.completed", "'job_a', 2")
    insert("wfl_b", 1, "node.queued")
    async with asyncio.timeout(PATIENCE_S):
        await asyncio.gather(*tasks[: len(woken)])
    assert not any(task.done() for task in tasks[len(woken) :])
    insert("wfl_c", 1, "node.queued")
    async with asyncio.timeout(PATIENCE_S):
        await tasks[-1]
    for task in tasks:
        task.cancel()
    await store.close()


async def test_wakes_waiters_while_listeners_are_cut(
    stores: list[Store], listeners: Callable[[], list[int]], postgres: PostgresCluster
) -> None:
    """Given listening connections that are cut, then waiters still wake."""
    first, second = stores
    await wait_for_listeners(listeners, 2)
    async with asyncio.timeout(PATIENCE_S):
        for n in range(3):
            waiting = asyncio.create_task(
                first.wait_for_event("run_a", after=n, timeout_s=SLOW_POLL_S)
            )
            await yield_turns(3)
            with postgres.connect() as connection:
                for pid in listeners():
                    connection.execute("SELECT pg_terminate_backend(%s)", (pid,))
            await second.write([AppendEvent("run_a", "run.queued", {}, AT)])
            await waiting
    await wait_for_listeners(listeners, 2)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT])
async def test_readers_and_waiters_survive_restarts(
    own_postgres: PostgresCluster,
    how: signal.Signals,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Given readers and waiters, when the server stops or crashes, then they go on by themselves.

    During the outage, reads fail with one line, and waiters wait.
    """
    caplog.set_level(logging.INFO)
    url = own_postgres.build_url()
    first, second = [await Store.open(tmp_path / str(n), database=url) for n in range(2)]
    await first.write([make_row("plans", "a")])
    errors: list[ServiceError] = []
    answers: list[int] = []

    async def read_on() -> None:
        while True:
            try:
                assert [row["id"] for row in await first.find_rows("plans")] == ["a"]
                answers.append(1)
            except ServiceError as error:
                errors.append(error)
                await yield_turns()

    waiting = [
        asyncio.create_task(first.wait_for_event(f"run_{n}", after=0, timeout_s=SLOW_POLL_S))
        for n in range(20)
    ]
    reading = [asyncio.create_task(read_on()) for _ in range(3)]
    async with asyncio.timeout(PATIENCE_S):
        for _ in range(2):
            await asyncio.to_thread(own_postgres.stop, how)
            errors.clear()
            await wait_until_async(lambda: len(errors) > 20)
            await asyncio.to_thread(own_postgres.start)
            answers.clear()
            await wait_until_async(lambda: sum(answers) > 20)
        assert not any(task.done() for task in (*waiting, *reading))
        events = [AppendEvent(f"run_{n}", "run.queued", {}, AT) for n in range(20)]
        await second.write(events)
        watch = Watch()
        await asyncio.gather(*waiting)
    assert watch.measure_elapsed_s() < PATIENCE_S / 2
    for task in reading:
        task.cancel()
    assert {error.code for error in errors} == {ErrorCode.UNAVAILABLE}
    assert not any("\n" in str(error) or own_postgres.password in str(error) for error in errors)
    assert all(error.retry_after for error in errors)
    ours = [record for record in caplog.records if record.name.startswith("toolkit")]
    assert not any(record.exc_info or "\n" in record.getMessage() for record in ours)
    await first.close()
    await second.close()


async def test_waits_time_out_while_the_server_hangs(
    own_postgres: PostgresCluster, tmp_path: Path
) -> None:
    """Given a server that does not answer, then a waiter waits for its timeout."""
    store = await Store.open(tmp_path, database=own_postgres.build_url())
    waiting = asyncio.create_task(store.wait_for_event("run_a", after=0, timeout_s=0.3))
    await yield_turns(3)
    with own_postgres.hang():
        async with asyncio.timeout(PATIENCE_S):
            await store.wait_for_event("run_b", after=0, timeout_s=0.1)
            await waiting
    assert await store.get_last_event_number("run_a") == 0
    await store.close()
