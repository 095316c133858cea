"""The option `tier`, on every simulated vendor, and the usage of a text by class."""

import pytest

from tests.contract.conftest import expect_refusal
from tests.contract.test_conversations import make_picture
from toolkit import Client
from toolkit.engine.provider_context import extend_timeouts
from toolkit.settings import Settings

ASK = {"objective": "Write two sentences about tides.", "max_tokens": 300}
GPT_OSS = "aws/openai.gpt-oss-120b-1:0"


@pytest.mark.parametrize("provider", ["openai", "google", GPT_OSS])
def test_flex_is_reserved_and_billed_at_its_price(client: Client, provider: str) -> None:
    """Given a model with a flex price, when flex is asked for, then half is reserved and billed."""
    standard = client.runs.create("llm.generate", ASK, provider=provider).wait()
    route = client.route("llm.generate", ASK, provider=provider, tier="flex")
    assert route.reservation_usd == pytest.approx((standard.reservation_usd or 0) / 2)
    assert route.estimated_cost_usd == pytest.approx((standard.estimated_cost_usd or 0) / 2)
    flex = client.runs.create(
        "llm.generate", ASK, provider=provider, tier="flex", max_cost_usd=route.reservation_usd
    ).wait()
    assert (standard.tier, flex.tier) == ("standard", "flex")
    assert (flex.cost_usd, flex.cost_source) == (
        pytest.approx((standard.cost_usd or 0) / 2, rel=1e-3),
        "metered",
    )
    assert flex.options.tier == flex.attempts[0].tier == "flex"


@pytest.mark.parametrize("provider", ["anthropic", "minimax"])
def test_a_model_without_flex_serves_at_the_standard_price(client: Client, provider: str) -> None:
    """Given a model without a flex price, when flex is asked for, then the reason says so."""
    standard = client.route("llm.generate", ASK, provider=provider)
    route = client.route("llm.generate", ASK, provider=provider, tier="flex")
    assert route.reservation_usd == standard.reservation_usd
    assert route.candidates[0].tier == "standard"
    assert route.candidates[0].reason == "pinned by the request; no flex tier: standard price"
    run = client.runs.create("llm.generate", ASK, provider=provider, tier="flex").wait()
    assert run.tier in (None, "standard")
    assert run.cost_usd


def test_the_router_compares_flex_prices(client: Client) -> None:
    """Given flex, when the router looks for the lowest cost, then flex prices count."""
    standard = client.route("llm.generate", ASK, optimize_for="cost")
    flex = client.route("llm.generate", ASK, optimize_for="cost", tier="flex")
    prices = {(c.provider, c.model): c.estimated_cost_usd or 0 for c in standard.candidates}
    kept = [candidate for candidate in flex.candidates if not candidate.excluded]
    for candidate in kept:
        share = 0.5 if candidate.tier == "flex" else 1
        price = prices[candidate.provider, candidate.model]
        assert candidate.estimated_cost_usd == pytest.approx(price * share)
    costs = [candidate.estimated_cost_usd for candidate in kept]
    assert costs == sorted(costs, key=lambda cost: cost or 0)
    reasons = {candidate.reason for candidate in kept}
    assert {"connected; flex tier", "connected; no flex tier: standard price"} <= reasons


def test_refuses_an_unknown_tier(client: Client) -> None:
    """Given an unknown tier, then the request is refused, and the detail names the option."""
    with expect_refusal("INVALID_REQUEST", "options.tier"):
        client.runs.create("llm.generate", ASK, tier="fast")  # type: ignore[call-overload]


@pytest.mark.embedded
@pytest.mark.parametrize(("provider", "picture_tokens"), [("openai", 5), ("google", 1_120)])
def test_usage_counts_pictures_and_reasoning(
    client: Client, provider: str, picture_tokens: int
) -> None:
    """Given a picture and reasoning, then the usage has each class, as a part of what is billed."""
    picture = client.artifacts.upload(make_picture((200, 30, 30)))
    fields = {**ASK, "images": [picture.id], "reasoning": "low"}
    run = client.runs.create("llm.generate", fields, provider=provider).wait()
    assert 0 < run.usage["reasoning_tokens"] < run.usage["output_tokens"]
    assert run.usage["image_tokens"] == picture_tokens < run.usage["input_tokens"]
    model = next(
        model
        for model in client.catalog.models()
        if (model.provider, model.default, model.kind) == (provider, True, "text")
    )
    prices = model.prices_usd
    billed = sum(run.usage[unit] * prices[unit] for unit in ("input_tokens", "output_tokens"))
    assert run.cost_usd == pytest.approx(billed, rel=1e-4)


@pytest.mark.embedded
@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_reserves_a_picture_by_its_size(client: Client, provider: str) -> None:
    """Given pictures, then a run reserves the tokens of their sizes, and a preview the largest."""
    reserved = []
    for side in (64, 1_024):
        picture = client.artifacts.upload(make_picture((200, 30, 30), (side, side)))
        fields = {**ASK, "images": [picture.id]}
        run = client.runs.create("llm.generate", fields, provider=provider).wait()
        assert (run.cost_usd or 0) <= (run.reservation_usd or 0)
        reserved.append(run.reservation_usd or 0)
    largest = client.route("llm.generate", fields, provider=provider).reservation_usd
    assert reserved[0] < reserved[1] < (largest or 0)


def test_a_flex_call_may_take_a_quarter_of_an_hour() -> None:
    """Given shorter timeouts of calls, then flex calls have the vendors' advice; longer remain."""
    resolved = Settings().resolve_timeouts("openai", "llm.generate")
    standard = resolved.model_copy(update={"first_byte_s": 20.0})
    flex = extend_timeouts(standard)
    assert (flex.total_s, flex.first_byte_s) == (900, 900)
    assert flex.connect_s == standard.connect_s
    longer = standard.model_copy(update={"total_s": 2_000.0})
    assert extend_timeouts(longer).total_s == 2_000
