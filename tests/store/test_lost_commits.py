"""Commits whose connection is cut, or whose server is killed: all is made, and made once."""

import asyncio
import random
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests._postgres import PostgresCluster, start_cluster
from tests.support.cutting_proxy import CommitFate, CuttingProxy
from tests.support.timing import PATIENCE_S
from toolkit.contract.errors import ServiceError
from toolkit.store import AddSpending, AppendEvent, Change, Store
from toolkit.store.postgres import connections

AT = "2026-11-20T08:00:00.000Z"


@pytest.fixture
async def proxy(postgres: PostgresCluster) -> AsyncIterator[CuttingProxy]:
    """A proxy before the server."""
    made = CuttingProxy(postgres.port)
    yield made
    await made.close()


@pytest.fixture
async def store(
    proxy: CuttingProxy, postgres: PostgresCluster, postgres_url: str, tmp_path: Path
) -> AsyncIterator[Store]:
    """A store that reaches the server through the proxy."""
    port = await proxy.start()
    url = postgres_url.replace(f":{postgres.port}/", f":{port}/")
    opened = await Store.open(tmp_path / "one", database=url)
    yield opened
    await opened.close()


def pay(resource: str) -> list[Change]:
    """Changes that show it if they are made twice, or not at all."""
    return [
        AppendEvent(resource, "node.completed", {}, AT, f"job_{resource}"),
        AddSpending("day", "key", 1, None),
    ]


async def count(store: Store, resource: str) -> tuple[list[int], int]:
    """Return the numbers of a resource's events, and what was spent in all."""
    events = await store.list_events(resource, after=0, limit=1_000_000)
    spent, _ = await store.get_spending("day")
    return [event["n"] for event in events], spent


@pytest.mark.parametrize("fate", ["lost", "unanswered", "stuck"])
async def test_a_commit_that_was_cut_is_made_once(
    monkeypatch: pytest.MonkeyPatch, store: Store, proxy: CuttingProxy, fate: CommitFate
) -> None:
    """Given a connection that is cut in a commit, before or after it is made, then it is made.

    Also where nobody is told that it is cut, and the answer never comes.
    """
    monkeypatch.setattr(connections, "ANSWER_TIMEOUT_S", 0.5)
    fates: list[CommitFate] = [fate]
    proxy.decide = lambda: fates.pop() if fates else "passes"
    async with asyncio.timeout(PATIENCE_S):
        await store.write(pay("run_a"))
    assert not fates
    assert await count(store, "run_a") == ([1], 1)


async def test_many_commits_are_cut(store: Store, proxy: CuttingProxy) -> None:
    """Given commits of which half are cut, either way, then each is made once and in order."""
    chance = random.Random(18)
    seen: list[CommitFate] = []

    def decide() -> CommitFate:
        fates: list[CommitFate] = ["passes", "passes", "lost", "unanswered"]
        seen.append(chance.choice(fates))
        return seen[-1]

    proxy.decide = decide
    async with asyncio.timeout(PATIENCE_S):
        for n in range(120):
            # Several at once are one commit, and one by itself is another.
            await asyncio.gather(*(store.write(pay("run_a")) for _ in range(1 + n % 3)))
    wanted = sum(1 + n % 3 for n in range(120))
    assert {"lost", "unanswered"} <= set(seen)
    assert await count(store, "run_a") == ([*range(1, wanted + 1)], wanted)


@pytest.mark.parametrize("fate", ["lost", "unanswered"])
async def test_what_was_refused_and_is_there_is_found(
    store: Store, proxy: CuttingProxy, postgres_url: str, tmp_path: Path, fate: CommitFate
) -> None:
    """Given a request that is refused as nobody knows yet, then what it made is not forgotten.

    If it was made after all, somebody works on it: not the one who refused it, who knows nothing.
    """
    inserted, lease = store.leases.build_root("run_a", "run", "acc")

    def decide() -> CommitFate:
        proxy.is_down = True
        return fate

    proxy.decide = decide
    async with asyncio.timeout(PATIENCE_S):
        with pytest.raises(ServiceError, match="cannot be reached"):
            await store.write([inserted, *pay("run_a")], lease=lease, max_wait_s=0.1)
        proxy.decide, proxy.is_down = lambda: "passes", False
        await store.write(pay("run_b"))
        await store.write(pay("run_b"))
        other = await Store.open(tmp_path / "other", database=postgres_url)
        claimed = await other.leases.claim(10)
    is_made = fate == "unanswered"
    assert [each.root_id for each in claimed] == (["run_a"] if is_made else [])
    assert await count(other, "run_a") == ([1] if is_made else [], 2 + is_made)
    await other.close()


