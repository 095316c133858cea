"""Several stores on one database of PostgreSQL: fenced, numbered, counted, and never in doubt."""

import asyncio
import random
from collections import Counter
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
    """Three stores, as of three machines: each with a folder of its own."""
    opened = [
        await Store.open(tmp_path / str(n), database=postgres_url, lease_s=LEASE_S)
        for n in range(3)
    ]
    yield opened
    for each in opened:
        await each.close()


@pytest.fixture
def url(postgres_url: str) -> str:
    """The address of the database, which is of the one kind."""
    return postgres_url


def event(resource: str, job: str | None = None) -> AppendEvent:
    """An event of a resource."""
    return AppendEvent(resource, "node.queued", {}, AT, job)


async def test_who_stood_still_renews_a_lease_before_it_calls(
    stores: list[Store], execute: Execute, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a lease that ended as its process stood still, then nobody takes it during a call."""
    first, second, _ = stores
    (held,) = await acquire(first, "run_a")
    assert await second.leases.claim(10) == []
    execute("UPDATE roots SET lease_until = extract(epoch FROM clock_timestamp()) - 1")
    monkeypatch.setattr("toolkit.store.leases.lease_store.STALE_AFTER", -1.0)  # for so long
    await first.leases.check(held)
    assert await second.leases.claim(10) == []


async def test_after_an_outage_who_lives_renews_first(
    tmp_path: Path,
    stores: list[Store],
    execute: Execute,
    postgres: PostgresCluster,
    postgres_url: str,
) -> None:
    """Given leases that ended while nobody could renew them, then they are not taken at once."""
    first = stores[0]
    await acquire(first, "run_a", "run_dead")
    execute("UPDATE roots SET lease_until = 0")
    execute("UPDATE roots SET owner = 'dead' WHERE id = 'run_dead'")
    other = await Store.open(tmp_path / "other", database=postgres_url, lease_s=1.0)
    try:
        assert await other.leases.claim(0) == []
        with postgres.hang():
            claiming = asyncio.create_task(other.leases.claim(10))
            await asyncio.to_thread(check_stays, lambda: not claiming.done(), 0.7)
        assert await claiming == []
        first.leases.renew()
        assert [lease.root_id for lease in await claim_ended(other)] == ["run_dead"]
    finally:
        await other.close()


async def test_what_a_limit_refuses_ends_no_lease(stores: list[Store], execute: Execute) -> None:
    """Given a spending that a limit refuses, then all else under its lease is written."""
    first, second, _ = stores
    (lease,) = await acquire(first, "run_a")
    writes = [
        first.write([make_row("plans", "a")], lease=lease),
        first.write([AddSpending("day", "key", 5, 3)], lease=lease, conditional=True),
        first.write([make_row("plans", "b")], lease=lease),
    ]
    refused = [type(each) for each in await asyncio.gather(*writes, return_exceptions=True)]
    assert refused == [type(None), OverLimit, type(None)]
    execute("UPDATE roots SET lease_until = 0")
    await claim_ended(second)
    with pytest.raises(LeaseLost):
        await first.write([AddSpending("day", "key", 1, 3)], lease=lease, conditional=True)
    assert execute("SELECT coalesce(sum(nano), 0)::int FROM spending") == [(0,)]


async def test_what_a_dead_one_left_is_taken_once(stores: list[Store], execute: Execute) -> None:
    """Given many leases that ended, when all want them at once, then each is taken by one."""
    names = [f"run_{n:02}" for n in range(30)]
    await acquire(stores[0], *names)
    execute("UPDATE roots SET lease_until = 0, owner = 'dead'")
    claims: list[list[Lease]] = [[] for _ in stores]

    async def are_taken() -> bool:
        found = await asyncio.gather(*(store.leases.claim(30) for store in stores))
        for claimed, more in zip(claims, found, strict=True):
            claimed += more
        return sum(map(len, claims)) >= len(names)

    await wait_until_async(are_taken)
    taken = [lease for each in claims for lease in each]
    assert sorted(lease.root_id for lease in taken) == names
    assert {lease.fence for lease in taken} == {2}
    owners = dict(execute("SELECT id, owner FROM roots"))
    for store, leases in zip(stores, claims, strict=True):
        assert {owners[lease.root_id] for lease in leases} <= {store.owner}


async def test_a_root_that_is_being_written_under_is_passed_over(
    stores: list[Store], execute: Execute, postgres_url: str
) -> None:
    """Given a lease that ended while its holder commits, then the others do not wait for it."""
    first, second, _ = stores
    await acquire(first, "run_a", "run_b")
    execute("UPDATE roots SET lease_until = 0")
    with psycopg.connect(postgres_url) as holder:
        holder.execute("SELECT 1 FROM roots WHERE id = 'run_a' FOR UPDATE")
        assert [lease.root_id for lease in await claim_ended(second)] == ["run_b"]
    assert [lease.root_id for lease in await claim_ended(second)] == ["run_a"]


async def test_events_of_two_stores_have_no_gap_and_no_duplicate(stores: list[Store]) -> None:
    """Given stores that append to one resource at once, then it counts from 1 to the end."""
    sent = []
    for n in range(150):
        store = stores[n % len(stores)]
        sent.append(store.write([event("wfl_a", f"job_{n % 2}")]))
        if n % 10 == 0:
            await yield_turns()
    await asyncio.gather(*sent)
    for store in stores:
        assert [each["n"] for each in await store.list_events("wfl_a", after=0)] == [*range(1, 151)]


async def test_who_writes_again_and_again_stays_in_one_group(
    stores: list[Store], execute: Execute
) -> None:
    """Given many who read this and that and write once more, then commits stay few."""
    store, times, chance = stores[0], 20, random.Random(18)

    async def write_again(resource: str) -> None:
        for _ in range(times):
            await store.write([event(resource)])
            for _ in range(chance.randrange(4)):
                await store.get_last_event_number(resource)

    await asyncio.gather(*(write_again(f"wfl_{n:02}") for n in range(16)))
    ((commits, events),) = execute("SELECT count(DISTINCT xmin::text), count(*) FROM events")
    assert events == times * 16
    assert commits <= 2 * times


async def test_groups_in_each_others_way_are_all_written(
    stores: list[Store], execute: Execute
) -> None:
    """Given stores that change the same rows in other orders, then all of it is written."""
    names = [f"plan_{n}" for n in range(8)]
    await stores[0].write([make_row("plans", name) for name in names])
    chance = random.Random(18)
    sent = []
    for n in range(60):
        changes = [
            *(UpdateRow("plans", name, {"created_at": f"{n}"}) for name in chance.sample(names, 4)),
            *(AddSpending(f"day_{k}", "key", 1, None) for k in chance.sample(range(4), 3)),
        ]
        sent.append(stores[n % len(stores)].write(changes))
        if n % 3 == 0:
            await yield_turns()
    await asyncio.gather(*sent)
    assert execute("SELECT sum(nano)::bigint FROM spending") == [(180,)]


async def test_a_deadlock_is_tried_again(
    tmp_path: Path, execute: Execute, postgres_url: str
) -> None:
    """Given a transaction that the database ended for another's, then it is made again."""
    database = postgres_url.rpartition("/")[2]
    execute(f"ALTER DATABASE {database} SET deadlock_timeout = '400ms'")
    store = await Store.open(tmp_path, database=postgres_url)
    await store.write([make_row("plans", "a"), make_row("plans", "b")])
    waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    with psycopg.connect(postgres_url) as holder:
        # The store's is the one that looks for a deadlock, and is ended.
        holder.execute("SET LOCAL deadlock_timeout = '30s'")
        holder.execute("SELECT 1 FROM plans WHERE id = 'b' FOR UPDATE")
        written = store.write([UpdateRow("plans", name, {"created_at": "x"}) for name in "ab"])
        async with asyncio.timeout(PATIENCE_S):
            while not execute(waiting):
                await yield_turns()
        await asyncio.to_thread(holder.execute, "SELECT 1 FROM plans WHERE id = 'a' FOR UPDATE")
        assert not written.done()
    await written
    assert {row["created_at"] for row in await store.find_rows("plans")} == {"x"}
    await store.close()


async def test_a_limit_holds_to_the_last_nano_dollar(stores: list[Store], execute: Execute) -> None:
    """Given stores that spend from one allowance, then it is spent to its end and never beyond."""
    limit = 10**12 + 7
    chance = random.Random(18)
    amounts = [chance.randrange(1, 2 * 10**10) for _ in range(200)]
    sent = []
    for n, amount in enumerate(amounts):
        sent.append(stores[n % 3].write([AddSpending("day", "key", amount, limit)]))
        if n % 5 == 0:
            await yield_turns()
    outcomes = await asyncio.gather(*sent, return_exceptions=True)
    assert {type(each) for each in outcomes} == {type(None), OverLimit}
    spent = sum(a for a, each in zip(amounts, outcomes, strict=True) if each is None)
    assert execute("SELECT nano FROM spending") == [(spent,)]
    refused = [a for a, each in zip(amounts, outcomes, strict=True) if each is not None]
    assert all(spent + amount > limit for amount in refused[-3:])
    await stores[1].write([AddSpending("day", "key", limit - spent, limit)])
    with pytest.raises(OverLimit):
        await stores[2].write([AddSpending("day", "key", 1, limit)])
    assert execute("SELECT nano FROM spending") == [(limit,)]


async def test_a_copy_is_told_from_its_original(
    tmp_path: Path, postgres: PostgresCluster, postgres_url: str
) -> None:
    """Given a copy of a database, then it is known as one until somebody takes it up."""
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


async def test_a_database_that_cannot_be_opened(
    tmp_path: Path, postgres: PostgresCluster, postgres_url: str
) -> None:
    """Given a wrong password, or nobody there, then one line says so, without the password."""
    wrong = postgres_url.replace(postgres.password, "wrong-password")
    nobody = postgres_url.replace(f":{postgres.port}/", ":9/")
    for url, told in ((wrong, "authentication failed"), (nobody, "cannot be reached")):
        with pytest.raises(ServiceError, match=told) as refused:
            await Store.open(tmp_path, database=url)
        assert refused.value.code is ErrorCode.UNAVAILABLE
        assert "\n" not in refused.value.message
        assert "password-" not in refused.value.message
    assert Counter((tmp_path / "owners").glob("*")) == Counter()
