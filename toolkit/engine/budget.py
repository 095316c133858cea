"""Budgets: money is reserved before a vendor is called and settled after (decisions, "Budget")."""

import asyncio
from collections.abc import Callable, Sequence
from decimal import Decimal


class NoRoomError(Exception):
    """Less is left than a call may come to, whatever calls under way turn out to cost."""


class Budget:
    """What may be spent under one limit; settled plus reserved never passes it.

    Attributes:
        limit: US dollars; none means that there is no limit, and only counting.
        spent: what has been settled so far.
        reserved: what calls under way may still come to.
    """

    def __init__(self, limit: Decimal | None = None, spent: Decimal = Decimal(0)) -> None:
        self.limit = limit
        self.spent = spent
        self.reserved = Decimal(0)
        self._freed = asyncio.Event()

    def fits(self, amount: Decimal) -> bool:
        """Whether `amount` can be reserved at this moment."""
        return self.limit is None or self.spent + self.reserved + amount <= self.limit

    def could_fit(self, amount: Decimal) -> bool:
        """Whether it could be, once what is reserved has turned out to cost nothing."""
        return self.limit is None or self.spent + amount <= self.limit

    @property
    def room(self) -> Decimal | None:
        """The most that can still be reserved, once calls under way turn out to cost nothing."""
        return None if self.limit is None else self.limit - self.spent

    def hold(self, amount: Decimal) -> None:
        """Count `amount` as reserved."""
        self.reserved += amount

    def settle(self, held: Decimal, actual: Decimal) -> None:
        """Replace a reservation by what it came to."""
        self.reserved -= held
        self.spent += actual
        self._freed.set()

    async def freed(self) -> None:
        """Wait until some reservation is settled."""
        self._freed.clear()
        await self._freed.wait()


class Reservation:
    """Money held in every budget that a call counts against.

    Attributes:
        amount: what the call may cost.
        settled: told what it did cost, once.
    """

    def __init__(self, budgets: Sequence[Budget], amount: Decimal) -> None:
        self._budgets = budgets
        self.amount = amount
        self.settled: Callable[[Decimal], None] | None = None
        for budget in budgets:
            budget.hold(amount)

    def settle(self, actual: Decimal) -> None:
        """End the reservation with what the call cost; a second call does nothing."""
        budgets, self._budgets = self._budgets, ()
        for budget in budgets:
            budget.settle(self.amount, actual)
        if self.settled is not None:
            settled, self.settled = self.settled, None
            settled(actual)


async def reserve(budgets: Sequence[Budget], amount: Decimal | None) -> Reservation:
    """Hold `amount` in all budgets together, waiting while calls under way may leave room.

    Raises:
        NoRoomError: when it can never fit, or when it is unknown and a limit is set.
    """
    limited = [budget for budget in budgets if budget.limit is not None]
    if amount is None:
        if limited:
            raise NoRoomError
        return Reservation(budgets, Decimal(0))
    while True:
        if not all(budget.could_fit(amount) for budget in limited):
            raise NoRoomError
        full = next((budget for budget in limited if not budget.fits(amount)), None)
        if full is None:
            return Reservation(budgets, amount)
        await full.freed()


def spending(limit: float | None, spent: float = 0.0) -> Budget:
    """A budget from the wire's numbers.

    >>> spending(0.5).could_fit(Decimal("0.6"))
    False
    """
    return Budget(None if limit is None else Decimal(str(limit)), Decimal(str(spent)))
