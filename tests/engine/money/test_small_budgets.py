"""Small budgets: a one-line answer fits in, whichever provider gives it."""

from collections.abc import Iterator
from datetime import datetime

import pytest

from toolkit import Client
from toolkit.engine import Registry
from toolkit.plugins import TextRequest

ASK = {"objective": "Name the capital of France in one word."}
SMALL = 0.05
# Every provider that generates text at an address of its own.
PROVIDERS = sorted(
    vendor.id for vendor in Registry.load().vendors.values() if TextRequest in vendor.operations
)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A client in the sandbox, with every vendor connected."""
    with Client.local(tmp_path_factory.mktemp("small"), sandbox=True) as opened:
        yield opened


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_one_line_answer_fits_a_small_budget(client: Client, provider: str) -> None:
    """Given five cents, then each provider's default model gives a one-line answer."""
    run = client.runs.create("llm.generate", ASK, provider=provider, max_cost_usd=SMALL).wait()
    assert run.status == "completed", run.record.error
    assert run.record.provider == provider
    assert run.record.cost_incurred_usd <= (run.record.reservation_usd or 0) <= SMALL


def test_the_best_model_of_google_is_served_within_a_small_budget(client: Client) -> None:
    """Given the policy `quality`, then the premium model answers, within five cents."""
    run = client.runs.create(
        "llm.generate", ASK, provider="google", optimize_for="quality", max_cost_usd=SMALL
    ).wait()
    assert run.status == "completed", run.record.error
    assert run.record.attempts[0].model.startswith("gemini-4-argon")
    assert run.record.reservation_usd <= SMALL


def test_a_larger_answer_reserves_more_thoughts(client: Client) -> None:
    """Given a higher cap, then the reservation grows with it, and stays below the model's limit."""
    caps = (256, 4_096, 16_384)
    bounds = []
    for cap in caps:
        route = client.route("llm.generate", {**ASK, "max_tokens": cap}, provider="google")
        bounds.append(route.record.reservation_usd or 0.0)
    assert bounds == sorted(bounds)
    assert bounds[0] < bounds[1] < bounds[2] < 0.1


def test_tries_every_provider_of_text() -> None:
    """Given the registry, then none of the providers that generate text is left out above."""
    assert {"anthropic", "aws", "google", "minimax", "openai", "runpod"} <= set(PROVIDERS)


PREMIUM = {"provider": "google", "optimize_for": "quality"}


@pytest.mark.parametrize(("day", "rise"), [("2026-11-30", 1), ("2026-12-01", 2)])
def test_prices_and_reserves_by_the_prices_of_the_day(
    client: Client, monkeypatch: pytest.MonkeyPatch, day: str, rise: int
) -> None:
    """Given a rise that a vendor announced, then it holds from its day on, in a running engine."""
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
    listed = {one.record.model: one.record for one in client.catalog.models()}["gemini-4-argon"]
    assert listed.prices_usd["output_tokens"] == pytest.approx(1e-5 * rise)
    assert len(listed.price_changes) == 2 - rise
