"""Exact amounts: their sums, and the integer billionths of a US dollar that the store keeps."""

from collections.abc import Iterable
from decimal import Decimal

from toolkit.contract.money import ZERO_USD

NANO_PER_USD = Decimal(10) ** 9


def to_nano_usd(amount: Decimal, rounding: str) -> int:
    """Convert US dollars to billionths of a dollar.

    >>> to_nano_usd(Decimal("0.5"), "ROUND_CEILING")
    500000000
    """
    return int((amount * NANO_PER_USD).to_integral_value(rounding))


def from_nano_usd(nano: int) -> Decimal:
    """Convert a column of the store, in billionths of a dollar, to US dollars.

    >>> from_nano_usd(500_000_000)
    Decimal('0.5')
    """
    return Decimal(nano) / NANO_PER_USD


def sum_costs(costs: Iterable[Decimal | None]) -> Decimal | None:
    """Sum costs; an unknown cost makes the sum unknown too.

    >>> sum_costs([Decimal("0.1"), Decimal("0.2")]), sum_costs([Decimal(1), None]), sum_costs([])
    (Decimal('0.3'), None, Decimal('0'))
    """
    total = ZERO_USD
    for cost in costs:
        if cost is None:
            return None
        total += cost
    return total
