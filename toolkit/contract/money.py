"""Dollars as people read them: in pictures, tables, progress and error messages alike."""

from decimal import ROUND_HALF_EVEN, Decimal

DECIMAL_PLACES = 6  # for an amount that is large enough
SIGNIFICANT_DIGITS = 3  # for a smaller amount


def format_usd(amount: float | Decimal | None, *, exact: bool = False) -> str:
    """Write US dollars without an exponent; an unknown price is written `unknown`, never 0.

    Args:
        amount: what to write; none where it is not known.
        exact: write every digit, as where two amounts are compared.

    >>> format_usd(None), format_usd(0), format_usd(0.5), format_usd(0.00123)
    ('unknown', '$0', '$0.5', '$0.00123')
    >>> format_usd(1e-07), format_usd(0.00000123456), format_usd(0.00146000001, exact=True)
    ('$0.0000001', '$0.00000123', '$0.00146000001')
    """
    if amount is None:
        return "unknown"
    value = Decimal(str(amount))
    if value and not exact:
        places = max(DECIMAL_PLACES, SIGNIFICANT_DIGITS - 1 - value.adjusted())
        value = value.quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_EVEN)
    text = f"{value:f}"
    return f"${text.rstrip('0').rstrip('.') if '.' in text else text}"
