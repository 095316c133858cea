"""The rule-based planner: turns an objective into a graph of capabilities; `Plans` calls it."""

from typing import TYPE_CHECKING

from toolkit.contract.plans import Constraints
from toolkit.planning.capability_graph import CapabilityGraph
from toolkit.planning.plan_draft import PlanDraft, PlannerView

if TYPE_CHECKING:
    from toolkit.planning.reading.objective_reading import ObjectiveReading

__all__ = ["PlanDraft", "PlannerView", "make_plan", "plan_reading"]


def make_plan(
    objective: str,
    constraints: Constraints,
    view: PlannerView,
    *,
    without: frozenset[str] = frozenset(),
) -> PlanDraft:
    """Plan an objective; the same arguments always give the same plan.

    Args:
        objective: what is wanted, in a person's words.
        constraints: with a `max_cost_usd` of 0, nothing is planned that a vendor bills for where
            this machine's CPU can stand in.
        view: the capabilities and connections to plan with.
        without: passes of the reader to leave out, for benchmarks only.

    >>> draft = make_plan("a video about tides", Constraints(), PlannerView((), frozenset(), {}))
    >>> draft.nodes, draft.missing_capabilities
    ([], ('video.generate',))
    """
    from toolkit.planning.reading.reader import read_objective  # slow to import, as are lexicons

    graph = CapabilityGraph(
        view.capabilities, view.connected, view.providers, constraints.max_cost_usd == 0
    )
    reading = read_objective(objective, graph.names, without=without)
    return plan_reading(objective, reading, graph)


def plan_reading(objective: str, reading: "ObjectiveReading", graph: CapabilityGraph) -> PlanDraft:
    """Plan what an objective was read as."""
    from toolkit.planning.plan_builder import PlanBuilder

    return PlanBuilder(objective, reading, graph).plan()
