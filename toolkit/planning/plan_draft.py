"""The planner's view of an account, and a plan before it has an id and a price."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from toolkit.contract.plans import Missing, PlanNode, PlanReading
from toolkit.plugins import Capability


@dataclass(frozen=True)
class PlannerView:
    """The facts about an account that the planner may use.

    Attributes:
        capabilities: the newest available version of each id, in registry order.
        connected: provider ids the account has connections for.
        providers: by capability id, the provider ids that can serve it; empty where it runs on this
            machine's CPU.
    """

    capabilities: Sequence[Capability]
    connected: frozenset[str]
    providers: Mapping[str, frozenset[str]]


@dataclass(frozen=True)
class PlanDraft:
    """A plan before it has an id and a price.

    Attributes:
        nodes: dependencies before dependents; the last sink is the main deliverable.
        missing: each capability that is unavailable, with the provider ids that would enable it,
            the default one first.
        rationale: why the plan is as it is, in a few sentences.
        deliverables: the requested nodes, in the order they were named.
        reading: how much of the objective was understood.
        question: what a person has to be asked first; none where nothing has.
    """

    nodes: list[PlanNode]
    missing: tuple[Missing, ...] = ()
    rationale: str = ""
    deliverables: tuple[str, ...] = ()
    reading: PlanReading = field(default_factory=PlanReading)
    question: str | None = None

    @property
    def missing_capabilities(self) -> tuple[str, ...]:
        """What was requested and nothing here makes."""
        return tuple(one.capability for one in self.missing if not one.any_of)

    @property
    def missing_connections(self) -> tuple[str, ...]:
        """The ids of the providers, any of which would help."""
        return tuple(dict.fromkeys(chain(*(one.any_of for one in self.missing))))
