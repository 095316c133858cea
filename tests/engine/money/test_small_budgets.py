"""Small budgets: a one-line answer fits, at every provider."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from toolkit import Client
from toolkit.engine import Registry
from toolkit.plugins import TextRequest

ASK = {"objective": "Name the capital of France in one word."}
SMALL = 0.05
PREMIUM: dict[str, Any] = {"provider": "google", "optimize_for": "quality"}
# Each provider that generates text at its own address.
PROVIDERS = sorted(
    vendor.id for vendor in Registry.load().vendors.values() if TextRequest in vendor.operations
)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A client in the sandbox, with every vendor connected."""
    with Client.local(tmp_path_factory.mktemp("small"), sandbox=True) as client:
        yield client


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_one_line_answer_fits_a_small_budget(client: Client, provider: str) -> None:
    """Given a budget of five cents, then each provider's default model answers in one line."""
    run = client.runs.create("llm.generate", ASK, provider=provider, max_cost_usd=SMALL).wait()
    assert run.status == "completed", run.record.error
    assert run.record.provider == provider
    assert run.record.cost_incurred_usd <= (run.record.reservation_usd or 0) <= SMALL


def test_a_premium_model_fits_a_small_budget(client: Client) -> None:
    """Given the policy `quality` and five cents, then Google's premium model answers."""
    run = client.runs.create("llm.generate", ASK, **PREMIUM, max_cost_usd=SMALL).wait()
    assert run.status == "completed", run.record.error
    assert run.record.attempts[0].model.startswith("gemini-4-argon")
    assert run.record.reservation_usd <= SMALL


def test_reserves_more_for_a_larger_answer(client: Client) -> None:
    """Given a higher cap, then the reservation grows, and stays below the model's limit."""
    bounds = []
    for cap in (256, 4_096, 16_384):
        route = client.route("llm.generate", {**ASK, "max_tokens": cap}, provider="google")
        bounds.append(route.record.reservation_usd or 0.0)
    assert bounds[0] < bounds[1] < bounds[2] < 0.1


@pytest.mark.parametrize(("day", "rise"), [("2026-11-30", 1), ("2026-12-01", 2)])
def test_applies_an_announced_price_from_its_day(
    client: Client, monkeypatch: pytest.MonkeyPatch, day: str, rise: int
) -> None:
    """Given an announced price rise, then a running engine applies it from its day on."""
    for module in (
        "provider_directory",
        "execution.attempts",
        "infrastructure.catalog",
        "routing.router",
    ):
        monkeypatch.setattr(f"toolkit.engine.{module}.now", lambda: datetime.fromisoformat(day))
    record = client.runs.create("llm.generate", ASK, **PREMIUM).wait().record
    usage = record.usage
    usd = (usage["input_tokens"] * 2 + usage["output_tokens"] * 10) / 1e6
    assert record.cost_usd == pytest.approx(usd * rise)
    assert record.reservation_usd >= record.cost_usd
    listed = {model.record.model: model.record for model in client.catalog.models()}[
        "gemini-4-argon"
    ]
    assert listed.prices_usd["output_tokens"] == pytest.approx(1e-5 * rise)
    assert len(listed.price_changes) == 2 - rise
