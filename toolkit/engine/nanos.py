"""Money as the store keeps it: whole billionths of a US dollar, which sum up without error."""

from decimal import Decimal

A_DOLLAR = Decimal(10) ** 9


def nanos(amount: Decimal, rounding: str) -> int:
    """Convert US dollars to billionths of a dollar.

    >>> nanos(Decimal("0.5"), "ROUND_CEILING")
    500000000
    """
    return int((amount * A_DOLLAR).to_integral_value(rounding))


def dollars(nano: object) -> Decimal:
    """Convert a column of the store, in billionths of a dollar, to US dollars.

    >>> dollars(500_000_000)
    Decimal('0.5')
    """
    return Decimal(str(nano)) / A_DOLLAR
