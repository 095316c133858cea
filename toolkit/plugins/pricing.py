"""The cost of units at a model's list prices: estimates, reservations and bills share it."""

from collections.abc import Mapping
from decimal import ROUND_HALF_EVEN, Decimal
from functools import lru_cache
from typing import Any

from toolkit.plugins.operations import Operation
from toolkit.plugins.vendor import Model, Vendor

_BILLIONTH = Decimal("1e-9")
_NOTHING = Decimal()
# The part of `input_tokens` that the vendor had seen before; dearer models of billing have none.
CACHED_INPUT_TOKENS = "cached_input_tokens"


def calculate_cost(model: Model, units: Mapping[str, float]) -> Decimal | None:
    """Calculate the cost in US dollars, to the billionth, in the tier that the input falls in.

    None when a unit that was used has no known price, or when no units are known at all: an
    unknown price is never 0. A unit that the vendor does not bill has the price 0 in the table.

    >>> model = Model("m", "text", {"input_tokens": Decimal("0.000001")})
    >>> calculate_cost(model, {"input_tokens": 1000})
    Decimal('0.001000000')
    """
    return _sum_cost(_find_tier_prices(model, units.get("input_tokens", 0)), units)


def calculate_max_cost(
    vendor: Vendor, model: Model | None, operation: Operation[Any]
) -> Decimal | None:
    """Calculate the most US dollars that one request can come to; none if that is unknown.

    The dearest tier that the input may reach counts, and no discount does.
    """
    bound = vendor.bounds.get(type(operation))
    if bound is None or model is None:
        return None
    return calculate_dearest_cost(model, bound.units(operation, model))


def calculate_dearest_cost(model: Model, units: Mapping[str, float] | None) -> Decimal | None:
    """Calculate the cost of units in the dearest tier that they may reach; none if unknown."""
    if units is None:
        return None
    if not model.tiers:
        return _sum_cost(model.prices, units)
    reached = [tier.prices for tier in model.tiers if tier.above < units.get("input_tokens", 0)]
    costs = [_sum_cost(prices, units) for prices in (model.prices, *reached)]
    return None if None in costs else max(cost for cost in costs if cost is not None)


def calculate_time_cost(
    usd_per_s: Decimal, seconds: float, rounding: str = ROUND_HALF_EVEN
) -> Decimal:
    """Calculate the cost of so much time in US dollars, to the billionth.

    >>> calculate_time_cost(Decimal("0.0001"), 2.5)
    Decimal('0.000250000')
    """
    return (usd_per_s * _to_decimal(seconds)).quantize(_BILLIONTH, rounding)


def _find_tier_prices(model: Model, given: float) -> Mapping[str, Decimal]:
    """Return the prices of the tier that an input of `given` tokens falls in."""
    return next((t.prices for t in reversed(model.tiers) if given > t.above), model.prices)


def _sum_cost(prices: Mapping[str, Decimal], units: Mapping[str, float]) -> Decimal | None:
    counted = units if CACHED_INPUT_TOKENS not in units else _split_cached_input(prices, units)
    if not counted:
        return None
    total = _NOTHING
    for unit, count in counted.items():
        if count:
            price = prices.get(unit)
            if price is None:
                return None
            total += price * _to_decimal(count)
    return total.quantize(_BILLIONTH)


def _split_cached_input(
    prices: Mapping[str, Decimal], units: Mapping[str, float]
) -> Mapping[str, float]:
    """Count cached input on its own where it has a price, and as any other input where not."""
    cached = min(units[CACHED_INPUT_TOKENS], units.get("input_tokens", 0.0))
    counted = {unit: count for unit, count in units.items() if unit != CACHED_INPUT_TOKENS}
    if cached and CACHED_INPUT_TOKENS in prices:
        counted |= {"input_tokens": counted["input_tokens"] - cached, CACHED_INPUT_TOKENS: cached}
    return counted


@lru_cache(maxsize=4096)  # the same counts come up for each model that is compared
def _to_decimal(number: float) -> Decimal:
    """Convert a count or a time to the decimal that it is written as."""
    return Decimal(str(number))
