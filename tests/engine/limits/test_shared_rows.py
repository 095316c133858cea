"""The parts of shared limits, over stores of one data directory."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.timing import wait_until_async
from toolkit.engine.concurrency.fair_semaphore import FairSemaphore
from toolkit.engine.limits.deployment import Deployment
from toolkit.engine.limits.paces import SharedPaces, UnitPace
from toolkit.engine.limits.places import SharedPlaces, share_fairly
from toolkit.store import LimitDocument, LimitStore, Store


@pytest.fixture
async def stores(tmp_path: Path) -> AsyncIterator[list[Store]]:
    """Two stores of one data directory."""
    opened = [await Store.open(tmp_path / "data") for _ in range(2)]
    yield opened
    for store in opened:
        await store.close()


@pytest.fixture
async def deployments(stores: list[Store]) -> AsyncIterator[list[Deployment]]:
    """The deployment, as each of two engines knows it."""
    opened = [Deployment(store.limits) for store in stores]
    for each in opened:
        await each.open()
    yield opened
    for each in opened:
        await each.close()


async def test_rows_are_changed_by_one_at_a_time(stores: list[Store]) -> None:
    """Given many changes of one row by two engines, then none is lost."""

    def count(document: LimitDocument, _at: float) -> int:
        document["n"] = document.get("n", 0) + 1
        return int(document["n"])

    limits = [store.limits for store in stores]
    asked = [one.change(["a"], lambda rows, at: count(rows["a"], at)) for one in limits * 20]
    assert sorted(await asyncio.gather(*asked)) == list(range(1, 41))
    page = await limits[0].list_changed(0.0)
    assert page.rows == {"a": {"n": 40}}
    assert (await limits[1].list_changed(page.at + 1)).rows == {}


async def test_engines_that_no_file_tells_of_tell_themselves(stores: list[Store]) -> None:
    """Given engines that are known by their rows, then each knows both, until one leaves."""
    own = [LimitStore(store._changes, store._owner, None) for store in stores]
    first = await own[0].list_engines()
    assert first == {own[0].engine_id}
    assert await own[1].list_engines() == {one.engine_id for one in own}
    await own[0].leave()
    again = LimitStore(stores[1]._changes, stores[1]._owner, None)
    assert await again.list_engines() == {own[1].engine_id}


async def test_an_idle_row_goes(stores: list[Store]) -> None:
    """Given a row that nobody has changed for long, or was by another clock, then it goes."""
    for at in (time.monotonic() - 8000, time.monotonic() + 8000):
        clocked = LimitStore(stores[0]._changes, stores[0]._owner, None, lambda _, at=at: at)
        await clocked.change(["old"], lambda rows, _: rows["old"].update(n=1))
        assert await stores[0].limits.delete_idle() == 1


async def test_tokens_are_taken_from_one_pace(deployments: list[Deployment]) -> None:
    """Given tokens that one engine uses, then the other waits for as many to be there again."""
    paces = [SharedPaces("c", {"tokens": UnitPace(1000, 0)}, each) for each in deployments]
    await paces[1].wait({"tokens": 1})  # from now on, both are known
    began = time.monotonic()
    await paces[0].wait({"tokens": 500})
    paces[0].adjust("tokens", -200.0)
    await paces[1].wait({"tokens": 100})
    assert time.monotonic() - began > 0.29
    (row,) = (await deployments[0]._limits.list_changed(0.0)).rows.values()
    assert row["used_until"]["tokens"] == pytest.approx(began + 0.4, abs=0.1)


async def test_an_engine_that_is_gone_leaves_its_places(
    deployments: list[Deployment], stores: list[Store]
) -> None:
    """Given an engine that died with all places, then the other one has them."""
    places = [SharedPlaces("c", 2, FairSemaphore(0), each) for each in deployments]
    await asyncio.gather(*(places[1].acquire("") for _ in range(2)))
    waiting = asyncio.create_task(places[0].acquire(""))
    await wait_until_async(lambda: places[0]._semaphore.waiting_count == 1)
    assert not waiting.done()
    deployments[1]._polling.cancel()  # type: ignore[union-attr]
    stores[1]._owner.close()
    await waiting
    await wait_until_async(lambda: deployments[0].is_alone)


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


def test_a_pace_of_another_clock_is_none() -> None:
    """Given a machine that was started anew since, then a pace begins again."""
    pace = UnitPace(10, 0)
    assert pace.take(1e6, 50.0, 1) == (50.0, 50.1)
    assert pace.take_now(1e6, 50.0, 3)[0] == 0
    assert json.dumps(UnitPace(10, 20).take_now(None, 50.0, 30)) == "[20, 0.0, 50.0]"
