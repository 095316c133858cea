"""The parts of shared limits, over a database of either kind that two engines have open."""

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
    """A clock that stands where it was set."""

    def __init__(self, at: float) -> None:
        self.at = at

    def build_now(self) -> ColumnElement[float]:
        """Build the expression of that time."""
        return literal(self.at, Float)


def open_limits(
    database: OpenDatabase,
    list_engines: Callable[[], frozenset[str]] | None = None,
    clock: SharedClock | None = None,
    note: Callable[[float], None] = lambda _: None,
) -> LimitStore:
    """The limits in a database, where files tell of engines only if they are told to.

    Each transaction is noted, with the time.
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
    """A database, opened by two engines; one of PostgreSQL as if on two machines."""
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
    """When each transaction of the limits began."""
    return []


@pytest.fixture
async def limits(
    databases: list[OpenDatabase],
    tmp_path: Path,
    request: pytest.FixtureRequest,
    transactions: list[float],
) -> list[LimitStore]:
    """The limits, as each of two engines has them."""
    is_local = request.node.callspec.params["databases"] == "sqlite"
    files = (lambda: frozenset(find_active_owners(tmp_path))) if is_local else None
    return [open_limits(each, files, note=transactions.append) for each in databases]


@pytest.fixture
async def deployments(limits: list[LimitStore]) -> AsyncIterator[list[Deployment]]:
    """The deployment, as each of two engines knows it."""
    opened = [Deployment(each) for each in limits]
    for each in opened:
        await each.open()
    yield opened
    for each in opened:
        await each.close()


async def test_rows_are_changed_by_one_at_a_time(limits: list[LimitStore]) -> None:
    """Given many changes of one row by two engines, then none is lost."""

    def count(rows: Mapping[str, LimitDocument], _at: float) -> int:
        rows["a"]["n"] = rows["a"].get("n", 0) + 1
        return int(rows["a"]["n"])

    answers = await asyncio.gather(*(one.change(["a"], count) for one in limits * 20))
    assert sorted(answers) == list(range(1, 41))
    page = await limits[0].list_changed(0.0)
    assert page.rows == {"a": {"n": 40}}
    assert (await limits[1].list_changed(page.last + 1)).rows == {}


async def test_engines_that_no_file_tells_of_tell_themselves(
    databases: list[OpenDatabase],
) -> None:
    """Given engines that are known by their rows, then each knows both, until one leaves."""
    first, second = (open_limits(each) for each in databases)
    assert await first.list_engines() == {first.engine_id}
    assert await second.list_engines() == {first.engine_id, second.engine_id}
    await first.leave()
    assert await open_limits(databases[1]).list_engines() == {second.engine_id}


async def test_engines_are_not_forgotten_while_the_database_is_away(
    databases: list[OpenDatabase], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given engines that could not renew their rows, then the first that can knows the others."""
    monkeypatch.setattr(limit_store, "RENEWAL_INTERVAL_S", 0.0)
    clocks = [SetClock(1000.0), SetClock(1000.0)]
    pairs = zip(databases, clocks, strict=True)
    first, second = (open_limits(one, clock=clock) for one, clock in pairs)
    both = {first.engine_id, second.engine_id}
    await first.list_engines()
    await second.list_engines()
    assert await first.list_engines() == both
    clocks[0].at = 1006.0
    assert await first.list_engines() == both
    started_then = open_limits(databases[0], clock=SetClock(1012.0))
    assert await started_then.list_engines() == both


async def test_an_idle_row_goes(databases: list[OpenDatabase]) -> None:
    """Given a row that nobody has changed for long, or was by another clock, then it goes."""

    def change(rows: Mapping[str, LimitDocument], _at: float) -> None:
        rows["old"]["n"] = 1

    for at in (time.monotonic() - 8000, time.monotonic() + 8000):
        await open_limits(databases[0], clock=SetClock(at)).change(["old"], change)
        assert await open_limits(databases[1]).delete_idle() == 1


