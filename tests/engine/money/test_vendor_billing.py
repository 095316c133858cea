"""Budgets at vendors with billing rules of their own: above the bound, or for each request."""

from functools import cache
from pathlib import Path

import pytest

from benchmarks._billing import RULES, Billing, Rule
from benchmarks._texts import PROSE
from benchmarks._tokenizers import Count, load_tokenizers
from benchmarks.budget_truth import INTERLEAVINGS, measure_usable, open_engine, try_rule
from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.contract.jobs import Options
from toolkit.contract.runs import Run, RunCreate
from toolkit.engine import Engine
from toolkit.engine.request_context import RequestContext

TEXTS = {name: PROSE[name] * 3 for name in ("english", "chinese", "amharic", "hindi", "khmer")}


def count(text: str) -> int:
    """Count the tokens of a text by a real tokenizer, which is loaded at the first use."""
    return load_o200k()(text)


@cache
def load_o200k() -> Count:
    """Load the tokenizer."""
    return load_tokenizers()["o200k_base"]


@pytest.mark.parametrize("interleaving", INTERLEAVINGS)
@pytest.mark.parametrize("rule", RULES)
async def test_pays_at_most_the_limit(rule: str, interleaving: str) -> None:
    """Given any billing rule and order of calls, then the paid cost stays within the limit."""
    outcome = await try_rule(count, RULES[rule], interleaving, TEXTS)
    assert outcome.calls
    assert outcome.ratio <= 1
    assert outcome.of_recorded <= 1 + 1e-9  # an unknown cost counts as its bound


async def test_most_of_a_budget_can_be_used() -> None:
    """Given a budget of 50 bounds and concurrent calls, then at least 80 % of it is usable."""
    assert await measure_usable(count) >= 0.8


async def ask(engine: Engine, context: RequestContext, limit: float | None) -> Run:
    """Run at OpenAI under a limit, and return the record."""
    request = RunCreate(
        name="llm.generate",
        input={"objective": PROSE["english"]},
        options=Options(provider="openai", max_cost_usd=limit),
    )
    run = await engine.runs.create(context, request)
    await engine.wait(context, run.id, 20)
    return await engine.runs.get(context, run.id)


async def test_rejects_an_overbilling_model_until_it_is_trusted(tmp_path: Path) -> None:
    """Given a bill above its reservation, then budgets exclude the model, until it is trusted.

    Another engine on the directory knows it at once, and so does a later process.
    """
    first, context = await open_engine(tmp_path, Billing(count, Rule(template=9_000)))
    second, _ = await open_engine_again(tmp_path)
    try:
        assert (await ask(second, context, 0.05)).status == "completed"
        run = await ask(first, context, 0.05)
        assert run.cost_usd == run.cost_incurred_usd > (run.reservation_usd or 0)
        for engine in (first, second):
            with pytest.raises(RequestError, match="billed more") as caught:
                await ask(engine, context, 0.05)
            assert caught.value.code is ErrorCode.BUDGET_EXCEEDED
        # A health record of the second engine does not undo the judgement.
        assert (await ask(second, context, None)).status == "completed"
        with pytest.raises(RequestError, match="billed more"):
            await ask(second, context, 0.05)
        await first.close(0)
        first, _ = await open_engine_again(tmp_path)
        with pytest.raises(RequestError, match="billed more"):
            await ask(first, context, 0.05)
        connections = await second.connections.list(context, 50, None)
        connection = next(each for each in connections if each.provider == "openai")
        assert connection.overbilled == ["gpt-6-luna"]
        trusted = await second.connections.trust(context, connection.id)
        assert trusted.overbilled == []
        for engine in (second, first):
            assert (await ask(engine, context, 0.05)).status == "completed"
    finally:
        await second.close(0)
        await first.close(0)


async def open_engine_again(folder: Path) -> tuple[Engine, RequestContext]:
    """Open the same data directory with vendors that bill as agreed."""
    return await open_engine(folder, Billing(count, RULES["plain"]), connect=False)
