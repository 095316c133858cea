"""The price table, compared with that of a third party, for each model in both."""

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
THEIR_COUNTS = {unit: name.replace("mtok", "tokens") for name, unit in UNITS.items()}
# Their prices of features that none of our requests uses.
NEVER_ASKED_FOR = {
    "cache_write_1h_mtok": "no request writes to a cache for an hour",
    "web_searches_kcount": "no request offers a search",
    "storage_searches_kcount": "no request offers a search",
    "input_audio_mtok": "no request has a sound in it",
    "cache_audio_read_mtok": "no request has a sound in it",
}
THEIR_IDS = {"x-ai": "xai"}
# Vendors that sell the models of another, by a global endpoint at the other's list prices.
RESOLD, AT_LIST_PRICE = {"openai": "azure", "google": "vertex"}, "global."
PEAK = "the third party's price at noon is that of the hours outside the peak"
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
} | {
    ("deepseek", model, unit): PEAK
    for model in ("deepseek-flash", "deepseek-v4-pro")
    for unit in ("input_tokens", "cached_input_tokens", "output_tokens")
}


def list_common_models() -> Iterator[tuple[str, Model, ModelInfo]]:
    """List our text models that the third party has, each with its row there."""
    for provider in data.providers:
        vendor_id = THEIR_IDS.get(provider.id, provider.id)
        vendor = VENDORS.get(vendor_id)
        for model in vendor.models if vendor is not None else ():
            row = provider.find_model(model.id)
            # A model without a price of its own is billed as one of its profiles.
            if row is not None and model.kind == "text" and not is_profiled(vendor_id, model):
                yield vendor_id, model, row
        reseller = RESOLD.get(vendor_id)
        for model in VENDORS[reseller].models if reseller else ():
            row = provider.find_model(model.profile_of) if is_at_list_price(model) else None
            if row is not None and model.kind == "text":
                yield reseller or "", model, row


def is_at_list_price(model: Model) -> bool:
    """Return True if a model is one of another vendor, at the price of that vendor's list."""
    return model.id.startswith(AT_LIST_PRICE)


def is_profiled(provider: str, model: Model) -> bool:
    """Return True if a model is called by one of its profiles."""
    return any(candidate.profile_of == model.id for candidate in VENDORS[provider].models)


COMMON = list(list_common_models())


def list_prices(price: ModelPrice) -> dict[tuple[str, int], Decimal]:
    """List their prices per million, by our unit and the input length of the tier."""
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


def find_differences(model: Model, theirs: ModelPrice) -> dict[tuple[str, int], object]:
    """Find the prices that differ, or that only one of the two tables has: ours and theirs."""
    our_prices, their_prices = list_our_prices(model), list_prices(theirs)
    return {
        key: (our_prices.get(key), their_prices.get(key))
        for key in our_prices.keys() | their_prices.keys()
        if our_prices.get(key) != their_prices.get(key)
    }


@pytest.mark.parametrize(("provider", "model", "row"), COMMON, ids=[m.id for _, m, _ in COMMON])
def test_agrees_with_the_third_party(provider: str, model: Model, row: ModelInfo) -> None:
    """Given a model in both tables, then exactly the explained prices differ."""
    read = datetime.fromisoformat(f"{model.as_of}T12:00").replace(tzinfo=UTC)
    explained = {(unit, 0) for name, id, unit in EXPLAINED if (name, id) == (provider, model.id)}
    differences = find_differences(model, row.get_prices(read))
    assert differences.keys() == explained, differences


COUNT = st.integers(0, 400_000)


@given(fresh=COUNT, cached=COUNT, written=COUNT, output=COUNT)
def test_bills_the_same_as_the_third_party(
    fresh: int, cached: int, written: int, output: int
) -> None:
    """Given the tokens of a call, then each model in both tables costs the same."""
    counts = (fresh + cached + written, cached, written, output)
    units = dict(zip(THEIR_COUNTS, counts, strict=True))
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
def test_has_every_announced_change(provider: str, model: Model, row: ModelInfo) -> None:
    """Given each day on which the third party's prices change, then ours change on it, too."""
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
        assert not find_differences(model.apply_changes(day), row.get_prices(on_it))


def test_compares_most_models_of_each_provider() -> None:
    """Given both tables, then only models of known providers are missing there."""
    compared = {(provider, model.id) for provider, model, _ in COMMON}
    ours = {
        (vendor.id, model.id)
        for vendor in VENDORS.values()
        for model in vendor.models
        if model.kind == "text" and not is_profiled(vendor.id, model)
        if vendor.id not in RESOLD.values() or is_at_list_price(model)
    }
    assert {provider for provider, _ in ours - compared} <= {"runpod", "ollama", "vllm"}


def test_prices_of_each_hour_are_those_of_the_third_party() -> None:
    """Given DeepSeek's peak hours, then our prices in and outside of them are the third party's."""
    hours = VENDORS["deepseek"].dialect.peak_hours
    rows = [(model, row) for provider, model, row in COMMON if provider == "deepseek"]
    assert len(rows) == 2
    for model, row in rows:
        for hour in range(24):
            theirs = list_prices(row.get_prices(datetime(2026, 11, 29, hour, 30, tzinfo=UTC)))
            is_peak = any(start <= hour < end for start, end in hours)
            share = 1 if is_peak else model.service_tiers["off_peak"]
            ours = {key: usd * share for key, usd in list_our_prices(model).items()}
            assert ours == theirs, (model.id, hour)


def test_transcripts_have_the_third_partys_prices() -> None:
    """Given a model of transcripts that the third party has, then an hour has the same price."""
    hours = {}
    for provider in data.providers:
        vendor = VENDORS.get(provider.id)
        for model in vendor.models if vendor is not None else ():
            row = provider.find_model(model.id)
            if row is None or model.kind != "transcription" or not model.prices["seconds"]:
                continue
            assert isinstance(row.prices, ModelPrice)
            hours[model.id] = row.prices.input_audio_hours
            assert calculate_cost(model, {"seconds": 3_600}) == row.prices.input_audio_hours
    assert {"whisper-1", "gpt-transcribe"} <= hours.keys()
