"""Money: exact amounts inside, numbers on the wire, and dollars as people read them.

Inside, an amount of US dollars is a `Decimal`. Prices are decimal fractions, which it holds and
adds up without error; a float holds hardly any of them, so that sums of floats drift. The two
functions here do all conversions between the two.
"""

from collections.abc import Iterable
from decimal import ROUND_HALF_EVEN, Decimal
from typing import overload

DECIMAL_PLACES = 6  # for an amount that is large enough
SIGNIFICANT_DIGITS = 3  # for a smaller amount
ZERO_USD = Decimal(0)


@overload
def from_wire_usd(number: float | Decimal) -> Decimal: ...
@overload
def from_wire_usd(number: float | Decimal | None) -> Decimal | None: ...
def from_wire_usd(number: float | Decimal | None) -> Decimal | None:
    """Convert a number on the wire to the exact amount as written; None stays None.

    >>> from_wire_usd(0.1) + from_wire_usd(0.2)
    Decimal('0.3')
    """
    return None if number is None else Decimal(str(number))


@overload
def to_wire_usd(amount: Decimal) -> float: ...
@overload
def to_wire_usd(amount: Decimal | None) -> float | None: ...
def to_wire_usd(amount: Decimal | None) -> float | None:
    """Convert an exact amount to the nearest number, for the wire; None stays None.

    >>> to_wire_usd(Decimal("0.1") + Decimal("0.2"))
    0.3
    """
    return None if amount is None else float(amount)


def sum_usd(numbers: Iterable[float]) -> float:
    """Add up amounts of the wire exactly, and return the nearest number.

    >>> sum_usd([0.1, 0.2]), sum([0.1, 0.2])
    (0.3, 0.30000000000000004)
    """
    return to_wire_usd(sum(map(from_wire_usd, numbers), ZERO_USD))


def format_usd(amount: float | Decimal | None, *, exact: bool = False) -> str:
    """Format US dollars without an exponent; an unknown price is written `unknown`, never 0.

    Args:
        amount: amount to format; None if it is unknown.
        exact: write every digit, for the comparison of two amounts.

    >>> format_usd(None), format_usd(0), format_usd(0.5), format_usd(0.00123)
    ('unknown', '$0', '$0.5', '$0.00123')
    >>> format_usd(1e-07), format_usd(0.00000123456), format_usd(0.00146000001, exact=True)
    ('$0.0000001', '$0.00000123', '$0.00146000001')
    """
    value = from_wire_usd(amount)
    if value is None:
        return "unknown"
    if value and not exact:
        places = max(DECIMAL_PLACES, SIGNIFICANT_DIGITS - 1 - value.adjusted())
        value = value.quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_EVEN)
    text = f"{value:f}"
    return f"${text.rstrip('0').rstrip('.') if '.' in text else text}"
