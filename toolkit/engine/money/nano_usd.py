"""Money as the store keeps it: whole billionths of a US dollar, which sum up without error."""

from decimal import Decimal

NANO_PER_USD = Decimal(10) ** 9


def to_nano_usd(amount: Decimal, rounding: str) -> int:
    """Convert US dollars to billionths of a dollar.

    >>> to_nano_usd(Decimal("0.5"), "ROUND_CEILING")
    500000000
    """
    return int((amount * NANO_PER_USD).to_integral_value(rounding))


def from_nano_usd(nano: object) -> Decimal:
    """Convert a column of the store, in billionths of a dollar, to US dollars.

    >>> from_nano_usd(500_000_000)
    Decimal('0.5')
    """
    return Decimal(str(nano)) / NANO_PER_USD
