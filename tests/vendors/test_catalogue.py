"""The vendors as declared: found without a list, priced from one table."""

import logging
from datetime import date
from decimal import Decimal
from importlib.metadata import EntryPoint
from typing import Any

import pytest

from tests.vendors.conftest import VENDORS, access
from toolkit import vendors
from toolkit.plugins import ImageRequest, Model, Operation, SpeechRequest, TextRequest, Vendor
from toolkit.plugins.pricing import calculate_cost
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
