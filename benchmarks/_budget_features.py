"""Budgets of requests with pictures, tools, schemas, reasoning, cache writes and the flex tier."""

import io
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from benchmarks._billed_engine import BOUNDS_COVERED, CAP, open_engine
from benchmarks._billing import Billing, Rule
from benchmarks._texts import PROSE, long_texts
from benchmarks._tokenizers import Count
from toolkit.contract.base import JsonObject
from toolkit.contract.jobs import Options
from toolkit.contract.runs import Run, RunCreate
from toolkit.contract.workflows import NodeCreate, WorkflowCreate
from toolkit.engine import Engine
from toolkit.engine.request_context import RequestContext

PICTURES, SIDE = 4, 1_024
# A usual text, and a text of as many tokens as bytes by most tokenizers.
TEXTS = (PROSE["english"], long_texts(1_500)["cuneiform"])
PROVIDERS = ("openai", "anthropic", "google", "minimax", "aws")
MOST_NODES = 900
# Answers and thoughts are as long as they may be, and OpenAI writes each prompt to its cache.
DEAREST = Rule(share=1.0, stop=1, thoughts=16_384, writes="always")


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature of requests.

    Attributes:
        make_input: function of a text and the id of a picture that returns the input of a run.
        providers: the providers that offer the feature and bound its cost.
        is_flex: whether the flex tier is asked for.
    """

    make_input: Callable[[str, str], JsonObject]
    providers: tuple[str, ...] = PROVIDERS
    is_flex: bool = False


def _ask(text: str, _picture: str) -> JsonObject:
    return {"objective": text}


def _show(text: str, picture: str) -> JsonObject:
    return {"objective": text, "images": [picture] * PICTURES}


def _offer(text: str, _picture: str) -> JsonObject:
    parameters = {"type": "object", "properties": {"mill": {"type": "string"}}}
    tool = {"name": "turn", "description": text, "parameters": parameters}
    return {"objective": "Turn the mill.", "tools": [tool]}


def _structure(text: str, _picture: str) -> JsonObject:
    title = {"type": "string", "description": text}
    schema = {"type": "object", "properties": {"title": title}, "required": ["title"]}
    return {"objective": "Name the mill.", "output_schema": schema}


def _reason(text: str, _picture: str) -> JsonObject:
    return {"objective": text, "reasoning": "medium"}


FEATURES: Mapping[str, Feature] = {
    "text and cache writes": Feature(_ask),
    "images": Feature(_show, providers=("openai", "anthropic", "google", "aws")),
    "tools": Feature(_offer),
    "schemas": Feature(_structure),
    "reasoning": Feature(_reason),
    "flex tier": Feature(
        _ask, providers=("openai", "google", "aws/openai.gpt-oss-120b-1:0"), is_flex=True
    ),
}


@dataclass(frozen=True, slots=True)
class FeatureOutcome:
    """The result of a feature at a provider.

    Attributes:
        ratio: paid over reserved, the highest of all texts.
        usable: share of a budget of 50 reservations that concurrent calls paid.
    """

    ratio: float
    usable: float


async def try_feature(count: Count, feature: Feature, provider: str) -> FeatureOutcome:
    """Run requests alone, and many of them under a budget that does not cover all."""
    billing = Billing(count, DEAREST)
    with tempfile.TemporaryDirectory() as folder:
        engine, context = await open_engine(Path(folder), billing)
        try:
            picture = await engine.artifacts.create(context, _draw_picture(), {})
            options = Options(provider=provider, tier="flex" if feature.is_flex else "standard")
            ratios = []
            for text in reversed(TEXTS):
                billing.ledger.clear()
                fields = {**feature.make_input(text, picture.id), "max_tokens": CAP}
                run = await _run_alone(engine, context, fields, options)
                ratios.append(float(sum(billing.ledger)) / (run.attempts[-1].reservation_usd or 0))
            bound, expected = run.reservation_usd or 0, run.estimated_cost_usd or 0
            limit = min(BOUNDS_COVERED * bound, MOST_NODES * expected)
            nodes = int(limit / expected)
            billing.ledger.clear()
            workflow = await engine.workflows.create(
                context, _make_workflow(fields, options, limit, nodes)
            )
            await engine.wait(context, workflow.id, 60)
            return FeatureOutcome(max(ratios), float(sum(billing.ledger)) / limit)
        finally:
            await engine.close(0)


async def _run_alone(
    engine: Engine, context: RequestContext, fields: JsonObject, options: Options
) -> Run:
    """Run a request under a budget that equals its upper bound."""
    request = RunCreate(name="llm.generate", input=fields, options=options)
    route = await engine.runs.route(context, request)
    limited = options.model_copy(update={"max_cost_usd": route.reservation_usd})
    run = await engine.runs.create(context, request.model_copy(update={"options": limited}))
    await engine.wait(context, run.id, 60)
    run = await engine.runs.get(context, run.id)
    assert run.status == "completed", run.error
    return run


def _make_workflow(
    fields: JsonObject, options: Options, limit: float, nodes: int
) -> WorkflowCreate:
    return WorkflowCreate(
        name="feature",
        options=Options(max_cost_usd=limit),
        nodes=[
            NodeCreate(id=f"n{i}", capability="llm.generate", input=fields, options=options)
            for i in range(nodes)
        ],
    )


def _draw_picture() -> bytes:
    """Draw a picture of a megapixel."""
    stored = io.BytesIO()
    Image.new("RGB", (SIDE, SIDE), (70, 130, 180)).save(stored, "PNG")
    return stored.getvalue()


def format_table(outcomes: Mapping[tuple[str, str], FeatureOutcome]) -> str:
    """Format a table of each provider's highest ratio and usable share by feature."""
    providers = dict.fromkeys(provider for provider, _ in outcomes)
    lines = ["| provider | " + " | ".join(FEATURES) + " |", "|---" * (len(FEATURES) + 1) + "|"]
    for provider in providers:
        cells = []
        for feature in FEATURES:
            outcome = outcomes.get((provider, feature))
            cells.append(f"{outcome.ratio:.2f} / {outcome.usable:.2f}" if outcome else "–")
        lines.append(f"| {provider} | " + " | ".join(cells) + " |")
    return "\n".join(lines)
