"""Rows of shared limits, in a database that two engines have open."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from sqlalchemy import ColumnElement, Connection, Float, literal

from tests.support.database_pool import BOTH_DATABASES
from tests.support.timing import PATIENCE_S, wait_until_async, yield_turns
from toolkit.engine.concurrency.fair_semaphore import FairSemaphore
from toolkit.engine.concurrency.token_buckets import UnitPace
from toolkit.engine.limits.deployment import Deployment
from toolkit.engine.limits.paces import SharedPaces
from toolkit.engine.limits.places import (
    PlaceClaim,
    PlaceShare,
    SharedPlaces,
    find_share,
    share_fairly,
)
from toolkit.store import LimitDocument, LimitStore
from toolkit.store.data_dir.owners import find_active_owners
from toolkit.store.database import OpenDatabase
from toolkit.store.leases.clock import SharedClock
from toolkit.store.limits import limit_store
from toolkit.store.postgres.database import PostgresDatabase
from toolkit.store.sqlite.database import SqliteDatabase
from toolkit.store.writing.direct_writer import DirectWriter


class SetClock(SharedClock):
    """A clock that a test sets."""

    def __init__(self, at: float) -> None:
        self.at = at

    def build_now(self) -> ColumnElement[float]:
        """Build the expression of the time that is set."""
        return literal(self.at, Float)


def open_limits(
    database: OpenDatabase,
    list_engines: Callable[[], frozenset[str]] | None = None,
    clock: SharedClock | None = None,
    note: Callable[[float], None] = lambda _: None,
) -> LimitStore:
    """Open the limits in a database.

    Args:
        database: the database of an engine.
        list_engines: lists running engines by their files; by default, their rows are read.
        clock: the clock of the rows; by default, that of the database.
        note: is called with the monotonic time of each transaction.
    """

    def begin() -> AbstractContextManager[Connection]:
        note(time.monotonic())
        return database.begin()

    changes = DirectWriter(begin)
    return LimitStore(
        database.reads, changes, database.owner, clock or database.clock, list_engines
    )


@pytest.fixture(params=BOTH_DATABASES)
async def databases(
    request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncIterator[list[OpenDatabase]]:
    """A database that two engines have open, with PostgreSQL as if on two machines."""
    opened: list[OpenDatabase] = []
    for name in ("one", "two"):
        if request.param == "sqlite":
            opened.append(SqliteDatabase(tmp_path, "normal", None, None))
        else:
            url = request.getfixturevalue("postgres_url")
            folder = tmp_path / name
            folder.mkdir()
            opened.append(await PostgresDatabase.open(url, folder, sandbox=None, take_up=None))
    yield opened
    for database in opened:
        await database.close()


@pytest.fixture
def transactions() -> list[float]:
    """The monotonic time of each transaction of the limits."""
    return []


@pytest.fixture
async def limits(
    databases: list[OpenDatabase],
    tmp_path: Path,
    request: pytest.FixtureRequest,
    transactions: list[float],
) -> list[LimitStore]:
    """The limits of each of two engines."""
    is_local = request.node.callspec.params["databases"] == "sqlite"
    files = (lambda: frozenset(find_active_owners(tmp_path))) if is_local else None
    return [open_limits(database, files, note=transactions.append) for database in databases]


@pytest.fixture
async def deployments(limits: list[LimitStore]) -> AsyncIterator[list[Deployment]]:
    """The deployment of each of two engines."""
    deployments = [Deployment(store) for store in limits]
    for deployment in deployments:
        await deployment.open()
    yield deployments
    for deployment in deployments:
        await deployment.close()


async def test_serializes_changes_of_a_row(limits: list[LimitStore]) -> None:
    """Given many changes of a row by two engines at once, then no change is lost."""

    def count(rows: Mapping[str, LimitDocument], _at: float) -> int:
        rows["a"]["n"] = rows["a"].get("n", 0) + 1
        return int(rows["a"]["n"])

    answers = await asyncio.gather(*(store.change(["a"], count) for store in limits * 20))
    assert sorted(answers) == list(range(1, 41))
    page = await limits[0].list_changed(0.0)
    assert page.rows == {"a": {"n": 40}}
    assert (await limits[1].list_changed(page.last + 1)).rows == {}


async def test_lists_engines_by_their_rows(databases: list[OpenDatabase]) -> None:
    """Given engines without common files, then each lists both, until an engine leaves."""
    first, second = (open_limits(database) for database in databases)
    assert await first.list_engines() == {first.engine_id}
    assert await second.list_engines() == {first.engine_id, second.engine_id}
    await first.leave()
    assert await open_limits(databases[1]).list_engines() == {second.engine_id}


async def test_lists_engines_after_an_outage_of_the_database(
    databases: list[OpenDatabase], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given engines that could not renew their rows, then a later reader still lists both."""
    monkeypatch.setattr(limit_store, "RENEWAL_INTERVAL_S", 0.0)
    clocks = [SetClock(1000.0), SetClock(1000.0)]
    pairs = zip(databases, clocks, strict=True)
    first, second = (open_limits(database, clock=clock) for database, clock in pairs)
    both = {first.engine_id, second.engine_id}
    await first.list_engines()
    await second.list_engines()
    assert await first.list_engines() == both
    clocks[0].at = 1006.0
    assert await first.list_engines() == both
    assert await open_limits(databases[0], clock=SetClock(1012.0)).list_engines() == both


