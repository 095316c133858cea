"""Declarations of the vendors, and their prices."""

import logging
from datetime import date
from decimal import Decimal
from importlib.metadata import EntryPoint

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.vendors.conftest import VENDORS, access
from toolkit import vendors
from toolkit.plugins import ImageRequest, Model, Vendor
from toolkit.plugins.pricing import calculate_cost, calculate_dearest_cost
from toolkit.plugins.vendor import PriceTier
from toolkit.vendors import load_vendors

HALF = Decimal("0.5")


@pytest.mark.parametrize(
    ("vendor", "label", "kinds"),
    [
        ("openai", "V1", {"text", "embedding", "transcription"}),
        ("anthropic", "V2", {"text"}),
        ("google", "V3", {"text", "embedding", "transcription"}),
        ("minimax", "V4", {"text", "embedding", "speech", "clone"}),
        ("elevenlabs", "V5", {"speech", "clone", "transcription"}),
        ("aws", "V6", {"text", "embedding", "rerank"}),
        ("runpod", "V7", {"image", "text"}),
    ],
)
def test_built_in_vendors_match_the_specification(vendor: str, label: str, kinds: set[str]) -> None:
    """Given the package alone, then each vendor offers the kinds of the specification's table."""
    declared = VENDORS[vendor]
    assert (declared.id, declared.label) == (vendor, label)
    assert {operation.kind for operation in declared.operations} == kinds
    odd = {"google": "GEMINI_API_KEY", "aws": "AWS_BEARER_TOKEN_BEDROCK"}
    assert declared.variable == odd.get(vendor, f"{vendor.upper()}_API_KEY")
    assert all(url.startswith("https://") for url in declared.base_urls.values())


@pytest.mark.parametrize("vendor", sorted(VENDORS))
def test_every_kind_has_one_default_model(vendor: str) -> None:
    """Given a vendor, then each of its operations has exactly one default model."""
    declared = VENDORS[vendor]
    for operation in declared.operations:
        offered = [model for model in declared.models if model.kind == operation.kind]
        assert [model.default for model in offered].count(True) == 1
    assert {m.kind for m in declared.models} == {o.kind for o in declared.operations}


@pytest.mark.parametrize("vendor", sorted(v.id for v in VENDORS.values() if not v.wire))
def test_prices_have_a_source(vendor: str) -> None:
    """Given the price table, then each row has a source, a date and valid amounts."""
    for model in VENDORS[vendor].models:
        assert model.source
        assert date.fromisoformat(model.as_of).year >= 2026
        assert all(amount >= 0 for amount in model.prices.values())


@pytest.mark.parametrize(
    ("vendor", "kind", "units", "usd"),
    [
        ("minimax", "text", {"input_tokens": 1e5, "output_tokens": 1e5}, "0.15"),
        ("minimax", "text", {"input_tokens": 1e6, "output_tokens": 1e6}, "3"),
        ("minimax", "speech", {"characters": 1000.0}, "0.06"),
        ("minimax", "clone", {"voices": 1.0}, None),
        ("minimax", "clone", {"voices": 0.0}, "0"),
        ("openai", "text", {"input_tokens": 1000.0, "output_tokens": 100.0}, "0.00015"),
        ("runpod", "image", ImageRequest(prompt="x").units(), "0.02097152"),
        ("runpod", "image", {"gpu_seconds": 4.0}, None),
    ],
)
def test_default_models_have_list_prices(
    vendor: str, kind: str, units: dict[str, float], usd: str | None
) -> None:
    """Given billed units, then the price is that of the table; an unknown price is None."""
    model = VENDORS[vendor].find_default_model(kind)
    assert model is not None
    assert calculate_cost(model, units) == (None if usd is None else Decimal(usd))


