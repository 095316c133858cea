"""The cost of units at a model's list prices: estimates, reservations and bills share it."""

from collections.abc import Mapping
from decimal import ROUND_HALF_EVEN, Decimal
from functools import lru_cache
from typing import Any

from toolkit.plugins.operations import Operation
from toolkit.plugins.vendor import Model, Vendor

_BILLIONTH = Decimal("1e-9")
_NOTHING = Decimal()
_ALL = Decimal(1)
INPUT_TOKENS = "input_tokens"
# The parts of `input_tokens` that the vendor read from its prompt cache, and wrote to it.
CACHED_INPUT_TOKENS = "cached_input_tokens"
CACHE_WRITE_TOKENS = "cache_write_tokens"
_INPUT_PARTS = frozenset((CACHED_INPUT_TOKENS, CACHE_WRITE_TOKENS))
# The service tier that list prices are for.
STANDARD_TIER = "standard"


def calculate_cost(
    model: Model, units: Mapping[str, float], tier: str = STANDARD_TIER
) -> Decimal | None:
    """Calculate the cost in US dollars, to the billionth, in the tier that the input falls in.

    Returns None if a used unit has no known price, or if no units are known: an unknown price is
    never 0. A unit that the vendor does not bill has the price 0 in the table.

    Args:
        tier: the service tier that was billed. The cost is None if the model has no price for it.

    >>> model = Model("m", "text", {"input_tokens": Decimal("0.000001")})
    >>> calculate_cost(model, {"input_tokens": 1000})
    Decimal('0.001000000')
    """
    share = _ALL if tier == STANDARD_TIER else model.service_tiers.get(tier)
    if share is None:
        return None
    return _sum_cost(_find_tier_prices(model, units.get(INPUT_TOKENS, 0)), units, share)


def calculate_max_cost(
    vendor: Vendor, model: Model | None, operation: Operation[Any]
) -> Decimal | None:
    """Calculate the maximum cost of one request in US dollars; returns None if it is unknown.

    The dearest tier that the input may reach counts, without any discount.
    """
    bound = vendor.bounds.get(type(operation))
    if bound is None or model is None:
        return None
    return calculate_dearest_cost(model, bound.units(operation, model))


def calculate_dearest_cost(model: Model, units: Mapping[str, float] | None) -> Decimal | None:
    """Calculate the cost of units in the dearest tier they may reach; returns None if unknown.

    All input counts as a write to the vendor's prompt cache if that is dearer than plain input.
    """
    if units is None:
        return None
    if not model.tiers:
        return _sum_cost(_raise_input_price(model.prices), units)
    tier_prices = [tier.prices for tier in model.tiers if tier.above < units.get(INPUT_TOKENS, 0)]
    costs = [
        _sum_cost(_raise_input_price(prices), units) for prices in (model.prices, *tier_prices)
    ]
    return None if None in costs else max(cost for cost in costs if cost is not None)


def calculate_time_cost(
    usd_per_s: Decimal, seconds: float, rounding: str = ROUND_HALF_EVEN
) -> Decimal:
    """Calculate the cost of a time in US dollars, to the billionth.

    >>> calculate_time_cost(Decimal("0.0001"), 2.5)
    Decimal('0.000250000')
    """
    return (usd_per_s * _to_decimal(seconds)).quantize(_BILLIONTH, rounding)


def _find_tier_prices(model: Model, input_tokens: float) -> Mapping[str, Decimal]:
    """Return the prices of the tier that an input of `input_tokens` tokens falls in."""
    return next((t.prices for t in reversed(model.tiers) if input_tokens > t.above), model.prices)


def _raise_input_price(prices: Mapping[str, Decimal]) -> Mapping[str, Decimal]:
    """Return the prices with input at the price of a cache write, if that is higher."""
    input_price, write_price = prices.get(INPUT_TOKENS), prices.get(CACHE_WRITE_TOKENS)
    if input_price is None or write_price is None or write_price <= input_price:
        return prices
    return {**prices, INPUT_TOKENS: write_price}


def _sum_cost(
    prices: Mapping[str, Decimal], units: Mapping[str, float], share: Decimal = _ALL
) -> Decimal | None:
    counts = _split_input(prices, units) if units.keys() & _INPUT_PARTS else units
    if not counts:
        return None
    total = _NOTHING
    for unit, count in counts.items():
        if count:
            price = prices.get(unit)
            if price is None:
                return None
            total += price * _to_decimal(count)
    return (total * share).quantize(_BILLIONTH)


def _split_input(prices: Mapping[str, Decimal], units: Mapping[str, float]) -> Mapping[str, float]:
    """Count the parts of the input that have a price of their own apart from the rest of it.

    Input that was read from the cache costs no more than other input, so it counts as other input
    if it has no price. Input that was written to the cache may cost more, so it stays apart: its
    cost is unknown if its price is.
    """
    total = units.get(INPUT_TOKENS, 0.0)
    write_count = min(units.get(CACHE_WRITE_TOKENS, 0.0), total)
    read_count = min(units.get(CACHED_INPUT_TOKENS, 0.0), total - write_count)
    if CACHED_INPUT_TOKENS not in prices:
        read_count = 0.0
    other_units = {unit: count for unit, count in units.items() if unit not in _INPUT_PARTS}
    return other_units | {
        INPUT_TOKENS: total - write_count - read_count,
        CACHED_INPUT_TOKENS: read_count,
        CACHE_WRITE_TOKENS: write_count,
    }


@lru_cache(maxsize=4096)  # the same counts come up for each model that is compared
def _to_decimal(number: float) -> Decimal:
    """Convert a count or a time to the decimal that it is written as."""
    return Decimal(str(number))
