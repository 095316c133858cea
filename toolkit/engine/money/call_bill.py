"""The money of one vendor call: its reservations and its actual cost."""

from collections.abc import Awaitable, Callable
from decimal import Decimal

import httpx

from toolkit.contract.errors import ErrorCode, WorkError
from toolkit.contract.jobs import CostSource
from toolkit.engine.money.budget import InsufficientBudgetError, Reservation
from toolkit.engine.transport.answers import FAILED_IN_STREAM, OutcomeUnknownError
from toolkit.plugins import Model, ProviderError, Reply, Vendor
from toolkit.plugins.flow import FREE_EXTENSION, REPLACEMENT_EXTENSION
from toolkit.plugins.pricing import calculate_cost, calculate_time_cost


class CallBill:
    """The reservations of a call: one for each request that the vendor may bill.

    The first reservation covers the first request, and the next request if the first was refused.

    Args:
        reservation: reservation for the first request.
        reserve: function that reserves the same amount again.

    Attributes:
        may_be_billed: whether the vendor may bill the last request.
    """

    def __init__(
        self, reservation: Reservation, reserve: Callable[[], Awaitable[Reservation]]
    ) -> None:
        self._reservations = [reservation]
        self._reserve = reserve
        self.may_be_billed = False
        self._failed_in_stream = False

    @property
    def amount(self) -> Decimal:
        """The maximum cost of the last request."""
        return self._reservations[-1].amount

    async def cover_request(self, request: httpx.Request) -> None:
        """Reserve money for a request that may be billed, before it is sent.

        Raises:
            WorkError: `BUDGET_EXCEEDED` if it needs another reservation and too little is left.
        """
        if not is_billable(request):
            return
        if self.may_be_billed and REPLACEMENT_EXTENSION not in request.extensions:
            # It counts as spent: if it stayed reserved, this call would wait for itself.
            self._reservations[-1].settle(self.amount)
            try:
                self._reservations.append(await self._reserve())
            except InsufficientBudgetError:
                raise WorkError(
                    ErrorCode.BUDGET_EXCEEDED,
                    "The call must be repeated, and the rest of the budget does not cover it: raise"
                    " max_cost_usd.",
                ) from None
        self.may_be_billed = False

    def note_outcome(self, request: httpx.Request, outcome: httpx.Response | Exception) -> None:
        """Note the outcome of a request: only a refused request is certainly not billed."""
        if not is_billable(request):
            return
        if isinstance(outcome, httpx.Response):
            self._failed_in_stream = FAILED_IN_STREAM in outcome.extensions
            refused = 400 <= outcome.status_code < 500 and not self._failed_in_stream
            self.may_be_billed = not refused
        else:
            self.may_be_billed = isinstance(outcome, OutcomeUnknownError)

    def counts_as_spent(self, error: ProviderError) -> bool:
        """Check whether a failed call counts as spent, because the vendor may have executed it."""
        unknown = isinstance(error, OutcomeUnknownError) or self._failed_in_stream
        return unknown or error.code is ErrorCode.PROVIDER_BAD_RESPONSE

    def compute_total(self, actual: Decimal) -> Decimal:
        """Return the cost of the whole call.

        Args:
            actual: actual cost of the last request; earlier requests count as reserved.
        """
        return sum((reservation.amount for reservation in self._reservations[:-1]), actual)

    def settle(self, actual: Decimal) -> None:
        """Replace the reservations by the actual cost of the call (`compute_total`)."""
        *earlier, last = self._reservations
        for reservation in earlier:
            reservation.settle(reservation.amount)
        last.settle(actual)


def find_cost(
    reply: Reply,
    model: Model | None,
    vendor: Vendor,
    tier: str,
    rate: Decimal | None,
    took_s: float,
    reserved: Decimal | None,
) -> tuple[Decimal | None, CostSource]:
    """Return the cost of a successful call by the best source, or None if unknown, and the source.

    Args:
        reply: reply of the call.
        model: model that answered; None if unknown.
        vendor: vendor of the model.
        tier: billed service tier.
        rate: US dollars a second of the worker, at an endpoint of the caller's.
        took_s: duration of the call, in seconds.
        reserved: amount reserved for the call; None if unknown.
    """
    if reply.cost.reported_usd is not None:
        return reply.cost.reported_usd, "reported"
    metered = calculate_cost(model, reply.cost.units, tier) if model else None
    if metered is not None:
        return metered, "metered"
    if rate is not None and vendor.endpoint_time is not None:
        # The worker's time, including its idle time afterwards while it waits for more work.
        seconds = reply.cost.units.get("gpu_seconds", took_s) + vendor.endpoint_time.idle_s
        return calculate_time_cost(rate, seconds), "estimated"
    return (reserved, "unknown" if reserved is None else "estimated")


def is_billable(request: httpx.Request) -> bool:
    """Check whether a vendor may bill a request: a POST that is not marked as free."""
    return request.method == "POST" and FREE_EXTENSION not in request.extensions
