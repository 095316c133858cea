"""Commits whose connection is cut, or whose server is killed, are made exactly once."""

import asyncio
import random
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests._postgres import PostgresCluster, start_cluster
from tests.support.network_link import CommitFate, CommitLink
from tests.support.timing import PATIENCE_S
from toolkit.contract.errors import ServiceError
from toolkit.store import AddSpending, AppendEvent, Change, Store
from toolkit.store.postgres import connections

AT = "2026-11-20T08:00:00.000Z"


@pytest.fixture
def link(postgres: PostgresCluster) -> Iterator[CommitLink]:
    """A link to the server."""
    with CommitLink(postgres.port) as commit_link:
        yield commit_link


@pytest.fixture
async def store(
    link: CommitLink, postgres: PostgresCluster, postgres_url: str, tmp_path: Path
) -> AsyncIterator[Store]:
    """A store that reaches the server through the link."""
    url = postgres_url.replace(f":{postgres.port}/", f":{link.port}/")
    opened = await Store.open(tmp_path / "one", database=url)
    yield opened
    await opened.close()


def pay(resource: str) -> list[Change]:
    """Return changes that show whether they were made once."""
    return [
        AppendEvent(resource, "node.completed", {}, AT, f"job_{resource}"),
        AddSpending("day", "key", 1, None),
    ]


async def count(store: Store, resource: str) -> tuple[list[int], int]:
    """Return the numbers of a resource's events, and the total spent."""
    events = await store.list_events(resource, after=0, limit=1_000_000)
    spent, _ = await store.get_spending("day")
    return [event["n"] for event in events], spent


def cut_next(link: CommitLink, fate: CommitFate) -> list[CommitFate]:
    """Cut the next commit; return a list that is empty once it is cut."""
    fates = [fate]
    link.decide = lambda: fates.pop() if fates else "passes"
    return fates


@pytest.mark.parametrize("fate", ["lost", "unanswered", "stuck"])
async def test_makes_a_cut_commit_once(
    monkeypatch: pytest.MonkeyPatch, store: Store, link: CommitLink, fate: CommitFate
) -> None:
    """Given a connection cut before or after a commit, or silently, then it is made once."""
    monkeypatch.setattr(connections, "ANSWER_TIMEOUT_S", 0.5)
    fates = cut_next(link, fate)
    async with asyncio.timeout(PATIENCE_S):
        await store.write(pay("run_a"))
    assert not fates
    assert await count(store, "run_a") == ([1], 1)


async def test_makes_many_cut_commits_once_and_in_order(store: Store, link: CommitLink) -> None:
    """Given commits of which half are cut, then each is made once and in order."""
    chance = random.Random(18)
    seen: list[CommitFate] = []

    def decide() -> CommitFate:
        fates: list[CommitFate] = ["passes", "passes", "lost", "unanswered"]
        seen.append(chance.choice(fates))
        return seen[-1]

    link.decide = decide
    async with asyncio.timeout(PATIENCE_S):
        for n in range(120):
            # Concurrent writes share a commit; a single write has its own.
            await asyncio.gather(*(store.write(pay("run_a")) for _ in range(1 + n % 3)))
    expected = sum(1 + n % 3 for n in range(120))
    assert {"lost", "unanswered"} <= set(seen)
    assert await count(store, "run_a") == ([*range(1, expected + 1)], expected)


@pytest.mark.parametrize("fate", ["lost", "unanswered"])
async def test_another_store_finds_a_refused_commit_that_was_made(
    store: Store, link: CommitLink, postgres_url: str, tmp_path: Path, fate: CommitFate
) -> None:
    """Given a refused request whose commit was made, then another store claims its root.

    The store that refused the request does not know that the commit was made.
    """
    inserted, lease = store.leases.build_root("run_a", "run", "acc")

    def decide() -> CommitFate:
        link.refuse()
        return fate

    link.decide = decide
    async with asyncio.timeout(PATIENCE_S):
        with pytest.raises(ServiceError, match="cannot be reached"):
            await store.write([inserted, *pay("run_a")], lease=lease, max_wait_s=0.1)
        link.decide = lambda: "passes"
        link.heal()
        await store.write(pay("run_b"))
        await store.write(pay("run_b"))
        other_store = await Store.open(tmp_path / "other", database=postgres_url)
        claimed = await other_store.leases.claim(10)
    is_made = fate == "unanswered"
    assert [claim.root_id for claim in claimed] == (["run_a"] if is_made else [])
    assert await count(other_store, "run_a") == ([1] if is_made else [], 2 + is_made)
    await other_store.close()


async def test_a_write_without_a_wait_reports_the_lost_connection(
    store: Store, link: CommitLink
) -> None:
    """Given a cut commit of a write that may not wait, then the error names the lost connection."""
    inserted, lease = store.leases.build_root("run_a", "run", "acc")
    cut_next(link, "lost")
    with pytest.raises(ServiceError, match="cannot be reached"):
        await store.write([inserted], lease=lease, max_wait_s=0.0)


async def test_releases_a_lease_whose_claim_was_cut(
    store: Store, link: CommitLink, postgres_url: str, tmp_path: Path
) -> None:
    """Given a claim whose answer was lost, then the store releases the lease and reclaims it."""
    other_store = await Store.open(tmp_path / "other", database=postgres_url)
    inserted, lease = other_store.leases.build_root("run_a", "run", "acc")
    await other_store.write([inserted])
    await other_store.leases.release(lease, is_done=False)
    cut_next(link, "unanswered")
    async with asyncio.timeout(PATIENCE_S):
        with pytest.raises(ServiceError):
            await store.leases.claim(10)
        row = await other_store.get_row("roots", "run_a")
        assert row is not None
        assert row["owner"] == store.owner
        (new_lease,) = await store.leases.claim(10)
    assert new_lease.fence == 3
    await other_store.close()


async def test_loses_no_write_when_sessions_end(
    store: Store, postgres: PostgresCluster, postgres_url: str
) -> None:
    """Given a server that ends sessions during writes, then every write is made once."""
    database, chance = postgres_url.rpartition("/")[2], random.Random(18)
    end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s AND pid <> %s"
    with postgres.connect() as connection:
        ours = (database, connection.info.backend_pid)
        async with asyncio.timeout(PATIENCE_S):
            for _ in range(60):
                write = store.write(pay("run_a"))
                await asyncio.sleep(chance.random() * 0.004)
                await asyncio.to_thread(connection.execute, end, ours)
                await write
    assert await count(store, "run_a") == ([*range(1, 61)], 60)


@pytest.mark.parametrize("seed", range(2))
async def test_loses_no_write_when_the_server_crashes(tmp_path: Path, seed: int) -> None:
    """Given stores that write while the server crashes repeatedly, then every write is made once.

    The server reuses transaction ids that left no trace on the disk.
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
        for store in stores:
            await store.close()
        cluster.remove()
