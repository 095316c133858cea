"""Vendors that are declared to use OpenAI's wire."""

from decimal import Decimal
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import Any

import pytest

from tests.support.recordings import make_silent_wav
from tests.vendors.conftest import TEXT, VENDORS
from toolkit import Client, vendors
from toolkit.engine import Registry
from toolkit.engine.routing import registry
from toolkit.plugins import Model, Vendor, openai_compatible
from toolkit.plugins.pricing import calculate_max_cost
from toolkit.sandbox import CompatibleVendor, Faults

ROW: Any = {"input_tokens": "2", "output_tokens": "8", "output_limit": 1000}
DECLARED: dict[str, Any] = {
    "id": "lantern",
    "variable": "LANTERN_API_KEY",
    "base_url": "https://lantern.example/openai/v2/",
    "models": {"wick": ROW, "org/flame": {**ROW, "reasons": True, "quality": 2}},
}
LANTERN = openai_compatible(**DECLARED)
# A vendor that only transcribes, by OpenAI's wire.
SCRIBE = Vendor(
    "scribe",
    "Scribe",
    "SCRIBE_KEY",
    {"api": "https://scribe.example/v1"},
    {},
    (Model("whisper-large", "transcription", {"seconds": Decimal("0.00001")}, default=True),),
    wire="openai",
)
# A vendor with a wire of its own, which the sandbox does not simulate.
STRANGER = Vendor(
    "stranger",
    "Stranger",
    "STRANGER_KEY",
    {"api": "https://stranger.example"},
    VENDORS["openai"].operations,
    (Model("odd", "text", default=True),),
)


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the vendors of this file as entry points."""
    points = [
        EntryPoint(name.lower(), f"{__name__}:{name}", vendors.GROUP)
        for name in ("LANTERN", "SCRIBE", "STRANGER")
    ]
    monkeypatch.setattr(registry, "entry_points", lambda: EntryPoints(points))


def test_declares_a_vendor() -> None:
    """Given a declaration, then it has name, prices, limits and a default model."""
    assert (LANTERN.id, LANTERN.title, LANTERN.label) == ("lantern", "lantern", None)
    assert LANTERN.base_urls == {"api": "https://lantern.example/openai/v2"}
    wick, flame = LANTERN.models
    assert (wick.default, flame.default, flame.quality) == (True, False, 2)
    assert wick.prices == {"input_tokens": Decimal("2e-6"), "output_tokens": Decimal("8e-6")}
    models = {"a": ROW, "b": {**ROW, "default": True}}
    vendor = openai_compatible(**{**DECLARED, "models": models})
    assert [model.default for model in vendor.models] == [False, True]


def test_reasoning_model_is_bounded_by_its_own_limit() -> None:
    """Given a model that reasons, then its own limit bounds the cost; else the request's cap."""
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
def test_rejects_an_invalid_declaration(change: dict[str, Any]) -> None:
    """Given an invalid declaration, then it raises an error."""
    with pytest.raises(ValueError, match=r"cannot be|has no models|unknown field"):
        openai_compatible(**{**DECLARED, **change})


@pytest.mark.usefixtures("installed")
def test_sandbox_serves_a_compatible_vendor(tmp_path: Path) -> None:
    """Given the sandbox, then the vendor is connected; a vendor without a wire is not."""
    faults = Faults(vendors=["lantern"])
    faults.fail("lantern", status=401, times=1)
    with Client.local(tmp_path, faults=faults, registry=Registry.load()) as client:
        connected = {p.id: p.record.connected for p in client.providers.list()}
        assert (connected["lantern"], connected["stranger"]) == (True, False)
        objective = {"objective": "A line on tides"}
        refused = client.runs.create("llm.generate", objective, provider="lantern")
        assert refused.wait(check=False).record.error.message.startswith("lantern did not accept")
        run = client.runs.create("llm.generate", objective, provider="lantern").wait()
        usage = run.record.usage
        cost = (2 * usage["input_tokens"] + 8 * usage["output_tokens"]) / 1e6
        assert run.cost_usd == pytest.approx(cost)
        (connection,) = [c for c in client.connections.list() if c.provider == "lantern"]
        tried = client.connections.test(connection.id).record
        assert (tried.accepted, tried.models) == (True, ["wick-sandbox", "org/flame-sandbox"])
        faults.fail("lantern", status=429)
        with pytest.raises(ValueError, match="Did you mean 'lantern'"):
            faults.fail("lanten", status=429)
    assert {call.vendor for call in faults.calls} == {"lantern"}
    paths = {call.path for call in faults.calls}
    assert paths == {"/openai/v2/chat/completions", "/openai/v2/models"}


def test_cloud_rejects_a_taken_name() -> None:
    """Given the name of a wire of the cloud, then no other vendor can have it."""
    with pytest.raises(ValueError, match="cannot be"):
        CompatibleVendor("openai", "key", ())


@pytest.mark.usefixtures("installed")
def test_a_compatible_vendor_transcribes_under_a_budget(tmp_path: Path) -> None:
    """Given a model of transcripts at a vendor of this wire, then flow and bound are the wire's."""
    with Client.local(tmp_path, sandbox=True, registry=Registry.load()) as client:
        run = client.transcribe(make_silent_wav(20), provider="scribe", max_cost_usd=0.001)
        assert (run.provider, run.model) == ("scribe", "whisper-large")
        assert run.segments[0].end_s == 20
        assert run.cost_usd == pytest.approx(run.reservation_usd)
