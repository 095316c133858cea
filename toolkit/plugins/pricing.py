"""What units cost at a model's list prices: the router's estimate and the bill share it."""

from collections.abc import Mapping
from decimal import Decimal

from toolkit.plugins.vendor import Model

_BILLIONTH = Decimal("1e-9")


def price(model: Model, units: Mapping[str, float]) -> Decimal | None:
    """US dollars for what was, or will be, billed, to the billionth.

    None when a unit that was used has no known price, or when no units are known at all: an
    unknown price is never 0. A unit that the vendor does not bill has the price 0 in the table.

    >>> price(Model("m", "text", {"input_tokens": Decimal("0.000001")}), {"input_tokens": 1000})
    Decimal('0.001000000')
    """
    if not units or any(count and unit not in model.prices for unit, count in units.items()):
        return None
    used = ((model.prices[unit], count) for unit, count in units.items() if count)
    total = sum((each * Decimal(str(count)) for each, count in used), Decimal())
    return total.quantize(_BILLIONTH)
