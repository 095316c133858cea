"""Budgets at vendors that bill by rules of their own: more than agreed, or for each request."""

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
    """Count the tokens of a text by a real tokenizer, which is loaded when it is first asked."""
    return load_o200k()(text)


@cache
def load_o200k() -> Count:
    """Load the tokenizer."""
    return load_tokenizers()["o200k_base"]


@pytest.mark.parametrize("interleaving", INTERLEAVINGS)
@pytest.mark.parametrize("rule", RULES)
async def test_no_more_is_paid_than_is_allowed(rule: str, interleaving: str) -> None:
    """Given any rule of billing, however calls interleave, then paid stays within allowed."""
    done = await try_rule(count, RULES[rule], interleaving, TEXTS)
    assert done.calls
    assert done.ratio <= 1
    assert done.of_recorded <= 1 + 1e-9  # an unknown cost is recorded as its upper bound


async def test_most_of_a_budget_can_be_used() -> None:
    """Given a budget of 50 calls' bounds and calls at once, then 80 % of it can be used."""
    assert await measure_usable(count) >= 0.8


async def ask(engine: Engine, context: RequestContext, limit: float | None) -> Run:
    """A run at one vendor, to its end."""
    request = RunCreate(
        name="llm.generate",
        input={"objective": PROSE["english"]},
        options=Options(provider="openai", max_cost_usd=limit),
    )
    run = await engine.runs.create(context, request)
    await engine.wait(context, run.id, 20)
    return await engine.runs.get(context, run.id)


async def test_a_model_that_bills_more_is_not_used_under_a_budget_until_somebody_says_so(
    tmp_path: Path,
) -> None:
    """Given a bill above its reservation, then it is recorded, and the model is not trusted."""
    engine, context = await open_engine(tmp_path, Billing(count, Rule(template=9_000)))
    try:
        run = await ask(engine, context, 0.05)
        assert run.cost_usd == run.cost_incurred_usd > (run.reservation_usd or 0)
        with pytest.raises(RequestError) as refused:
            await ask(engine, context, 0.05)
        assert refused.value.code is ErrorCode.BUDGET_EXCEEDED
        assert "billed more" in str(refused.value)
        assert (await ask(engine, context, None)).status == "completed"
        (connection,) = [
            c for c in await engine.connections.list(context, 50, None)
            if c.provider == "openai"
        ]  # fmt: skip
        assert connection.overbilled == ["gpt-6-luna"]
    finally:
        await engine.close(0)
    # It is known to the next process too, until somebody says that the bounds hold.
    engine, _ = await open_engine_again(tmp_path)
    try:
        with pytest.raises(RequestError):
            await ask(engine, context, 0.05)
        trusted = await engine.connections.trust(context, connection.id)
        assert trusted.overbilled == []
        assert (await ask(engine, context, 0.05)).status == "completed"
    finally:
        await engine.close(0)


async def test_what_is_trusted_is_known_to_every_engine_at_once(tmp_path: Path) -> None:
    """Given two engines on one directory, then what one learns or is told, the other goes by."""
    first, context = await open_engine(tmp_path, Billing(count, Rule(template=9_000)))
    second, _ = await open_engine_again(tmp_path)
    try:
        assert (await ask(second, context, 0.05)).status == "completed"
        await ask(first, context, 0.05)
        for engine in (first, second):
            with pytest.raises(RequestError, match="billed more"):
                await ask(engine, context, 0.05)
        # What the other writes of the connection's health does not bring back what was judged.
        assert (await ask(second, context, None)).status == "completed"
        with pytest.raises(RequestError, match="billed more"):
            await ask(second, context, 0.05)
        (connection,) = [
            c for c in await second.connections.list(context, 50, None)
            if c.provider == "openai"
        ]  # fmt: skip
        await second.connections.trust(context, connection.id)
        for engine in (second, first):
            assert (await ask(engine, context, 0.05)).status == "completed"
    finally:
        await second.close(0)
        await first.close(0)


async def open_engine_again(folder: Path) -> tuple[Engine, str]:
    """The same data directory, at vendors that bill as agreed; nothing is connected anew."""
    return await open_engine(folder, Billing(count, RULES["plain"]), connect=False)
