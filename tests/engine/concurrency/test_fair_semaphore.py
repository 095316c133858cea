"""The limiter: never more than allowed, and nobody starves."""

import asyncio
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from tests.support.timing import yield_turns
from toolkit.engine.concurrency.fair_semaphore import FairSemaphore


@given(
    limit=st.integers(1, 4),
    groups=st.lists(st.sampled_from("abc"), min_size=1, max_size=20),
    cancelled=st.sets(st.integers(0, 19)),
)
def test_the_limit_holds_and_no_place_is_lost(
    limit: int, groups: list[str], cancelled: set[int]
) -> None:
    """Given any groups, and some who give up, then the limit holds and all places come back."""

    async def run() -> None:
        limiter, inside, most = FairSemaphore(limit), 0, 0

        async def work(group: str) -> None:
            nonlocal inside, most
            await limiter.acquire(group)
            inside += 1
            most = max(most, inside)
            try:
                await yield_turns()
            finally:
                inside -= 1
                limiter.release(group)

        tasks = [asyncio.create_task(work(group)) for group in groups]
        await yield_turns()
        for place in cancelled & set(range(len(tasks))):
            tasks[place].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert most <= limit
        for _ in range(limit):
            assert not limiter.is_full
            await limiter.acquire("after")
        assert limiter.is_full

    asyncio.run(run())


async def test_groups_take_turns() -> None:
    """Given a large group that waits, when another comes, then it is served next but one."""
    limiter, served = FairSemaphore(1), []
    await limiter.acquire("first")

    async def work(group: str) -> None:
        await limiter.acquire(group)
        served.append(group)
        limiter.release(group)

    tasks = [asyncio.create_task(work(group)) for group in ["large"] * 5 + ["small"]]
    await yield_turns()
    limiter.release("first")
    await asyncio.gather(*tasks)
    assert served == ["large", "small", "large", "large", "large", "large"]


async def run_waiters(
    slots: FairSemaphore, asked: list[tuple[str, str]]
) -> tuple[list[str], Counter[str]]:
    """Who was served in which order, and how many of each account there were at most."""
    order: list[str] = []
    inside: Counter[str] = Counter()
    most: Counter[str] = Counter()

    async def work(account: str, root: str) -> None:
        async with slots.hold(account, root):
            order.append(account + root)
            inside[account] += 1
            most[account] = max(most[account], inside[account])
            most["all"] = max(most["all"], sum(inside.values()))
            await yield_turns(5)  # others come meanwhile, if they may
            inside[account] -= 1

    await asyncio.gather(*[work(account, root) for account, root in asked])
    return order, most


async def test_an_account_over_its_places_holds_up_nobody() -> None:
    """Given an account that asks for more than it may, then another's job is begun at once."""
    order, most = await run_waiters(FairSemaphore(4, per_group=2), [("a", "1")] * 10 + [("b", "1")])
    assert order[:3] == ["a1", "a1", "b1"]
    assert most["a"] == 2


async def test_accounts_and_roots_take_turns() -> None:
    """Given a large root of one account, then its small one and another's do not wait long."""
    asked = [("a", "1")] * 20 + [("a", "2"), ("b", "1")]
    order, most = await run_waiters(FairSemaphore(2, per_group=128), asked)
    assert order.index("a2") < 6
    assert order.index("b1") < 4
    assert most["all"] == 2


async def test_no_place_is_lost_by_those_who_give_up() -> None:
    """Given jobs that are cancelled while they wait, then all places are there afterwards."""
    slots = FairSemaphore(3, per_group=2)
    waiting = [
        asyncio.create_task(run_waiters(slots, [(account, "1")] * 5)) for account in ("a", "b")
    ]
    await yield_turns()
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    assert slots.can_start("a")
    _, most = await run_waiters(slots, [("a", "1"), ("b", "1")] * 5)
    assert (most["all"], most["a"], most["b"]) == (3, 2, 2)
