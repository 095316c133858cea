"""The event loop: its kind, and fair turns of work on it."""

import asyncio
import importlib.util
import sys
import time
from collections import Counter

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.timing import PATIENCE_S, yield_turns
from toolkit.engine.concurrency import pacing
from toolkit.engine.concurrency.event_loops import create_event_loop
from toolkit.engine.concurrency.fair_semaphore import FairSemaphore
from toolkit.engine.concurrency.pacing import (
    NODE_COST_S,
    OTHERS_SHARE,
    SLICE_S,
    Pacer,
    note_activity,
    yield_to_others,
)
from toolkit.engine.concurrency.shared_calls import SharedCalls
from toolkit.engine.transport.driver import Driver
from toolkit.engine.transport.worker_pool import WorkerPool
from toolkit.settings import Settings


@given(
    limit=st.integers(1, 4),
    per_group=st.none() | st.integers(1, 3),
    groups=st.lists(st.sampled_from("abc"), min_size=1, max_size=20),
    cancelled=st.sets(st.integers(0, 19)),
)
def test_keeps_its_limits_and_loses_no_slot(
    limit: int, per_group: int | None, groups: list[str], cancelled: set[int]
) -> None:
    """Given waiters of any groups, when some are cancelled, then limits hold and slots return."""

    async def run() -> None:
        semaphore = FairSemaphore(limit, per_group=per_group)
        inside: Counter[str] = Counter()

        async def work(group: str) -> None:
            async with semaphore.hold(group):
                inside[group] += 1
                assert inside.total() <= limit
                assert per_group is None or inside[group] <= per_group
                try:
                    await yield_turns()
                finally:
                    inside[group] -= 1

        tasks = [asyncio.create_task(work(group)) for group in groups]
        await yield_turns()
        for index in cancelled & set(range(len(tasks))):
            tasks[index].cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert not [outcome for outcome in outcomes if isinstance(outcome, AssertionError)]
        for number in range(limit):
            assert not semaphore.is_full
            await semaphore.acquire(f"after {number}")
        assert semaphore.is_full

    asyncio.run(run())


async def list_service_order(semaphore: FairSemaphore, waiters: list[tuple[str, str]]) -> list[str]:
    """Have waiters, each an account and a root, ask at once; return the order of their turns."""
    order: list[str] = []

    async def work(account: str, root: str) -> None:
        async with semaphore.hold(account, root):
            order.append(account + root)
            await yield_turns(5)  # time for other waiters, if a slot is free

    await asyncio.gather(*[work(account, root) for account, root in waiters])
    return order


async def test_serves_others_while_an_account_is_at_its_limit() -> None:
    """Given an account that asks for more slots than it may hold, then another one starts next."""
    waiters = [("a", "1")] * 10 + [("b", "1")]
    order = await list_service_order(FairSemaphore(4, per_group=2), waiters)
    assert order[:3] == ["a1", "a1", "b1"]


async def test_takes_turns_by_account_and_root() -> None:
    """Given a large root of an account, then its small root and another account wait briefly."""
    waiters = [("a", "1")] * 20 + [("a", "2"), ("b", "1")]
    order = await list_service_order(FairSemaphore(2, per_group=128), waiters)
    assert order.index("a2") < 6
    assert order.index("b1") < 4


@pytest.mark.skipif(importlib.util.find_spec("uvloop") is None, reason="uvloop is not installed")
def test_uses_uvloop_if_installed() -> None:
    """Given uvloop, then the engine's loop is a loop of uvloop."""
    loop = create_event_loop()
    loop.close()
    assert type(loop).__module__.startswith("uvloop")


