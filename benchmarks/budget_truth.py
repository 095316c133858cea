"""What was paid over what was allowed, billed by real tokenizers: never above 1.

Run `python -m benchmarks.budget_truth [FOLDER]`; FOLDER may have more tokenizers, as
`tokenizer.json` files. Workflows of texts in many scripts run under budgets that do not cover all
of them. The vendors bill by rules of their own (`_billing`): cache writes, service tiers,
reasoning, lost answers. Calls run one after the other, side by side, and as runs that share
nothing. Two more trials interrupt calls in flight: the caller cancels the workflow, or the engine
ends and another engine takes up the rest.

A workflow is accepted if its expected cost fits, so its budget is just that, and its bound is more.
The share of a budget that could be used is reported for a budget of 50 calls' bounds: the last
call's bound is left over.
"""

import asyncio
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

from benchmarks._billing import RULES, TARIFFS, Billing, Rule
from benchmarks._cloud import connect_account
from benchmarks._report import report
from benchmarks._texts import PROSE, long_texts
from benchmarks._tokenizers import Count, load_tokenizers
from toolkit.contract.jobs import Options
from toolkit.contract.runs import RunCreate
from toolkit.contract.workflows import NodeCreate, WorkflowCreate
from toolkit.engine import Engine, Registry
from toolkit.engine.request_context import RequestContext
from toolkit.plugins.bounds import count_bytes
from toolkit.plugins.tokens import estimate_tokens
from toolkit.secrets import MappingResolver
from toolkit.settings import Settings

INTERLEAVINGS = ("one after the other", "side by side", "single runs", "cancelled", "restarted")
LEAST_USABLE = 0.8
BOUNDS_COVERED = 50
CAP = 300
# So that the first calls, which nothing has been learnt from yet, fit.
LEFT_OVER = 0.004
# Fewer texts come again, under a budget that expects them once.
LEAST_NODES = 15
INTERRUPTED = ("cancelled", "restarted")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one trial came to.

    Attributes:
        ratio: paid over allowed, the highest of its budgets.
        told: paid over what the records say was spent; 1 where they tell the truth, less where
            what is not known counts as the most it could be.
    """

    ratio: float
    told: float
    calls: int


async def open_engine(
    folder: Path, billing: Billing, *, connect: bool = True
) -> tuple[Engine, RequestContext]:
    """An engine whose vendors are those that bill, and its account, connected to all of them."""
    registry = Registry.load()
    secrets = {registry.vendors[vendor].variable: "a-key-of-nobody" for vendor in TARIFFS}
    engine = await Engine.open(
        Settings(data_dir=folder, retry_base_s=0.001, breaker_failures=10_000),
        transport=billing,
        resolver=MappingResolver(secrets),
        registry=registry,
    )
    return engine, await connect_account(engine, *(TARIFFS if connect else ()))


async def try_rule(
    count: Count, rule: Rule, interleaving: str, texts: Mapping[str, str]
) -> Outcome:
    """Run every text under a budget that does not cover what all of them may come to."""
    billing = Billing(count, rule, holds=interleaving in INTERRUPTED)
    with tempfile.TemporaryDirectory() as folder:
        engine, context = await open_engine(Path(folder), billing)
        try:
            if interleaving == "single runs":
                return await _single_runs(engine, context, billing, texts)
            limit = LEFT_OVER + await _sum_expected(engine, context, texts)
            chained = interleaving == "one after the other"
            started = await _create_workflow(engine, context, texts, limit, chained=chained)
            if interleaving in INTERRUPTED:
                await _wait_for_interrupt(engine, context, started, billing)
            if interleaving == "cancelled":
                await engine.workflows.cancel(context, started)
            elif interleaving == "restarted":
                await engine.close(0)
                billing.holds = False
                engine, context = await open_engine(Path(folder), billing, connect=False)
            await engine.wait(context, started, 60)
            workflow = await engine.workflows.get(context, started)
            paid = float(sum(billing.ledger))
            spent = workflow.cost_incurred_usd
            return Outcome(paid / limit, paid / spent if spent else 1.0, len(billing.ledger))
        finally:
            await engine.close(0)


async def _wait_for_interrupt(
    engine: Engine, context: RequestContext, workflow_id: str, billing: Billing
) -> None:
    """Wait until a call is in flight that gets no answer, or until the workflow has ended."""
    waits = [
        asyncio.ensure_future(engine.wait(context, workflow_id, 60)),
        asyncio.ensure_future(billing.held.wait()),
    ]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()
    await asyncio.gather(*waits, return_exceptions=True)


async def _single_runs(
    engine: Engine, context: RequestContext, billing: Billing, texts: Mapping[str, str]
) -> Outcome:
    """Each text as a run whose budget is exactly what it may come to."""
    worst, told, calls = 0.0, 1.0, 0
    for i, text in enumerate(texts.values()):
        request = _run(text, _vendor(i))
        route = await engine.runs.route(context, request)
        limit = route.reservation_usd
        assert limit is not None
        allowed = request.options.model_copy(update={"max_cost_usd": limit})
        billing.ledger.clear()
        run = await engine.runs.create(context, request.model_copy(update={"options": allowed}))
        await engine.wait(context, run.id, 60)
        run = await engine.runs.get(context, run.id)
        paid = float(sum(billing.ledger))
        worst = max(worst, paid / limit)
        calls += len(billing.ledger)
        told = min(told, paid / run.cost_incurred_usd if run.cost_incurred_usd else 1.0)
    return Outcome(worst, told, calls)


async def _sum_expected(engine: Engine, context: RequestContext, texts: Mapping[str, str]) -> float:
    """Sum up the expected costs of the texts."""
    expected = 0.0
    for i, text in enumerate(texts.values()):
        route = await engine.runs.route(context, _run(text, _vendor(i)))
        expected += route.estimated_cost_usd or 0.0
    return expected


async def _create_workflow(
    engine: Engine,
    context: RequestContext,
    texts: Mapping[str, str],
    limit: float,
    *,
    chained: bool,
) -> str:
    """Create a workflow of all texts under one budget, and return its id."""
    nodes = max(len(texts), LEAST_NODES)
    workflow = await engine.workflows.create(
        context,
        WorkflowCreate(
            name="budget",
            max_retries=1,
            options=Options(max_cost_usd=limit),
            nodes=[
                NodeCreate(
                    id=f"n{i}",
                    capability="llm.generate",
                    input={"objective": text, "max_tokens": CAP},
                    depends_on=[f"n{i - 1}"] if chained and i else [],
                    options=Options(provider=_vendor(i)),
                )
                for i, text in zip(range(nodes), cycle(texts.values()), strict=False)
            ],
        ),
    )
    return workflow.id


async def measure_usable(count: Count) -> float:
    """The share of a budget of 50 calls' bounds that calls could use, many at once."""
    billing = Billing(count, RULES["to the cap"])
    text = PROSE["english"]
    with tempfile.TemporaryDirectory() as folder:
        engine, context = await open_engine(Path(folder), billing)
        try:
            route = await engine.runs.route(context, _run(text, "openai"))
            bound, expected = route.reservation_usd, route.estimated_cost_usd
            assert bound is not None
            assert expected is not None
            limit = BOUNDS_COVERED * bound
            nodes = int(limit / expected)
            billing.ledger.clear()
            workflow = await engine.workflows.create(context, _build_workflow(text, limit, nodes))
            await engine.wait(context, workflow.id, 60)
            return float(sum(billing.ledger)) / limit
        finally:
            await engine.close(0)


