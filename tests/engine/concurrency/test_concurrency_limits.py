"""Places for jobs: an account over its own waits, and others go on."""

import asyncio
from collections import Counter

from tests.support.timing import yield_turns
from toolkit.engine.concurrency.concurrency_limits import ConcurrencyLimits


async def run_waiters(
    slots: ConcurrencyLimits, asked: list[tuple[str, str]]
) -> tuple[list[str], Counter[str]]:
    """Who was served in which order, and how many of each account there were at most."""
    order: list[str] = []
    inside: Counter[str] = Counter()
    most: Counter[str] = Counter()

    async def work(account: str, root: str) -> None:
        async with slots.hold_slot(account, root):
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
    order, most = await run_waiters(ConcurrencyLimits(4, 2), [("a", "1")] * 10 + [("b", "1")])
    assert order[:3] == ["a1", "a1", "b1"]
    assert most["a"] == 2


async def test_accounts_and_roots_take_turns() -> None:
    """Given a large root of one account, then its small one and another's do not wait long."""
    asked = [("a", "1")] * 20 + [("a", "2"), ("b", "1")]
    order, most = await run_waiters(ConcurrencyLimits(2, 128), asked)
    assert order.index("a2") < 6
    assert order.index("b1") < 4
    assert most["all"] == 2


async def test_no_place_is_lost_by_those_who_give_up() -> None:
    """Given jobs that are cancelled while they wait, then all places are there afterwards."""
    slots = ConcurrencyLimits(3, 2)
    waiting = [
        asyncio.create_task(run_waiters(slots, [(account, "1")] * 5)) for account in ("a", "b")
    ]
    await yield_turns()
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    assert not slots.is_full("a")
    _, most = await run_waiters(slots, [("a", "1"), ("b", "1")] * 5)
    assert (most["all"], most["a"], most["b"]) == (3, 2, 2)