async def test_deletes_idle_rows(databases: list[OpenDatabase]) -> None:
    """Given a row with an old change, or a change by another clock, then it is deleted."""

    def change(rows: Mapping[str, LimitDocument], _at: float) -> None:
        rows["old"]["n"] = 1

    for at in (time.monotonic() - 8000, time.monotonic() + 8000):
        await open_limits(databases[0], clock=SetClock(at)).change(["old"], change)
        assert await open_limits(databases[1]).delete_idle() == 1


async def test_shares_a_token_bucket(
    deployments: list[Deployment], limits: list[LimitStore]
) -> None:
    """Given tokens that an engine takes, then the other engine waits until they are refilled."""
    paces = [
        SharedPaces("c", {"tokens": UnitPace(1000, 0)}, deployment) for deployment in deployments
    ]
    await paces[1].wait({"tokens": 1})  # from now on, each engine knows the other
    began = time.monotonic()
    await paces[0].wait({"tokens": 500})
    paces[0].adjust("tokens", -200.0)
    await paces[1].wait({"tokens": 100})
    assert time.monotonic() - began > 0.29
    row = (await limits[0].list_changed(0.0)).rows["c"]
    used_until = deployments[1].to_local(row["used_until"]["tokens"])
    assert used_until == pytest.approx(began + 0.4, abs=0.1)


async def test_takes_over_slots_of_a_dead_engine(
    deployments: list[Deployment], databases: list[OpenDatabase]
) -> None:
    """Given an engine that dies with all slots, then the other engine takes them over."""
    semaphore = FairSemaphore(0)
    mine = SharedPlaces("c", 2, semaphore, deployments[0])
    others = SharedPlaces("c", 2, FairSemaphore(0), deployments[1])
    await asyncio.gather(*(others.acquire("") for _ in range(2)))
    waiting = asyncio.create_task(mine.acquire(""))
    await wait_until_async(lambda: semaphore.waiting_count == 1)
    await wait_until_async(lambda: not deployments[0].is_alone)
    assert not waiting.done()
    await deployments[1].close()
    databases[1].owner.close()
    await waiting
    await wait_until_async(lambda: deployments[0].is_alone)


async def test_reuses_slots_without_a_transaction(
    deployments: list[Deployment], transactions: list[float]
) -> None:
    """Given an engine that uses its slots repeatedly, then it does not write each time."""
    mine = SharedPlaces("c", 16, FairSemaphore(0), deployments[0])
    rounds = 30
    for _ in range(rounds):
        await asyncio.gather(*(mine.acquire("") for _ in range(4)))
        for _ in range(4):
            mine.release("")
        # Changes are written in order, so earlier requests are written as well by then.
        await deployments[0].change_row("another", lambda _document, _at: None)
    assert len(transactions) < rounds * 1.5


