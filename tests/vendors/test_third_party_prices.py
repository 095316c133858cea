"""The price table, compared with a third party's: every model that both know, and every unit."""

from collections.abc import Iterator
from datetime import UTC, datetime, time
from decimal import Decimal

import pytest
from genai_prices import data
from genai_prices.types import ModelInfo, ModelPrice, StartDateConstraint, TieredPrices, Usage
from hypothesis import given
from hypothesis import strategies as st

from tests.vendors.conftest import VENDORS
from toolkit.plugins import Model
from toolkit.plugins.pricing import calculate_cost

MILLION = Decimal(1_000_000)
# Our unit, by the third party's name of its price.
UNITS = {
    "input_mtok": "input_tokens",
    "cache_read_mtok": "cached_input_tokens",
    "cache_write_mtok": "cache_write_tokens",
    "output_mtok": "output_tokens",
}
# Their count, by our unit.
THEIR_COUNTS = {
    "input_tokens": "input_tokens",
    "cached_input_tokens": "cache_read_tokens",
    "cache_write_tokens": "cache_write_tokens",
    "output_tokens": "output_tokens",
}
# Prices of theirs for what no request of ours asks for.
NEVER_ASKED_FOR = {
    "cache_write_1h_mtok": "no request writes to a cache for an hour",
    "web_searches_kcount": "no request offers a search",
    "storage_searches_kcount": "no request offers a search",
    "input_audio_mtok": "no request has a sound in it",
    "cache_audio_read_mtok": "no request has a sound in it",
}
EUROPE = "the third party has one price for all regional profiles, which is that of the US"
# The differences that are explained: by provider, model and our unit.
EXPLAINED = {
    ("aws", model, unit): EUROPE
    for model in (
        "eu.amazon.nova-2-lite-v1:0",
        "eu.amazon.nova-micro-v1:0",
        "apac.amazon.nova-micro-v1:0",
    )
    for unit in ("input_tokens", "cached_input_tokens", "output_tokens")
}


def list_common_models() -> Iterator[tuple[str, Model, ModelInfo]]:
    """List our text models that the third party knows, each with its row there."""
    for provider in data.providers:
        vendor = VENDORS.get(provider.id)
        for model in vendor.models if vendor is not None else ():
            row = provider.find_model(model.id)
            # A model without a price of its own is billed as one of its profiles.
            if row is not None and model.kind == "text" and not is_profiled(provider.id, model):
                yield provider.id, model, row


def is_profiled(provider: str, model: Model) -> bool:
    """Tell whether a model is called by one of its profiles."""
    return any(other.profile_of == model.id for other in VENDORS[provider].models)


COMMON = list(list_common_models())


def list_prices(price: ModelPrice) -> dict[tuple[str, int], Decimal]:
    """List prices of theirs: of a million, by our unit and the input length that they are above."""
    listed: dict[tuple[str, int], Decimal] = {}
    for name, value in vars(price).items():
        if value is None or name in NEVER_ASKED_FOR:
            continue
        tiered = value if isinstance(value, TieredPrices) else TieredPrices(value, [])
        listed[UNITS[name], 0] = tiered.base
        listed |= {(UNITS[name], tier.start): tier.price for tier in tiered.tiers}
    return listed


def list_our_prices(model: Model) -> dict[tuple[str, int], Decimal]:
    """List our prices in the same form."""
    rows = [(0, model.prices), *((tier.above, tier.prices) for tier in model.tiers)]
    return {(unit, above): usd * MILLION for above, prices in rows for unit, usd in prices.items()}


def find_differences(
    provider: str, model: Model, theirs: ModelPrice
) -> dict[tuple[str, int], tuple[Decimal | None, Decimal | None]]:
    """Find the prices that differ or that only one of the two has: ours and theirs."""
    mine, yours = list_our_prices(model), list_prices(theirs)
    return {
        key: (mine.get(key), yours.get(key))
        for key in sorted(mine.keys() | yours.keys())
        if mine.get(key) != yours.get(key) and (provider, model.id, key[0]) not in EXPLAINED
    }


@pytest.mark.parametrize(("provider", "model", "row"), COMMON, ids=[m.id for _, m, _ in COMMON])
def test_agrees_with_the_third_party(provider: str, model: Model, row: ModelInfo) -> None:
    """Given a model that both know, then each price of each unit and each tier is the same."""
    read = datetime.fromisoformat(f"{model.as_of}T12:00").replace(tzinfo=UTC)
    assert not find_differences(provider, model, row.get_prices(read))


@st.composite
def draw_units(draw: st.DrawFn) -> dict[str, int]:
    """Draw the units of a call, of which some input was read from the cache or written to it."""
    parts = [draw(st.integers(0, 400_000)) for _ in range(3)]
    output = draw(st.integers(0, 100_000))
    units = ("input_tokens", "cached_input_tokens", "cache_write_tokens", "output_tokens")
    return dict(zip(units, (sum(parts), *parts[:2], output), strict=True))


@given(units=draw_units())
def test_bills_what_the_third_party_does(units: dict[str, int]) -> None:
    """Given the units of a call, then each model that both know costs the same."""
    for provider, model, row in COMMON:
        if any((provider, model.id, unit) in EXPLAINED for unit in units):
            continue
        priced = {unit: units[unit] for unit in units if unit in model.prices}
        usage = Usage(**{THEIR_COUNTS[unit]: count for unit, count in priced.items()})
        read = datetime.fromisoformat(f"{model.as_of}T12:00").replace(tzinfo=UTC)
        theirs = row.get_prices(read).calc_price(usage)["total_price"]
        ours = calculate_cost(model, priced)
        assert ours == pytest.approx(theirs, abs=Decimal("1e-9")), (provider, model.id)


@pytest.mark.parametrize(("provider", "model", "row"), COMMON, ids=[m.id for _, m, _ in COMMON])
def test_knows_every_change_that_was_announced(provider: str, model: Model, row: ModelInfo) -> None:
    """Given each day from which the third party has other prices, then ours change on it, too."""
    conditions = row.prices if isinstance(row.prices, list) else []
    starts = {
        condition.constraint.start_date
        for condition in conditions
        if isinstance(condition.constraint, StartDateConstraint)
    }
    ahead = {day for day in starts if day.isoformat() > model.as_of}
    assert {change.since for change in model.changes} == ahead
    for day in ahead:
        on_it = datetime.combine(day, time(12), UTC)
        assert not find_differences(provider, model.apply_changes(day), row.get_prices(on_it))


def test_compares_most_models_of_each_provider() -> None:
    """Given both tables, then they have in common all but known models of our providers."""
    compared = {(provider, model.id) for provider, model, _ in COMMON}
    ours = {
        (vendor.id, model.id)
        for vendor in VENDORS.values()
        for model in vendor.models
        if model.kind == "text" and not is_profiled(vendor.id, model)
    }
    assert {provider for provider, _ in ours - compared} <= {"runpod"}


def test_explains_no_difference_that_is_none() -> None:
    """Given each explained difference, then the two tables do differ in it."""
    for provider, model, row in COMMON:
        read = datetime.fromisoformat(f"{model.as_of}T12:00").replace(tzinfo=UTC)
        mine, yours = list_our_prices(model), list_prices(row.get_prices(read))
        for unit in UNITS.values():
            if (provider, model.id, unit) in EXPLAINED:
                assert mine.get((unit, 0)) != yours.get((unit, 0)), (model.id, unit)