def test_uses_asyncio_without_uvloop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a system without uvloop, then the engine's loop is asyncio's, and it runs work."""
    monkeypatch.setitem(sys.modules, "uvloop", None)
    with asyncio.Runner(loop_factory=create_event_loop) as runner:
        assert isinstance(runner.get_loop(), asyncio.BaseEventLoop)
        assert runner.run(asyncio.to_thread(lambda: "served")) == "served"


async def test_sends_equal_lookups_once() -> None:
    """Given look-ups at one time, then equal look-ups are one request with one answer."""
    paths: list[str] = []
    may_answer = asyncio.Event()

    async def answer(request: httpx.Request) -> httpx.Response:
        paths.append(request.url.path)
        await may_answer.wait()
        return httpx.Response(200, text=request.url.path)

    driver = Driver(lambda: httpx.MockTransport(answer), WorkerPool.of(Settings()), 1_000_000)
    requests = [httpx.Request("GET", f"https://wiki.example/{name}") for name in "aab"]
    lookups = [asyncio.create_task(driver.send(request)) for request in requests]
    may_answer.set()
    answers = [response.text for response in await asyncio.gather(*lookups)]
    later = await driver.send(requests[0])
    await driver.aclose()
    assert (answers, later.text) == (["/a", "/a", "/b"], "/a")
    assert sorted(paths) == ["/a", "/a", "/b"]  # the later look-up is a request of its own


@pytest.mark.parametrize("is_second_cancelled", [False, True])
async def test_runs_until_the_last_waiter_leaves(is_second_cancelled: bool) -> None:
    """Given a call with two waiters, when both are cancelled, then the call is cancelled."""
    calls: SharedCalls[str, str] = SharedCalls()
    may_end, cancelled = asyncio.Event(), asyncio.Event()

    async def call() -> str:
        try:
            await may_end.wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return "done"

    first, second = (asyncio.create_task(calls.share("a", call())) for _ in range(2))
    await yield_turns(2)  # until the task of the call has started
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert not cancelled.is_set()
    if is_second_cancelled:
        second.cancel()
        await asyncio.wait_for(cancelled.wait(), 5)
    else:
        may_end.set()
        assert await second == "done"


SLICES, NODES = 8, 5


def block(seconds: float) -> None:
    """Hold the loop for this time."""
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass


async def run_slices(active: str) -> None:
    """Hold the loop for some slices of Ada's work, while an account is active."""
    async with Pacer("ada") as pacer:
        for _ in range(SLICES):
            block(SLICE_S)
            note_activity(active)
            await pacer.pause()


async def start_nodes(active: str) -> None:
    """Start some of Ada's nodes, while an account is active."""
    for _ in range(NODES):
        note_activity(active)
        await yield_to_others("ada")


async def test_a_slice_waits_for_other_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given other work that needs several turns of the loop, then it ends before the next slice."""
    monkeypatch.setattr(pacing, "MAX_WAIT_S", PATIENCE_S)

    async def request() -> None:
        for _ in range(5):
            block(0.001)
            await yield_turns()

    async with Pacer() as pacer:
        for _ in range(SLICES):
            task = asyncio.create_task(request())
            block(SLICE_S)
            await pacer.pause()
            assert task.done()


async def test_leaves_two_thirds_of_the_time_to_active_accounts() -> None:
    """Given another active account, then each slice and node is followed by a pause."""
    began = time.perf_counter()
    await run_slices(active="bob")
    assert time.perf_counter() - began >= SLICES * SLICE_S * (1 + OTHERS_SHARE)
    began = time.perf_counter()
    await start_nodes(active="bob")
    assert time.perf_counter() - began >= (NODES - 1) * NODE_COST_S * OTHERS_SHARE


async def test_does_not_pause_for_the_own_account(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given no other active account, then slices and nodes follow each other without a pause."""
    sleeps: list[float] = []
    sleep = asyncio.sleep

    async def note_sleep(seconds: float) -> None:
        sleeps.append(seconds)
        await sleep(seconds)

    monkeypatch.setattr(asyncio, "sleep", note_sleep)
    await run_slices(active="ada")
    await start_nodes(active="ada")
    assert not any(sleeps)


async def test_accounts_take_turns_slice_by_slice() -> None:
    """Given two accounts with long work, then their slices alternate."""
    order: list[str] = []

    async def work(account_id: str) -> None:
        async with Pacer(account_id) as pacer:
            for _ in range(3):
                await pacer.end_slice()
                order.append(account_id)

    async with asyncio.TaskGroup() as group:
        for account_id in ("ada", "ada", "ada", "bob"):
            group.create_task(work(account_id))
    assert order.count("bob") == 3
    assert order.index("bob") <= 2
    assert order[-2:] == ["ada", "ada"]  # otherwise Bob would wait for all of Ada's slices
