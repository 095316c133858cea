"""The limiter: never more than allowed, and nobody starves."""

import asyncio
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from tests.support.timing import yield_turns
from toolkit.engine.concurrency.fair_semaphore import FairSemaphore


@given(
    limit=st.integers(1, 4),
    per_group=st.none() | st.integers(1, 3),
    groups=st.lists(st.sampled_from("abc"), min_size=1, max_size=20),
    cancelled=st.sets(st.integers(0, 19)),
)
def test_the_limit_holds_and_no_place_is_lost(
    limit: int, per_group: int | None, groups: list[str], cancelled: set[int]
) -> None:
    """Given any groups, and some who give up, then limits hold and all places come back."""

    async def run() -> None:
        limiter = FairSemaphore(limit, per_group=per_group)
        inside: Counter[str] = Counter()

        async def work(group: str) -> None:
            async with limiter.hold(group):
                inside[group] += 1
                assert inside.total() <= limit
                assert per_group is None or inside[group] <= per_group
                try:
                    await yield_turns()
                finally:
                    inside[group] -= 1

        tasks = [asyncio.create_task(work(group)) for group in groups]
        await yield_turns()
        for place in cancelled & set(range(len(tasks))):
            tasks[place].cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert not [one for one in outcomes if isinstance(one, AssertionError)]
        for number in range(limit):
            assert not limiter.is_full
            await limiter.acquire(f"after {number}")
        assert limiter.is_full

    asyncio.run(run())


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