async def test_tokens_are_taken_from_one_pace(
    deployments: list[Deployment], limits: list[LimitStore]
) -> None:
    """Given tokens that one engine uses, then the other waits for as many to be there again."""
    paces = [SharedPaces("c", {"tokens": UnitPace(1000, 0)}, each) for each in deployments]
    await paces[1].wait({"tokens": 1})  # from now on, both are known
    began = time.monotonic()
    await paces[0].wait({"tokens": 500})
    paces[0].adjust("tokens", -200.0)
    await paces[1].wait({"tokens": 100})
    assert time.monotonic() - began > 0.29
    row = (await limits[0].list_changed(0.0)).rows["c"]
    used_until = deployments[1].to_local(row["used_until"]["tokens"])
    assert used_until == pytest.approx(began + 0.4, abs=0.1)


async def test_an_engine_that_is_gone_leaves_its_places(
    deployments: list[Deployment], databases: list[OpenDatabase]
) -> None:
    """Given an engine that died with all places, then the other one has them."""
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


async def test_calls_one_after_the_other_ask_once_for_their_places(
    deployments: list[Deployment], transactions: list[float]
) -> None:
    """Given an engine that uses its places again and again, then it does not ask each time."""
    mine = SharedPlaces("c", 16, FairSemaphore(0), deployments[0])
    rounds = 30
    for _ in range(rounds):
        await asyncio.gather(*(mine.acquire("") for _ in range(4)))
        for _ in range(4):
            mine.release("")
        # One after the other: when this is written, so is whatever was asked for before.
        await deployments[0].change_row("another", lambda _document, _at: None)
    assert len(transactions) < rounds * 1.5


async def test_engines_that_have_their_shares_seldom_ask(
    deployments: list[Deployment], transactions: list[float]
) -> None:
    """Given two engines that want more places than there are, when each has half, then few ask."""
    semaphores = [FairSemaphore(0), FairSemaphore(0)]
    parts = [
        SharedPlaces("c", 8, semaphore, deployment)
        for semaphore, deployment in zip(semaphores, deployments, strict=True)
    ]

    async def call_again_and_again(places: SharedPlaces) -> None:
        while True:
            await places.acquire("")
            await yield_turns(100)
            places.release("")

    callers = [asyncio.create_task(call_again_and_again(each)) for each in parts * 12]
    await wait_until_async(lambda: [each.limit for each in semaphores] == [4, 4])
    began = time.monotonic()
    await wait_until_async(lambda: time.monotonic() - began > 1)
    took_s = time.monotonic() - began
    written = sum(at > began for at in transactions)
    for each in callers:
        each.cancel()
    await asyncio.wait(callers)
    assert 0 < written < 2 * 8 * took_s  # each could ask twenty times a second


@pytest.mark.parametrize(
    ("limit", "wanted", "shares"),
    [
        (8, {"a": 2, "b": 2}, {"a": 2, "b": 2}),
        (8, {"a": 20, "b": 2}, {"a": 6, "b": 2}),
        (8, {"a": 20, "b": 20, "c": 20}, {"a": 3, "b": 3, "c": 2}),
        (1, {"a": 5, "b": 5}, {"a": 1, "b": 0}),
        (0, {"a": 5}, {"a": 0}),
    ],
)
def test_places_are_shared_fairly(
    limit: int, wanted: dict[str, int], shares: dict[str, int]
) -> None:
    """Given wants, then nobody gets more while another has fewer and wants more."""
    assert share_fairly(limit, wanted, sorted(wanted)) == shares


def test_more_places_than_there_are_are_given_back() -> None:
    """Given an engine that is back after others have its places, then both keep to fair shares."""
    claims = {engine: PlaceClaim(4, 4, since=0.0, at=1.0) for engine in ("a", "b")}
    assert find_share(claims, "a", 4, 1.0) == PlaceShare(4, 2, is_contended=True)
    assert find_share(claims, "a", 8, 1.0) == PlaceShare(4, 4, is_contended=False)


def test_a_pace_of_another_clock_is_none() -> None:
    """Given a machine that was started anew since, then a pace begins again."""
    pace = UnitPace(10, 0)
    assert pace.take(1e6, 50.0, 1) == (50.0, 50.1)
    assert pace.take_now(1e6, 50.0, 3)[0] == 0
    assert UnitPace(10, 20).take_now(None, 50.0, 30) == (20, 0.0, 50.0)


async def test_a_change_that_is_committed_late_is_not_missed(limits: list[LimitStore]) -> None:
    """Given a change that reads the clock first and commits last, then it is listed all the same.

    SQLite makes the second one wait for the first, so that both have their order.
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
