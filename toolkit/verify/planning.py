"""Measure how often a connected language model plans correctly, on objectives with known plans.

The 60 objectives in `objectives.jsonl` were drawn with a seed from `benchmarks/sets/planning`. A
plan is exact if it has the nodes, kind by kind, and the edges of a right plan.
"""

import json
import random
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from importlib import resources
from time import monotonic
from typing import Any

from toolkit.client import Client
from toolkit.contract.errors import ToolkitError
from toolkit.planning.capability_kinds import KINDS
from toolkit.settings import Settings

# The kind that each standard capability makes, by its id.
KINDS_BY_ID = {kind.conventional_id: name for name, kind in KINDS.items()}
KINDS_BY_ID["text.generate"] = "text"  # the other name of `llm.generate`


@dataclass(slots=True)
class PlannedObjective:
    """An objective, and the result of the model's planning.

    Attributes:
        objective: the text of the objective.
        expected: `plan`, `question`, or `blocked` if no capability can do a part of it.
        result: `exact`, `wrong`, `failed` if the model did not answer, or `not asked` if the budget
            did not cover another call.
        capabilities: the capabilities that the model planned.
        calls: number of calls: the first answer and its repairs.
        error: the reason of `failed` or `not asked`.
    """

    objective: str
    expected: str
    result: str = "failed"
    capabilities: list[str] = field(default_factory=list)
    calls: int = 0
    cost_usd: float = 0.0
    seconds: float = 0.0
    error: str = ""


@dataclass(slots=True)
class PlanningReport:
    """The results of a model's planning.

    Attributes:
        asked: number of objectives to plan; the budget may have ended the run earlier.
        seed: seed of the draw.
        provider, model: provider and model that planned.
        results: a result for each objective that was planned.
    """

    asked: int
    seed: int
    max_cost_usd: float
    provider: str = ""
    model: str = ""
    results: list[PlannedObjective] = field(default_factory=list)

    @property
    def cost_usd(self) -> float:
        """The US dollars of all calls of the language model that plans."""
        return sum(row.cost_usd for row in self.results)

    @property
    def exact(self) -> int:
        """The number of objectives whose plan was exactly the expected plan."""
        return sum(row.result == "exact" for row in self.results)

    @property
    def exact_share(self) -> float:
        """The share of the objectives whose plan is exact."""
        return self.exact / max(1, len(self.results))

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % Wilson interval of `exact_share`."""
        number, z, share = max(1, len(self.results)), 1.96, self.exact_share
        middle = share + z * z / (2 * number)
        spread = z * (share * (1 - share) / number + z**2 / 4 / number**2) ** 0.5
        scale = 1 + z * z / number
        return (middle - spread) / scale, (middle + spread) / scale

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        shares = {"exact_share": self.exact_share, "interval": list(self.interval)}
        return {**asdict(self), **shares, "cost_usd": self.cost_usd}


def load_objectives(number: int, seed: int = 0) -> list[dict[str, Any]]:
    """Choose objectives at random, each with its right plan; equal seeds choose the same.

    >>> len(load_objectives(3)), load_objectives(3) == load_objectives(3)
    (3, True)
    """
    source = resources.files(__package__) / "objectives.jsonl"
    rows = [json.loads(row) for row in source.read_text(encoding="utf-8").splitlines()]
    return random.Random(seed).sample(rows, min(number, len(rows)))  # noqa: S311 - no secret


def measure_planning(
    settings: Settings,
    number: int,
    *,
    max_cost_usd: float = 0.05,
    seed: int = 0,
    tell: Callable[[PlannedObjective], None] = lambda _planned: None,
) -> PlanningReport:
    """Have a connected model plan some objectives, and compare its plans with right plans.

    Args:
        settings: the settings of the connections; `planning` names the model.
        number: number of objectives, at most 60.
        max_cost_usd: maximum total cost; a call that could exceed it is not made.
        seed: seed of the draw of objectives.
        tell: a function that is called with each objective once it is planned.
    """
    objectives = load_objectives(number, seed)
    report = PlanningReport(asked=len(objectives), seed=seed, max_cost_usd=max_cost_usd)
    with Client.local(settings=settings) as client:
        for row in objectives:
            room = max_cost_usd - report.cost_usd
            outcome = PlannedObjective(row["objective"], row["answer"])
            report.results.append(outcome)
            started = monotonic()
            try:
                _plan(client, row, outcome, report, room)
            except ToolkitError as error:
                outcome.error = str(error)
            outcome.seconds = monotonic() - started
            tell(outcome)
            if outcome.result == "not asked":
                break  # the rest of the budget does not cover another call
    return report


def _plan(
    client: Client,
    row: dict[str, Any],
    outcome: PlannedObjective,
    report: PlanningReport,
    room_usd: float,
) -> None:
    plan = client.plans.create(row["objective"], planner="llm", max_cost_usd=room_usd).record
    outcome.capabilities = [node.capability for node in plan.nodes]
    outcome.calls, outcome.cost_usd = len(plan.llm_job_ids), plan.cost_incurred_usd
    if plan.llm_job_ids and not report.model:
        job = client.jobs.get(plan.llm_job_ids[0]).record
        report.provider, report.model = job.provider or "", job.model or ""
    is_lacking = any(not gap.any_of for gap in plan.missing)
    answer = "blocked" if is_lacking else "question" if plan.question else "plan"
    edges = {(up, node.id) for node in plan.nodes for up in node.depends_on}
    kinds = {node.id: KINDS_BY_ID.get(node.capability, node.capability) for node in plan.nodes}
    is_right = answer == row["answer"] and (
        answer != "plan" or any(_is_same(right, kinds, edges) for right in row["plans"])
    )
    outcome.result = "exact" if is_right else "wrong"
    if not plan.llm_job_ids:
        outcome.result, outcome.error = "not asked", plan.planner_reason


def _is_same(right: dict[str, Any], kinds: dict[str, str], edges: set[tuple[str, str]]) -> bool:
    """Check whether two graphs are isomorphic, with the same kinds of nodes."""
    import networkx as nx

    expected: Any = nx.DiGraph()
    planned: Any = nx.DiGraph()
    expected.add_nodes_from((i, {"kind": kind}) for i, kind in enumerate(right["nodes"]))
    expected.add_edges_from(right["edges"])
    planned.add_nodes_from((name, {"kind": kind}) for name, kind in kinds.items())
    planned.add_edges_from(edges)
    return bool(nx.is_isomorphic(expected, planned, node_match=lambda a, b: a["kind"] == b["kind"]))