def _build_workflow(text: str, limit: float, nodes: int) -> WorkflowCreate:
    return WorkflowCreate(
        name="usable",
        options=Options(max_cost_usd=limit),
        nodes=[
            NodeCreate(
                id=f"n{i}",
                capability="llm.generate",
                input={"objective": text, "max_tokens": CAP},
                options=Options(provider="openai"),
            )
            for i in range(nodes)
        ],
    )


def _run(text: str, provider: str) -> RunCreate:
    return RunCreate(
        name="llm.generate",
        input={"objective": text, "max_tokens": CAP},
        options=Options(provider=provider),
    )


def _vendor(i: int) -> str:
    return list(TARIFFS)[i % len(TARIFFS)]


def tell_tokens(tokenizers: Mapping[str, Count], texts: Mapping[str, str]) -> bool:
    """Tell how close bounds and expectations are to what tokenizers count."""
    most = {name: max(c(text) for c in tokenizers.values()) for name, text in texts.items()}
    worst = max(texts, key=lambda name: most[name] / (count_bytes(texts[name]) + 256))
    told = most[worst] / (count_bytes(texts[worst]) + 256)
    median = [
        sorted(count(text) for count in tokenizers.values())[len(tokenizers) // 2]
        / estimate_tokens(text)
        for name, text in texts.items()
        if name in PROSE
    ]
    kept = report("budget_truth.tokens_over_bound", told, "ratio", floor=0, limit=1, text=worst)
    report("budget_truth.tokens_over_expected", max(median), "ratio", floor=min(median), limit=None)
    return kept


async def main(
    folder: Path | None = None,
    *,
    characters: int = 600,
    interleavings: Sequence[str] = INTERLEAVINGS,
    most_texts: int = 1000,
    most_tokenizers: int = 1000,
) -> int:
    """Try everything with everything; exit code 1 if a budget is passed or cannot be used."""
    tokenizers = dict(list(load_tokenizers(folder).items())[:most_tokenizers])
    texts = dict(list(long_texts(characters).items())[:most_texts])
    kept = tell_tokens(tokenizers, long_texts(characters))
    for name, count in tokenizers.items():
        for rule_name, rule in RULES.items():
            for interleaving in interleavings:
                done = await try_rule(count, rule, interleaving, texts)
                kept &= report(
                    "budget_truth.paid_over_limit", done.ratio, "ratio", floor=0, limit=1,
                    tokenizer=name, rule=rule_name, interleaving=interleaving,
                    calls=done.calls, paid_over_told=round(done.told, 3),
                )  # fmt: skip
        usable = await measure_usable(count)
        kept &= report(
            "budget_truth.unusable", 1 - usable, "share", floor=0, limit=1 - LEAST_USABLE,
            tokenizer=name,
        )  # fmt: skip
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main(Path(sys.argv[1]) if sys.argv[1:] else None)))
