"""Budgets: settled plus reserved never passes the limit, however calls interleave."""

import asyncio
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.timing import PATIENCE_S, yield_turns
from toolkit.engine.money.affordability import BudgetLeft
from toolkit.engine.money.budget import Budget, InsufficientBudgetError, reserve

CENTS = st.integers(min_value=0, max_value=40).map(lambda n: Decimal(n) / 100)


@pytest.mark.parametrize("limits", [(1, 2), (2, 1)])
def test_the_least_of_several_limits_is_left(limits: tuple[int, int]) -> None:
    """Given two limits over a call in any order, then the smaller one decides."""
    left = BudgetLeft()
    for limit in limits:
        left = left.restrict(Decimal(limit))
    assert left.covers(Decimal(1))
    assert not left.covers(Decimal("1.1"))


async def test_a_settled_call_holds_nothing() -> None:
    """Given a call that cost less than it held, when it is settled, then it holds nothing."""
    budget = Budget(Decimal(1))
    (await reserve([budget], Decimal("0.8"))).settle(Decimal("0.1"))
    assert (budget.spent, budget.reserved) == (Decimal("0.1"), 0)


@given(
    limit=CENTS,
    calls=st.lists(st.tuples(CENTS, st.integers(0, 100), st.integers(0, 3)), max_size=12),
)
def test_concurrent_calls_never_pass_the_limit(
    limit: Decimal, calls: list[tuple[Decimal, int, int]]
) -> None:
    """Given calls at once that cost at most what they held, then the limit holds at every step."""
    budget = Budget(limit)

    async def call(amount: Decimal, percent: int, turns: int) -> None:
        if not budget.could_reserve(amount):
            with pytest.raises(InsufficientBudgetError):
                await reserve([budget], amount)
            return
        try:
            held = await reserve([budget], amount)
        except InsufficientBudgetError:  # what was left was spent while it waited
            return
        for _ in range(turns):
            assert budget.spent + budget.reserved <= limit
            await yield_turns()
        held.settle(amount * percent / 100)
        assert budget.spent + budget.reserved <= limit

    async def main() -> None:
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.gather(*(call(*each) for each in calls))

    asyncio.run(main())
    assert budget.reserved == 0
    assert budget.spent <= limit


async def test_a_call_waits_for_room_that_may_come() -> None:
    """Given a budget that is held but not spent, when a call is cheap, then the next one runs."""
    budget = Budget(Decimal(1))
    first = await reserve([budget], Decimal("0.8"))
    second = asyncio.ensure_future(reserve([budget], Decimal("0.8")))
    await yield_turns()
    assert not second.done()
    first.settle(Decimal("0.1"))
    (await second).settle(Decimal("0.8"))
    assert budget.spent == Decimal("0.9")


async def test_an_unknown_price_is_refused_under_a_limit() -> None:
    """Given a limit, when a price is unknown, then nothing may be called."""
    with pytest.raises(InsufficientBudgetError):
        await reserve([Budget(Decimal(1))], None)
    (await reserve([Budget()], None)).settle(Decimal(0))


async def test_settling_twice_counts_once() -> None:
    """Given a settled reservation, when it is settled again, then nothing changes."""
    budget = Budget(Decimal(1))
    held = await reserve([budget], Decimal("0.5"))
    held.settle(Decimal("0.2"))
    held.settle(Decimal("0.5"))
    assert (budget.spent, budget.reserved) == (Decimal("0.2"), 0)
