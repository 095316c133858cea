"""Vendors declared to speak OpenAI's wire: what is taken, refused, loaded and simulated."""

import logging
from decimal import Decimal
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from tests.vendors.conftest import TEXT, VENDORS
from toolkit import Client, vendors
from toolkit.engine import Registry
from toolkit.plugins import Model, TextRequest, Vendor, openai_compatible
from toolkit.plugins.pricing import calculate_max_cost
from toolkit.sandbox import CompatibleVendor, Faults
from toolkit.vendors import load_vendors

ROW: Any = {"input_tokens": "2", "output_tokens": "8", "output_limit": 1000}
DECLARED: dict[str, Any] = {
    "id": "lantern",
    "variable": "LANTERN_API_KEY",
    "base_url": "https://lantern.example/openai/v2/",
    "models": {"wick": ROW, "org/flame": {**ROW, "reasons": True, "quality": 2}},
}
LANTERN = openai_compatible(**DECLARED)
OTHER_WIRE = Vendor("lonely", "Lonely", "LONELY_API_KEY", {}, {}, (), wire="nobody")
# It has a wire of its own, which no sandbox knows.
STRANGER = Vendor(
    "stranger",
    "Stranger",
    "STRANGER_KEY",
    {"api": "https://stranger.example"},
    VENDORS["openai"].operations,
    (Model("odd", "text", default=True),),
)


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> dict[str, Vendor]:
    """The vendors, with those of this file installed."""
    points = [
        EntryPoint(name.lower(), f"{__name__}:{name}", vendors.GROUP)
        for name in ("LANTERN", "OTHER_WIRE", "STRANGER")
    ]
    monkeypatch.setattr(vendors, "entry_points", lambda group: points)
    return load_vendors()


def test_the_declaration_is_a_vendor() -> None:
    """Given four facts, then name, prices, limits and the default model follow from them."""
    assert (LANTERN.id, LANTERN.title, LANTERN.label) == ("lantern", "lantern", None)
    assert LANTERN.base_urls == {"api": "https://lantern.example/openai/v2"}
    wick, flame = LANTERN.models
    assert (wick.default, flame.default, flame.quality) == (True, False, 2)
    assert wick.prices == {"input_tokens": Decimal("2e-6"), "output_tokens": Decimal("8e-6")}
    named = openai_compatible(**{**DECLARED, "models": {"a": ROW, "b": {**ROW, "default": True}}})
    assert [model.default for model in named.models] == [False, True]


def test_a_cap_bounds_only_what_it_is_known_to_bound() -> None:
    """Given a model that reasons, then its own limit is what may be billed; else the cap is."""
    wick, flame = LANTERN.models
    at_cap, at_limit = (calculate_max_cost(LANTERN, m, TEXT) for m in (wick, flame))
    assert at_cap is not None
    assert at_limit is not None
    assert at_limit - at_cap == Decimal("8e-6") * (1000 - TEXT.max_tokens - 16)
    unlimited = openai_compatible(**{**DECLARED, "models": {"m": {"reasons": True}}})
    assert calculate_max_cost(unlimited, unlimited.models[0], TEXT) is None


@pytest.mark.parametrize(
    "change",
    [
        {"id": "Lantern"},
        {"id": "lan-tern"},
        {"id": ""},
        {"base_url": "lantern.example"},
        {"models": {}},
        {"models": {"wick": {"price": "1"}}},
    ],
)
def test_mistakes_are_refused(change: dict[str, Any]) -> None:
    """Given a declaration that cannot be meant, then it says so as it is made."""
    with pytest.raises(ValueError, match=r"cannot be|has no models|unknown field"):
        openai_compatible(**{**DECLARED, **change})


def test_it_is_loaded_with_the_flows_of_its_wire(
    installed: dict[str, Vendor], caplog: pytest.LogCaptureFixture
) -> None:
    """Given an installed one, then it has OpenAI's flows; a wire of nobody's is told and left."""
    found = installed["lantern"]
    assert found.operations == {TextRequest: VENDORS["openai"].operations[TextRequest]}
    assert found.probe is VENDORS["openai"].probe
    assert "lonely" not in installed
    with caplog.at_level(logging.WARNING):
        load_vendors()
    assert [record.args for record in caplog.records] == [("other_wire",)]


@pytest.mark.usefixtures("installed")
def test_the_sandbox_serves_it_and_no_stranger(tmp_path: Path) -> None:
    """Given the sandbox, then it is connected by its own name; a vendor without a wire is not."""
    faults = Faults(vendors=["lantern"])
    faults.fail("lantern", status=401, times=1)
    with Client.local(tmp_path, faults=faults, registry=Registry.load()) as client:
        connected = {one.id: one.record.connected for one in client.providers.list()}
        assert (connected["lantern"], connected["stranger"]) == (True, False)
        objective = {"objective": "A line on tides"}
        refused = client.runs.create("llm.generate", objective, provider="lantern")
        assert refused.wait(check=False).record.error.message.startswith("lantern did not accept")
        run = client.runs.create("llm.generate", objective, provider="lantern").wait()
        used = run.record.usage
        asked = 2 * used["input_tokens"] + 8 * used["output_tokens"]
        assert run.cost_usd == pytest.approx(asked / 1e6)
        (connection,) = [one for one in client.connections.list() if one.provider == "lantern"]
        tried = client.connections.test(connection.id).record
        assert (tried.accepted, tried.models) == (True, ["wick-sandbox", "org/flame-sandbox"])
        faults.fail("lantern", status=429)
        with pytest.raises(ValueError, match="Did you mean 'lantern'"):
            faults.fail("lanten", status=429)
    assert {call.vendor for call in faults.calls} == {"lantern"}
    assert {call.path for call in faults.calls} == {
        "/openai/v2/chat/completions",
        "/openai/v2/models",
    }


@pytest.mark.parametrize(("id", "wire"), [("openai", "openai"), ("lantern", "aws")])
def test_the_cloud_takes_only_what_it_can_serve(id: str, wire: str) -> None:
    """Given a name that is taken, or a wire that has no other speakers, then it is refused."""
    with pytest.raises(ValueError, match="cannot be"):
        CompatibleVendor(id, wire, "key", ())
