"""Stores on one PostgreSQL database: fenced leases, event numbers, limits and conflicts."""

import asyncio
import random
from collections.abc import AsyncIterator
from pathlib import Path

import psycopg
import pytest

from tests._postgres import PostgresCluster
from tests.store.conftest import Execute
from tests.store.rows import acquire, claim_ended, make_row
from tests.support.timing import PATIENCE_S, check_stays, wait_until_async, yield_turns
from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.store import (
    AddSpending,
    AppendEvent,
    Lease,
    LeaseLost,
    OverLimit,
    Store,
    UpdateRow,
)

AT = "2026-11-20T08:00:00.000Z"
LEASE_S = 2.0


@pytest.fixture
async def stores(tmp_path: Path, postgres_url: str) -> AsyncIterator[list[Store]]:
    """Three stores, as of three machines, each with its own folder."""
    opened = [
        await Store.open(tmp_path / str(n), database=postgres_url, lease_s=LEASE_S)
        for n in range(3)
    ]
    yield opened
    for store in opened:
        await store.close()


@pytest.fixture
def url(postgres_url: str) -> str:
    """The address of the PostgreSQL database."""
    return postgres_url


def make_event(resource: str, job: str | None = None) -> AppendEvent:
    """Make an event of a resource."""
    return AppendEvent(resource, "node.queued", {}, AT, job)


