"""Budgets: reserve money before a vendor is called, settle it after (decisions, "Budget")."""

import asyncio
from collections.abc import Callable, Sequence
from decimal import Decimal

from toolkit.contract.money import ZERO_USD


class InsufficientBudgetError(Exception):
    """Raised if a call may cost more than is left, even if calls in flight cost nothing."""


class Budget:
    """A spending limit; settled plus reserved money never exceeds it.

    Attributes:
        limit: limit in US dollars; None counts without a limit.
        spent: settled amount so far, in US dollars.
        reserved: maximum cost of the calls in flight, in US dollars.
    """

    def __init__(self, limit: Decimal | None = None, spent: Decimal = ZERO_USD) -> None:
        self.limit = limit
        self.spent = spent
        self.reserved = ZERO_USD
        self._released = asyncio.Event()

    def can_reserve(self, amount: Decimal) -> bool:
        """Check whether `amount` can be reserved now."""
        return self.limit is None or self.spent + self.reserved + amount <= self.limit

    def could_reserve(self, amount: Decimal) -> bool:
        """Check whether `amount` could be reserved if all calls in flight cost nothing."""
        return self.limit is None or self.spent + amount <= self.limit

    @property
    def available(self) -> Decimal | None:
        """The amount left if all calls in flight cost nothing; None without a limit."""
        return None if self.limit is None else self.limit - self.spent

    def hold(self, amount: Decimal) -> None:
        """Count `amount` as reserved, without checking the limit."""
        self.reserved += amount

    def settle(self, amount: Decimal, actual: Decimal) -> None:
        """Replace a reservation by its actual cost."""
        self.reserved -= amount
        self.spent += actual
        self._released.set()

    async def wait_for_release(self) -> None:
        """Wait until a reservation is settled."""
        self._released.clear()
        await self._released.wait()


class Reservation:
    """A reservation of money in every budget that a call counts against.

    Attributes:
        amount: maximum cost of the call, in US dollars.
        on_settle: function called once, with the actual cost.
    """

    def __init__(self, budgets: Sequence[Budget], amount: Decimal) -> None:
        self._budgets = budgets
        self.amount = amount
        self.on_settle: Callable[[Decimal], None] | None = None
        for budget in budgets:
            budget.hold(amount)

    def settle(self, actual: Decimal) -> None:
        """Settle the reservation with the actual cost; a second call does nothing."""
        budgets, self._budgets = self._budgets, ()
        for budget in budgets:
            budget.settle(self.amount, actual)
        if self.on_settle is not None:
            settled, self.on_settle = self.on_settle, None
            settled(actual)


async def reserve(budgets: Sequence[Budget], amount: Decimal | None) -> Reservation:
    """Reserve `amount` in all budgets together, waiting while calls in flight may free some.

    Raises:
        InsufficientBudgetError: if it can never fit, or if it is unknown and a limit is set.
    """
    limited = [budget for budget in budgets if budget.limit is not None]
    if amount is None:
        if limited:
            raise InsufficientBudgetError
        return Reservation(budgets, ZERO_USD)
    while True:
        if not all(budget.could_reserve(amount) for budget in limited):
            raise InsufficientBudgetError
        full = next((budget for budget in limited if not budget.can_reserve(amount)), None)
        if full is None:
            return Reservation(budgets, amount)
        await full.wait_for_release()