async def test_polls_rarely_at_its_fair_share(
    deployments: list[Deployment], transactions: list[float]
) -> None:
    """Given two engines at their fair shares of the slots, then they seldom poll for more."""
    semaphores = [FairSemaphore(0), FairSemaphore(0)]
    pairs = zip(semaphores, deployments, strict=True)
    shares = [SharedPlaces("c", 8, semaphore, deployment) for semaphore, deployment in pairs]

    async def call_repeatedly(places: SharedPlaces) -> None:
        while True:
            await places.acquire("")
            await yield_turns(100)
            places.release("")

    callers = [asyncio.create_task(call_repeatedly(places)) for places in shares * 12]
    await wait_until_async(lambda: [semaphore.limit for semaphore in semaphores] == [4, 4])
    began = time.monotonic()
    await wait_until_async(lambda: time.monotonic() - began > 1)
    took_s = time.monotonic() - began
    writes = sum(at > began for at in transactions)
    for caller in callers:
        caller.cancel()
    await asyncio.wait(callers)
    # Without fair shares, each engine would poll twenty times a second.
    assert 0 < writes < 2 * 8 * took_s


@pytest.mark.parametrize(
    ("limit", "demands", "shares"),
    [
        (8, {"a": 2, "b": 2}, {"a": 2, "b": 2}),
        (8, {"a": 20, "b": 2}, {"a": 6, "b": 2}),
        (8, {"a": 20, "b": 20, "c": 20}, {"a": 3, "b": 3, "c": 2}),
        (1, {"a": 5, "b": 5}, {"a": 1, "b": 0}),
        (0, {"a": 5}, {"a": 0}),
    ],
)
def test_shares_slots_fairly(limit: int, demands: dict[str, int], shares: dict[str, int]) -> None:
    """Given demands of engines, then no engine has more than another whose demand is not met."""
    assert share_fairly(limit, demands, sorted(demands)) == shares


def test_returns_slots_above_the_limit() -> None:
    """Given claims above the limit, then each engine keeps only its fair share."""
    claims = {engine: PlaceClaim(4, 4, since=0.0, at=1.0) for engine in ("a", "b")}
    assert find_share(claims, "a", 4, 1.0) == PlaceShare(4, 2, is_contended=True)
    assert find_share(claims, "a", 8, 1.0) == PlaceShare(4, 4, is_contended=False)


def test_restarts_a_token_bucket_of_another_clock() -> None:
    """Given a machine that was restarted since, then the bucket starts again."""
    pace = UnitPace(10, 0)
    assert pace.take(1e6, 50.0, 1) == (50.0, 50.1)
    assert pace.take_now(1e6, 50.0, 3)[0] == 0
    assert UnitPace(10, 20).take_now(None, 50.0, 30) == (20, 0.0, 50.0)


async def test_lists_changes_that_are_committed_late(limits: list[LimitStore]) -> None:
    """Given a change that reads the clock first and commits last, then it is listed.

    SQLite makes the second change wait for the first, so the order is the same.
    """
    is_waiting, goes_on = threading.Event(), threading.Event()

    def hold(rows: Mapping[str, LimitDocument], _at: float) -> None:
        rows["late"]["n"] = 1
        is_waiting.set()
        goes_on.wait(PATIENCE_S)

    def change(rows: Mapping[str, LimitDocument], _at: float) -> None:
        rows["early"]["n"] = 1

    holding = asyncio.create_task(limits[0].change(["late"], hold))
    await asyncio.to_thread(is_waiting.wait, PATIENCE_S)
    changing = asyncio.create_task(limits[1].change(["early"], change))
    await asyncio.wait([changing], timeout=0.5)
    page = await limits[1].list_changed(0.0)
    assert page.rows.keys() <= {"early"}
    goes_on.set()
    await asyncio.gather(holding, changing)
    assert "late" in (await limits[1].list_changed(page.last)).rows