async def test_a_hung_process_renews_its_lease_before_a_call(
    stores: list[Store], execute: Execute, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a lease that expired while its process hung, then it is renewed before a call."""
    first, second, _ = stores
    (lease,) = await acquire(first, "run_a")
    assert await second.leases.claim(10) == []
    execute("UPDATE roots SET lease_until = extract(epoch FROM clock_timestamp()) - 1")
    monkeypatch.setattr("toolkit.store.leases.lease_store.STALE_AFTER", -1.0)
    await first.leases.check(lease)
    assert await second.leases.claim(10) == []


async def test_live_owners_renew_first_after_an_outage(
    tmp_path: Path,
    stores: list[Store],
    execute: Execute,
    postgres: PostgresCluster,
    postgres_url: str,
) -> None:
    """Given leases that expired during an outage, then only those of dead owners are claimed."""
    first = stores[0]
    await acquire(first, "run_a", "run_dead")
    execute("UPDATE roots SET lease_until = 0")
    execute("UPDATE roots SET owner = 'dead' WHERE id = 'run_dead'")
    other_store = await Store.open(tmp_path / "other", database=postgres_url, lease_s=1.0)
    try:
        assert await other_store.leases.claim(0) == []
        with postgres.hang():
            claiming = asyncio.create_task(other_store.leases.claim(10))
            await asyncio.to_thread(check_stays, lambda: not claiming.done(), 0.7)
        assert await claiming == []
        first.leases.renew()
        assert [lease.root_id for lease in await claim_ended(other_store)] == ["run_dead"]
    finally:
        await other_store.close()


async def test_a_refused_spending_keeps_the_lease(stores: list[Store], execute: Execute) -> None:
    """Given a spending that a limit refuses, then the other writes of its lease are made."""
    first, second, _ = stores
    (lease,) = await acquire(first, "run_a")
    writes = [
        first.write([make_row("plans", "a")], lease=lease),
        first.write([AddSpending("day", "key", 5, 3)], lease=lease, conditional=True),
        first.write([make_row("plans", "b")], lease=lease),
    ]
    outcomes = await asyncio.gather(*writes, return_exceptions=True)
    assert [*map(type, outcomes)] == [type(None), OverLimit, type(None)]
    execute("UPDATE roots SET lease_until = 0")
    await claim_ended(second)
    with pytest.raises(LeaseLost):
        await first.write([AddSpending("day", "key", 1, 3)], lease=lease, conditional=True)
    assert execute("SELECT coalesce(sum(nano), 0)::int FROM spending") == [(0,)]


async def test_claims_each_abandoned_root_once(stores: list[Store], execute: Execute) -> None:
    """Given many abandoned roots, when all stores claim them, then each root is claimed once."""
    names = [f"run_{n:02}" for n in range(30)]
    await acquire(stores[0], *names)
    execute("UPDATE roots SET lease_until = 0, owner = 'dead'")
    claims: list[list[Lease]] = [[] for _ in stores]

    async def are_taken() -> bool:
        batches = await asyncio.gather(*(store.leases.claim(30) for store in stores))
        for claimed, batch in zip(claims, batches, strict=True):
            claimed += batch
        return sum(map(len, claims)) >= len(names)

    await wait_until_async(are_taken)
    leases = [lease for claimed in claims for lease in claimed]
    assert sorted(lease.root_id for lease in leases) == names
    assert {lease.fence for lease in leases} == {2}
    owners = dict(execute("SELECT id, owner FROM roots"))
    for store, claimed in zip(stores, claims, strict=True):
        assert {owners[lease.root_id] for lease in claimed} <= {store.owner}


async def test_claims_skip_a_locked_root(
    stores: list[Store], execute: Execute, postgres_url: str
) -> None:
    """Given an expired lease whose holder commits, then claims of other stores do not wait."""
    first, second, _ = stores
    await acquire(first, "run_a", "run_b")
    execute("UPDATE roots SET lease_until = 0")
    with psycopg.connect(postgres_url) as holder:
        holder.execute("SELECT 1 FROM roots WHERE id = 'run_a' FOR UPDATE")
        assert [lease.root_id for lease in await claim_ended(second)] == ["run_b"]
    assert [lease.root_id for lease in await claim_ended(second)] == ["run_a"]


async def test_event_numbers_of_several_stores_have_no_gaps(stores: list[Store]) -> None:
    """Given stores that append to one resource, then it counts from 1 without gaps."""
    writes = []
    for n in range(150):
        store = stores[n % len(stores)]
        writes.append(store.write([make_event("wfl_a", f"job_{n % 2}")]))
        if n % 10 == 0:
            await yield_turns()
    await asyncio.gather(*writes)
    for store in stores:
        assert [event["n"] for event in await store.list_events("wfl_a", after=0)] == [
            *range(1, 151)
        ]


async def test_repeated_writes_share_commits(stores: list[Store], execute: Execute) -> None:
    """Given many tasks that read and write in turn, then their writes share few commits."""
    store, times, chance = stores[0], 20, random.Random(18)

    async def write_again(resource: str) -> None:
        for _ in range(times):
            await store.write([make_event(resource)])
            for _ in range(chance.randrange(4)):
                await store.get_last_event_number(resource)

    await asyncio.gather(*(write_again(f"wfl_{n:02}") for n in range(16)))
    ((commits, events),) = execute("SELECT count(DISTINCT xmin::text), count(*) FROM events")
    assert events == times * 16
    assert commits <= 2 * times


async def test_writes_conflicting_changes_of_several_stores(
    stores: list[Store], execute: Execute
) -> None:
    """Given stores that change the same rows in different order, then all changes are made."""
    names = [f"plan_{n}" for n in range(8)]
    await stores[0].write([make_row("plans", name) for name in names])
    chance = random.Random(18)
    writes = []
    for n in range(60):
        changes = [
            *(UpdateRow("plans", name, {"created_at": f"{n}"}) for name in chance.sample(names, 4)),
            *(AddSpending(f"day_{k}", "key", 1, None) for k in chance.sample(range(4), 3)),
        ]
        writes.append(stores[n % len(stores)].write(changes))
        if n % 3 == 0:
            await yield_turns()
    await asyncio.gather(*writes)
    assert execute("SELECT sum(nano)::bigint FROM spending") == [(180,)]


async def test_retries_after_a_deadlock(
    tmp_path: Path, execute: Execute, postgres_url: str
) -> None:
    """Given a transaction that the database ended by a deadlock, then the store retries it."""
    database = postgres_url.rpartition("/")[2]
    execute(f"ALTER DATABASE {database} SET deadlock_timeout = '400ms'")
    store = await Store.open(tmp_path, database=postgres_url)
    await store.write([make_row("plans", "a"), make_row("plans", "b")])
    waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    with psycopg.connect(postgres_url) as holder:
        # The store's session detects the deadlock first, so the database ends its transaction.
        holder.execute("SET LOCAL deadlock_timeout = '30s'")
        holder.execute("SELECT 1 FROM plans WHERE id = 'b' FOR UPDATE")
        write = store.write([UpdateRow("plans", name, {"created_at": "x"}) for name in "ab"])
        async with asyncio.timeout(PATIENCE_S):
            while not execute(waiting):
                await yield_turns()
        await asyncio.to_thread(holder.execute, "SELECT 1 FROM plans WHERE id = 'a' FOR UPDATE")
        assert not write.done()
    await write
    assert {row["created_at"] for row in await store.find_rows("plans")} == {"x"}
    await store.close()


async def test_spends_a_limit_to_the_last_nano_dollar(
    stores: list[Store], execute: Execute
) -> None:
    """Given stores that share a limit, then they spend up to it, and never more."""
    limit = 10**12 + 7
    chance = random.Random(18)
    amounts = [chance.randrange(1, 2 * 10**10) for _ in range(200)]
    writes = []
    for n, amount in enumerate(amounts):
        writes.append(stores[n % 3].write([AddSpending("day", "key", amount, limit)]))
        if n % 5 == 0:
            await yield_turns()
    outcomes = await asyncio.gather(*writes, return_exceptions=True)
    assert {*map(type, outcomes)} == {type(None), OverLimit}
    spent = sum(a for a, error in zip(amounts, outcomes, strict=True) if error is None)
    assert execute("SELECT nano FROM spending") == [(spent,)]
    refused = [a for a, error in zip(amounts, outcomes, strict=True) if error is not None]
    assert all(spent + amount > limit for amount in refused[-3:])
    await stores[1].write([AddSpending("day", "key", limit - spent, limit)])
    with pytest.raises(OverLimit):
        await stores[2].write([AddSpending("day", "key", 1, limit)])
    assert execute("SELECT nano FROM spending") == [(limit,)]


async def test_recognizes_a_copy_of_a_database(
    tmp_path: Path, postgres: PostgresCluster, postgres_url: str
) -> None:
    """Given a copy of a database, then stores recognize it until one takes it up."""
    original = await Store.open(tmp_path, database=postgres_url)
    assert not original.is_copy
    await original.close()
    copied = postgres.create_database(postgres_url.rpartition("/")[2])
    states = []
    for take_up in (None, True, None):
        copy = await Store.open(tmp_path, database=copied, take_up=take_up)
        states.append(copy.is_copy)
        await copy.close()
    assert states == [True, False, False]
    postgres.drop_database(copied)


async def test_reports_an_unreachable_database_without_its_password(
    tmp_path: Path, postgres: PostgresCluster, postgres_url: str
) -> None:
    """Given a wrong password or port, then one line reports it, without the password."""
    wrong = postgres_url.replace(postgres.password, "wrong-password")
    unreachable = postgres_url.replace(f":{postgres.port}/", ":9/")
    for url, message in ((wrong, "authentication failed"), (unreachable, "cannot be reached")):
        with pytest.raises(ServiceError, match=message) as refused:
            await Store.open(tmp_path, database=url)
        assert refused.value.code is ErrorCode.UNAVAILABLE
        assert "\n" not in refused.value.message
        assert "password-" not in refused.value.message
    assert list((tmp_path / "owners").glob("*")) == []
