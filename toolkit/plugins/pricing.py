"""The cost of units at a model's list prices: estimates, reservations and bills share it."""

from collections.abc import Mapping
from decimal import ROUND_HALF_EVEN, Decimal
from functools import lru_cache
from typing import Any, Final

from toolkit.contract.choices import OfferedTier
from toolkit.plugins.operations import Operation
from toolkit.plugins.vendor import Model, Vendor

_BILLIONTH = Decimal("1e-9")
_NOTHING = Decimal()
_ALL = Decimal(1)
INPUT_TOKENS = "input_tokens"
# The parts of `input_tokens` that the vendor read from its prompt cache, and wrote to it.
CACHED_INPUT_TOKENS = "cached_input_tokens"
CACHE_WRITE_TOKENS = "cache_write_tokens"
# Other parts of `input_tokens` and `output_tokens`, which cost the same as the rest.
IMAGE_TOKENS, REASONED_TOKENS = "image_tokens", "reasoning_tokens"
_PARTS = frozenset((CACHED_INPUT_TOKENS, CACHE_WRITE_TOKENS, IMAGE_TOKENS, REASONED_TOKENS))
# The service tier that list prices are for.
STANDARD_TIER: Final = "standard"
# The tier of requests that a vendor's batch API carries out.
BATCH_TIER: Final = "batch"


def choose_tier(model: Model | None, asked: OfferedTier) -> OfferedTier:
    """Return the asked service tier, or the standard tier if the model has no price in it.

    >>> choose_tier(Model("m", "text"), "flex")
    'standard'
    """
    return asked if model is not None and _find_share(model, asked) is not None else STANDARD_TIER


def calculate_cost(
    model: Model, units: Mapping[str, float], tier: str = STANDARD_TIER
) -> Decimal | None:
    """Calculate the cost of units in US dollars, to the billionth, by the input's price tier.

    Returns None if a used unit has no known price, or if no units are known: an unknown price is
    never 0. A unit that the vendor does not bill has the price 0 in the table.

    Args:
        tier: the service tier that was billed. The cost is None if the model has no price for it.

    >>> model = Model("m", "text", {"input_tokens": Decimal("0.000001")})
    >>> calculate_cost(model, {"input_tokens": 1000})
    Decimal('0.001000000')
    """
    share = _find_share(model, tier)
    if share is None:
        return None
    return _sum_cost(_find_tier_prices(model, units.get(INPUT_TOKENS, 0)), units, share)


def calculate_max_cost(
    vendor: Vendor,
    model: Model | None,
    operation: Operation[Any],
    service_tier: str = STANDARD_TIER,
) -> Decimal | None:
    """Calculate the maximum cost of one request in US dollars; returns None if it is unknown.

    The dearest price tier that the input may reach counts, without any discount but that of the
    service tier.
    """
    bound = vendor.bounds.get(type(operation))
    if bound is None or model is None:
        return None
    return calculate_dearest_cost(model, bound.units(operation, model), service_tier)


def calculate_dearest_cost(
    model: Model, units: Mapping[str, float] | None, service_tier: str = STANDARD_TIER
) -> Decimal | None:
    """Calculate the cost of units in US dollars, in the dearest tier that their input may reach.

    Returns None if the units, or a price of a used unit, are unknown.

    All input counts as a write to the vendor's prompt cache if that is dearer than plain input.
    """
    share = _find_share(model, service_tier)
    if units is None or share is None:
        return None
    if not model.tiers:
        return _sum_cost(_raise_input_price(model.prices), units, share)
    tier_prices = [tier.prices for tier in model.tiers if tier.above < units.get(INPUT_TOKENS, 0)]
    costs = [
        _sum_cost(_raise_input_price(prices), units, share)
        for prices in (model.prices, *tier_prices)
    ]
    return None if None in costs else max(cost for cost in costs if cost is not None)


def calculate_time_cost(
    usd_per_s: Decimal, seconds: float, rounding: str = ROUND_HALF_EVEN
) -> Decimal:
    """Calculate the cost of some seconds at a price per second in US dollars, to the billionth.

    >>> calculate_time_cost(Decimal("0.0001"), 2.5)
    Decimal('0.000250000')
    """
    return (usd_per_s * _to_decimal(seconds)).quantize(_BILLIONTH, rounding)


def _find_share(model: Model, service_tier: str) -> Decimal | None:
    """Return the factor by which a service tier multiplies list prices; None if it has no price."""
    if service_tier == BATCH_TIER:
        return model.batch
    return _ALL if service_tier == STANDARD_TIER else model.service_tiers.get(service_tier)


def _find_tier_prices(model: Model, input_tokens: float) -> Mapping[str, Decimal]:
    """Return the prices for an input of this length, which may fall in a dearer price tier."""
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
    counts = _split_input(prices, units) if units.keys() & _PARTS else units
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
    """Return the units with the input split into cache reads, cache writes and the rest.

    Input that was read from the cache costs no more than other input, so it counts as other input
    if it has no price. Input that was written to the cache may cost more, so it stays apart: its
    cost is unknown if its price is. Parts without prices of their own are left out.
    """
    total = units.get(INPUT_TOKENS, 0.0)
    write_count = min(units.get(CACHE_WRITE_TOKENS, 0.0), total)
    read_count = min(units.get(CACHED_INPUT_TOKENS, 0.0), total - write_count)
    if CACHED_INPUT_TOKENS not in prices:
        read_count = 0.0
    other_units = {unit: count for unit, count in units.items() if unit not in _PARTS}
    return other_units | {
        INPUT_TOKENS: total - write_count - read_count,
        CACHED_INPUT_TOKENS: read_count,
        CACHE_WRITE_TOKENS: write_count,
    }


@lru_cache(maxsize=4096)  # the same counts come up for each model that is compared
def _to_decimal(number: float) -> Decimal:
    """Convert a number to the decimal with the digits that Python prints, so 0.1 is exactly 0.1."""
    return Decimal(str(number))
