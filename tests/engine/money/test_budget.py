"""Budgets: settled plus reserved cost never exceeds the limit, in any order of calls."""

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
def test_the_lowest_of_several_limits_applies(limits: tuple[int, int]) -> None:
    """Given two limits of a call in any order, then the lower limit decides."""
    budget = BudgetLeft()
    for limit in limits:
        budget = budget.restrict(Decimal(limit))
    assert budget.covers(Decimal(1))
    assert not budget.covers(Decimal("1.1"))


@given(
    limit=CENTS,
    calls=st.lists(st.tuples(CENTS, st.integers(0, 100), st.integers(0, 3)), max_size=12),
)
def test_concurrent_calls_never_pass_the_limit(
    limit: Decimal, calls: list[tuple[Decimal, int, int]]
) -> None:
    """Given concurrent calls that cost at most their reservation, then the limit always holds."""
    budget = Budget(limit)

    async def call(amount: Decimal, percent: int, turns: int) -> None:
        if not budget.could_reserve(amount):
            with pytest.raises(InsufficientBudgetError):
                await reserve([budget], amount)
            return
        try:
            reservation = await reserve([budget], amount)
        except InsufficientBudgetError:  # other calls spent the rest meanwhile
            return
        for _ in range(turns):
            assert budget.spent + budget.reserved <= limit
            await yield_turns()
        reservation.settle(amount * percent / 100)
        assert budget.spent + budget.reserved <= limit

    async def main() -> None:
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.gather(*(call(*arguments) for arguments in calls))

    asyncio.run(main())
    assert budget.reserved == 0
    assert budget.spent <= limit


async def test_waits_for_reservations_to_be_settled() -> None:
    """Given a reserved budget, when the call costs less, then a waiting call may start."""
    budget = Budget(Decimal(1))
    first = await reserve([budget], Decimal("0.8"))
    second = asyncio.ensure_future(reserve([budget], Decimal("0.8")))
    await yield_turns()
    assert not second.done()
    first.settle(Decimal("0.1"))
    (await second).settle(Decimal("0.8"))
    assert budget.spent == Decimal("0.9")


async def test_rejects_an_unknown_price_under_a_limit() -> None:
    """Given a limit, when the price of a call is unknown, then no call may start."""
    with pytest.raises(InsufficientBudgetError):
        await reserve([Budget(Decimal(1))], None)
    (await reserve([Budget()], None)).settle(Decimal(0))


async def test_settles_a_reservation_once() -> None:
    """Given a settled reservation, when it is settled again, then nothing changes."""
    budget = Budget(Decimal(1))
    reservation = await reserve([budget], Decimal("0.5"))
    for amount in (Decimal("0.2"), Decimal("0.5")):
        reservation.settle(amount)
        assert (budget.spent, budget.reserved) == (Decimal("0.2"), 0)