async def test_a_write_that_waits_for_nothing_names_the_lost_connection(
    store: Store, proxy: CuttingProxy
) -> None:
    """Given a cut commit whose time is over by then, then the caller reads the right reason."""
    inserted, lease = store.leases.build_root("run_a", "run", "acc")
    fates: list[CommitFate] = ["lost"]
    proxy.decide = lambda: fates.pop() if fates else "passes"
    with pytest.raises(ServiceError, match="cannot be reached"):
        await store.write([inserted], lease=lease, max_wait_s=0.0)


async def test_a_claim_that_was_cut_is_no_root_of_nobody(
    store: Store, proxy: CuttingProxy, postgres_url: str, tmp_path: Path
) -> None:
    """Given a lease that was taken though the answer was lost, then it is released and taken."""
    other = await Store.open(tmp_path / "other", database=postgres_url)
    inserted, lease = other.leases.build_root("run_a", "run", "acc")
    await other.write([inserted])
    await other.leases.release(lease, is_done=False)
    fates: list[CommitFate] = ["unanswered"]
    proxy.decide = lambda: fates.pop() if fates else "passes"
    async with asyncio.timeout(PATIENCE_S):
        with pytest.raises(ServiceError):
            await store.leases.claim(10)
        row = await other.get_row("roots", "run_a")
        assert row is not None
        assert row["owner"] == store.owner
        (taken,) = await store.leases.claim(10)
    assert taken.fence == 3
    await other.close()


async def test_sessions_that_are_ended_lose_nothing(
    store: Store, postgres: PostgresCluster, postgres_url: str
) -> None:
    """Given a server that ends sessions while they write, then all is written once."""
    database, chance = postgres_url.rpartition("/")[2], random.Random(18)
    end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s AND pid <> %s"
    with postgres.connect() as connection:
        ours = (database, connection.info.backend_pid)
        async with asyncio.timeout(PATIENCE_S):
            for _ in range(60):
                written = store.write(pay("run_a"))
                await asyncio.sleep(chance.random() * 0.004)
                await asyncio.to_thread(connection.execute, end, ours)
                await written
    assert await count(store, "run_a") == ([*range(1, 61)], 60)


@pytest.mark.parametrize("seed", range(2))
async def test_a_server_that_is_killed_loses_nothing(tmp_path: Path, seed: int) -> None:
    """Given stores that write while the server crashes again and again, then all is there once.

    Its numbers of transactions that left no trace on the disk are given to others after a crash.
    """
    cluster = start_cluster(restart_after_crash="on")
    stores: list[Store] = []
    try:
        url, chance = cluster.create_database(), random.Random(seed)
        stores = [await Store.open(tmp_path / str(n), database=url) for n in range(3)]
        is_over = asyncio.Event()
        counts = [0, 0, 0]

        async def work(n: int) -> None:
            while not is_over.is_set():
                await asyncio.gather(*(stores[n].write(pay(f"run_{n}")) for _ in range(3)))
                counts[n] += 3

        async with asyncio.timeout(PATIENCE_S):
            working = [asyncio.create_task(work(n)) for n in range(3)]
            for _ in range(5):
                await asyncio.sleep(0.05 + chance.random() * 0.3)
                await asyncio.to_thread(cluster.stop, signal.SIGQUIT)
                await asyncio.to_thread(cluster.start)
            is_over.set()
            await asyncio.gather(*working)
        for n in range(3):
            numbers, spent = await count(stores[n], f"run_{n}")
            assert numbers == [*range(1, counts[n] + 1)]
            assert spent == sum(counts)
    finally:
        for each in stores:
            await each.close()
        cluster.remove()
