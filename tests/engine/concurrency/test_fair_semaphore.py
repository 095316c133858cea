"""The limiter: never more than allowed, and nobody starves."""

import asyncio

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
                limiter.release()

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
        limiter.release()

    tasks = [asyncio.create_task(work(group)) for group in ["large"] * 5 + ["small"]]
    await yield_turns()
    limiter.release()
    await asyncio.gather(*tasks)
    assert served == ["large", "small", "large", "large", "large", "large"]