@pytest.mark.parametrize(
    ("prices", "units", "usd"),
    [
        ({"a": HALF}, {"a": 3.0}, Decimal("1.5")),
        ({"a": HALF, "b": Decimal(0)}, {"a": 1.0, "b": 9.0}, HALF),
        ({"a": HALF}, {"a": 1.0, "b": 0.0}, HALF),
        ({"a": HALF}, {"a": 1.0, "b": 0.1}, None),
        ({}, {"a": 1.0}, None),
        ({"a": HALF}, {}, None),
        ({"a": Decimal("1e-10")}, {"a": 1.0}, Decimal(0)),
        ({"a": Decimal("0.1")}, {"a": 3.0}, Decimal("0.3")),
    ],
)
def test_price_is_exact(
    prices: dict[str, Decimal], units: dict[str, float], usd: Decimal | None
) -> None:
    """Given units, then the price is exact to a billionth, or None if a unit has none."""
    cost = calculate_cost(Model("m", "text", prices), units)
    assert cost == usd
    assert cost is None or cost.as_tuple().exponent == -9


@pytest.mark.parametrize(
    ("tokens", "price"),
    [(100, "1e-6"), (101, "2e-6"), (1_000, "2e-6"), (1_001, "3e-6"), (5_000, "3e-6")],
)
def test_prices_an_input_by_its_tier(tokens: int, price: str) -> None:
    """Given two tiers, then all of an input has the price of the highest tier below its length."""
    tiers = tuple(
        PriceTier(above, {"input_tokens": Decimal(usd)})
        for above, usd in ((100, "2e-6"), (1_000, "3e-6"))
    )
    model = Model("m", "text", {"input_tokens": Decimal("1e-6")}, tiers=tiers)
    assert calculate_cost(model, {"input_tokens": tokens}) == tokens * Decimal(price)


TEXT_UNITS = ("input_tokens", "cached_input_tokens", "cache_write_tokens", "output_tokens")


@given(bound=st.integers(1, 2_000_000), count=st.integers(0, 2_000_000), data=st.data())
def test_no_call_costs_more_than_its_bound(bound: int, count: int, data: st.DataObject) -> None:
    """Given a bound on the tokens, then no call of a text model costs more than the bound."""
    count = min(count, bound)
    parts = data.draw(st.tuples(st.integers(0, count), st.integers(0, count)))
    units = dict(zip(TEXT_UNITS, (count, *parts, 1_000), strict=True))
    bounds = {"input_tokens": bound, "output_tokens": 1_000}
    for vendor in VENDORS.values():
        for model in vendor.models:
            if model.kind == "text":
                cost = calculate_cost(model, units)
                limit = calculate_dearest_cost(model, bounds)
                assert cost is None or limit is None or cost <= limit, model.id


THIRD = Vendor("third", "Third", "THIRD_API_KEY", {}, {}, ())
COPY = Vendor("openai", "Not theirs", "X", {}, {}, ())
BROKEN = "not a vendor"
OTHER_WIRE = Vendor("lonely", "Lonely", "LONELY_API_KEY", {}, {}, (), wire="nobody")


def test_entry_points_add_vendors(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Given entry points, then valid vendors are added; broken ones and duplicates are logged."""
    points = [
        EntryPoint(name.lower(), f"{__name__}:{name}", vendors.GROUP)
        for name in ("THIRD", "COPY", "BROKEN", "MISSING", "OTHER_WIRE")
    ]
    monkeypatch.setattr(vendors, "entry_points", lambda group: points)
    with caplog.at_level(logging.WARNING):
        loaded = load_vendors()
    assert loaded["third"] is THIRD
    assert loaded["openai"].title == "OpenAI and compatible servers"
    assert len(loaded) == len(VENDORS) + 1
    assert [record.args for record in caplog.records] == [
        ("broken",),
        ("copy",),
        ("missing", "AttributeError"),
        ("other_wire",),
    ]


def test_access_hides_its_secret() -> None:
    """Given an access, then its repr shows only the model."""
    assert repr(access("openai", "text")) == "Access(model='gpt-6-luna')"
