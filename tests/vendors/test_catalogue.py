"""The vendors as declared: found without a list, priced from one table."""

import logging
from datetime import date
from decimal import Decimal
from importlib.metadata import EntryPoint
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.vendors.conftest import VENDORS, access
from toolkit import vendors
from toolkit.plugins import ImageRequest, Model, Operation, SpeechRequest, TextRequest, Vendor
from toolkit.plugins.pricing import calculate_cost, calculate_dearest_cost
from toolkit.plugins.vendor import PriceTier
from toolkit.vendors import load_vendors

HALF = Decimal("0.5")


@pytest.mark.parametrize(
    ("vendor", "label", "kinds"),
    [
        ("openai", "V1", {"text"}),
        ("anthropic", "V2", {"text"}),
        ("google", "V3", {"text"}),
        ("minimax", "V4", {"text", "speech", "clone"}),
        ("elevenlabs", "V5", {"speech", "clone"}),
        ("aws", "V6", {"text"}),
        ("runpod", "V7", {"image", "text"}),
    ],
)
def test_built_in_vendors(vendor: str, label: str, kinds: set[str]) -> None:
    """Given the package alone, each vendor offers what the specification's table says."""
    declared = VENDORS[vendor]
    assert (declared.id, declared.label) == (vendor, label)
    assert {operation.kind for operation in declared.operations} == kinds
    odd = {"google": "GEMINI_API_KEY", "aws": "AWS_BEARER_TOKEN_BEDROCK"}
    assert declared.variable == odd.get(vendor, f"{vendor.upper()}_API_KEY")
    assert all(url.startswith("https://") for url in declared.base_urls.values())


@pytest.mark.parametrize("vendor", sorted(VENDORS))
def test_every_kind_has_one_default_model(vendor: str) -> None:
    """Given a vendor, each operation it offers has a model, and exactly one is the default."""
    declared = VENDORS[vendor]
    for operation in declared.operations:
        offered = [model for model in declared.models if model.kind == operation.kind]
        assert [model.default for model in offered].count(True) == 1
    assert {m.kind for m in declared.models} == {o.kind for o in declared.operations}


@pytest.mark.parametrize("vendor", sorted(v.id for v in VENDORS.values() if not v.wire))
def test_prices_say_where_they_are_from(vendor: str) -> None:
    """Given the price table, every row has a source, a date, and amounts that can be paid."""
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
def test_list_prices(vendor: str, kind: str, units: dict[str, float], usd: str | None) -> None:
    """Given what was billed, the default model's price is the table's; unknown stays unknown."""
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
def test_price(prices: dict[str, Decimal], units: dict[str, float], usd: Decimal | None) -> None:
    """Given units, the price is exact to the billionth, and none unless every used unit has one."""
    found = calculate_cost(Model("m", "text", prices), units)
    assert found == usd
    assert found is None or found.as_tuple().exponent == -9


@pytest.mark.parametrize(
    ("tokens", "price"),
    [(100, "1e-6"), (101, "2e-6"), (1_000, "2e-6"), (1_001, "3e-6"), (5_000, "3e-6")],
)
def test_the_highest_tier_below_an_input_is_its_price(tokens: int, price: str) -> None:
    """Given two tiers, then all of an input has the price of the highest that it is longer than."""
    tiers = tuple(
        PriceTier(above, {"input_tokens": Decimal(usd)})
        for above, usd in ((100, "2e-6"), (1_000, "3e-6"))
    )
    model = Model("m", "text", {"input_tokens": Decimal("1e-6")}, tiers=tiers)
    assert calculate_cost(model, {"input_tokens": tokens}) == tokens * Decimal(price)


TEXT_UNITS = ("input_tokens", "cached_input_tokens", "cache_write_tokens", "output_tokens")


@given(bound=st.integers(1, 2_000_000), used=st.integers(0, 2_000_000), data=st.data())
def test_no_call_costs_more_than_its_bound(bound: int, used: int, data: st.DataObject) -> None:
    """Given at most so many tokens, then no text model's call costs more, at whatever length."""
    used = min(used, bound)
    parts = data.draw(st.tuples(st.integers(0, used), st.integers(0, used)))
    units = dict(zip(TEXT_UNITS, (used, *parts, 1_000), strict=True))
    bounds = {"input_tokens": bound, "output_tokens": 1_000}
    for vendor in VENDORS.values():
        for model in vendor.models:
            if model.kind == "text":
                cost = calculate_cost(model, units)
                most = calculate_dearest_cost(model, bounds)
                assert cost is None or most is None or cost <= most, model.id


def test_estimates_of_the_defaults_are_known() -> None:
    """Given the default models, work can be estimated before it is done, as budgets need."""
    cases: list[tuple[str, Operation[Any]]] = [
        ("openai", TextRequest(prompt="x")),
        ("minimax", TextRequest(prompt="x")),
        ("minimax", SpeechRequest(text="x")),
        ("runpod", ImageRequest(prompt="x")),
    ]
    for vendor, operation in cases:
        model = VENDORS[vendor].find_default_model(operation.kind)
        assert model is not None
        assert (calculate_cost(model, operation.units()) or 0) > 0


THIRD = Vendor("third", "Third", "THIRD_API_KEY", {}, {}, ())
COPY = Vendor("openai", "Not theirs", "X", {}, {}, ())
broken = "not a vendor"


def test_entry_points_add_vendors(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Given installed vendors, good ones are added; broken ones and copies are told, not taken."""
    points = [
        EntryPoint(name, f"{__name__}:{target}", vendors.GROUP)
        for name, target in (
            ("third", "THIRD"),
            ("copy", "COPY"),
            ("broken", "broken"),
            ("missing", "NOTHING"),
        )
    ]
    monkeypatch.setattr(vendors, "entry_points", lambda group: points)
    with caplog.at_level(logging.WARNING):
        found = load_vendors()
    assert found["third"] is THIRD
    assert found["openai"].title == "OpenAI and compatible servers"
    assert len(found) == len(VENDORS) + 1
    assert [record.args for record in caplog.records] == [
        ("broken",),
        ("copy",),
        ("missing", "AttributeError"),
    ]


def test_access_hides_its_secret() -> None:
    """Given an access, its repr shows the model alone."""
    assert repr(access("openai", "text")) == "Access(model='gpt-6-luna')"
