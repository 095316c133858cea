"""The bill of a call that sends several requests."""

from decimal import Decimal

import httpx

from toolkit.engine.money.budget import Budget, Reservation, reserve
from toolkit.engine.money.call_bill import CallBill
from toolkit.plugins.flow import FREE_EXTENSION

BOUND = Decimal("0.4")
URL = "https://vendor.example/v1"


async def open_bill(budget: Budget) -> CallBill:
    """Open the bill of a call whose requests cost at most the bound each."""

    async def reserve_again() -> Reservation:
        return await reserve([budget], BOUND)

    return CallBill(await reserve_again(), reserve_again)


async def send(bill: CallBill, *, is_free: bool = False) -> None:
    """Send a request that the vendor answers with 200."""
    request = httpx.Request("POST", URL, extensions={FREE_EXTENSION: True} if is_free else {})
    await bill.cover_request(request)
    bill.note_outcome(request, httpx.Response(200))


async def test_counts_each_request_that_may_be_billed() -> None:
    """Given two requests, then the first counts as reserved, the last at its actual cost."""
    budget = Budget(Decimal(1))
    bill = await open_bill(budget)
    await send(bill)
    await send(bill)
    assert bill.compute_total(Decimal("0.1")) == BOUND + Decimal("0.1")
    bill.settle(Decimal("0.1"))
    assert (budget.spent, budget.reserved) == (BOUND + Decimal("0.1"), 0)


async def test_a_free_request_reserves_nothing() -> None:
    """Given a free request before one that costs, then the bound is reserved once."""
    budget = Budget(Decimal(1))
    bill = await open_bill(budget)
    await send(bill, is_free=True)
    await send(bill)
    await send(bill, is_free=True)
    assert budget.spent + budget.reserved == BOUND
    assert bill.compute_total(Decimal("0.1")) == Decimal("0.1")
