"""The fair semaphore: it never exceeds its limits, and no waiter starves."""

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
