"""Amounts paid over amounts allowed, billed by real tokenizers: never above 1.

Run `python -m benchmarks.budget_truth [FOLDER]`; FOLDER may hold more tokenizers, as
`tokenizer.json` files. Workflows of texts in many scripts run under budgets that do not cover all
of the texts. The vendors bill by their own rules (`_billing`): cache writes, service tiers,
reasoning, lost responses. Calls run one after the other, concurrently, and as independent runs. Two
more trials interrupt calls in flight: the caller cancels the workflow, or the engine stops and
another engine resumes the rest.

A workflow is accepted if its expected cost fits, so its budget equals the expected cost, which is
less than its bound. The usable share of a budget is reported for a budget of 50 calls' bounds,
because the bound of the last call remains unused.

Pictures, tools, schemas, reasoning, cache writes and the flex tier are tried at each provider: one
call under a limit of its reservation, and concurrent calls under a budget of 50 reservations. A
table of paid over limit and of the usable share goes to stderr.
"""

import asyncio
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

from benchmarks._billed_engine import BOUNDS_COVERED, CAP, open_engine
from benchmarks._billing import RULES, TARIFFS, Billing, Rule
from benchmarks._budget_features import FEATURES, FeatureOutcome, format_table, try_feature
from benchmarks._report import report
from benchmarks._texts import PROSE, long_texts
from benchmarks._tokenizers import Count, load_tokenizers
from toolkit.contract.jobs import Options
from toolkit.contract.runs import RunCreate
from toolkit.contract.workflows import NodeCreate, WorkflowCreate
from toolkit.engine import Engine
from toolkit.engine.request_context import RequestContext
from toolkit.plugins.bounds import count_bytes
from toolkit.plugins.tokens import estimate_tokens

INTERLEAVINGS = ("one after the other", "side by side", "single runs", "cancelled", "restarted")
LEAST_USABLE = 0.8
# So that the first calls fit, because no costs have been learnt yet.
LEFT_OVER = 0.004
# With fewer texts, texts repeat, but the budget expects each text once.
LEAST_NODES = 15
INTERRUPTED = ("cancelled", "restarted")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one trial.

    Attributes:
        ratio: paid over allowed, the highest of its budgets.
        of_recorded: paid over recorded as spent; 1 if the records are exact, less if an unknown
            cost is recorded as its upper bound.
    """

    ratio: float
    of_recorded: float
    calls: int


async def try_rule(
    count: Count, rule: Rule, interleaving: str, texts: Mapping[str, str]
) -> Outcome:
    """Run every text under a budget that does not cover the costs of all texts."""
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
    """Wait until a call in flight is held, or until the workflow has ended."""
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
    """Run each text under a budget that equals its upper bound."""
    worst, of_recorded, calls = 0.0, 1.0, 0
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
        of_recorded = min(
            of_recorded, paid / run.cost_incurred_usd if run.cost_incurred_usd else 1.0
        )
    return Outcome(worst, of_recorded, calls)


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
    """Measure the share of a budget of 50 calls' bounds that concurrent calls could use."""
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


def report_tokens(tokenizers: Mapping[str, Count], texts: Mapping[str, str]) -> bool:
    """Report how close bounds and expectations are to the counts of tokenizers."""
    highest = {name: max(c(text) for c in tokenizers.values()) for name, text in texts.items()}
    worst = max(texts, key=lambda name: highest[name] / (count_bytes(texts[name]) + 256))
    ratio = highest[worst] / (count_bytes(texts[worst]) + 256)
    median = [
        sorted(count(text) for count in tokenizers.values())[len(tokenizers) // 2]
        / estimate_tokens(text)
        for name, text in texts.items()
        if name in PROSE
    ]
    is_kept = report("budget_truth.tokens_over_bound", ratio, "ratio", floor=0, limit=1, text=worst)
    report("budget_truth.tokens_over_expected", max(median), "ratio", floor=min(median), limit=None)
    return is_kept


async def report_features(tokenizers: Mapping[str, Count]) -> bool:
    """Report each feature of requests at each provider, and print a table of them to stderr."""
    outcomes: dict[tuple[str, str], FeatureOutcome] = {}
    are_kept = True
    for name, feature in FEATURES.items():
        for provider in feature.providers:
            tried = [await try_feature(count, feature, provider) for count in tokenizers.values()]
            outcome = FeatureOutcome(
                max(each.ratio for each in tried), min(each.usable for each in tried)
            )
            outcomes[provider.partition("/")[0], name] = outcome
            details = {"provider": provider, "feature": name}
            are_kept &= report(
                "budget_truth.feature_paid_over_limit", outcome.ratio, "ratio", floor=0, limit=1,
                **details,
            )  # fmt: skip
            are_kept &= report(
                "budget_truth.feature_unusable", 1 - outcome.usable, "share", floor=0,
                limit=1 - LEAST_USABLE, **details,
            )  # fmt: skip
    print(format_table(outcomes), file=sys.stderr)
    return are_kept


async def main(
    folder: Path | None = None,
    *,
    characters: int = 600,
    interleavings: Sequence[str] = INTERLEAVINGS,
    most_texts: int = 1000,
    most_tokenizers: int = 1000,
) -> int:
    """Run all combinations; the exit code is 1 if a budget is exceeded or cannot be used."""
    tokenizers = dict(list(load_tokenizers(folder).items())[:most_tokenizers])
    texts = dict(list(long_texts(characters).items())[:most_texts])
    are_kept = report_tokens(tokenizers, long_texts(characters))
    for name, count in tokenizers.items():
        for rule_name, rule in RULES.items():
            for interleaving in interleavings:
                outcome = await try_rule(count, rule, interleaving, texts)
                are_kept &= report(
                    "budget_truth.paid_over_limit", outcome.ratio, "ratio", floor=0, limit=1,
                    tokenizer=name, rule=rule_name, interleaving=interleaving,
                    calls=outcome.calls, paid_over_told=round(outcome.of_recorded, 3),
                )  # fmt: skip
        usable = await measure_usable(count)
        are_kept &= report(
            "budget_truth.unusable", 1 - usable, "share", floor=0, limit=1 - LEAST_USABLE,
            tokenizer=name,
        )  # fmt: skip
    are_kept &= await report_features(tokenizers)
    return 0 if are_kept else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main(Path(sys.argv[1]) if sys.argv[1:] else None)))
