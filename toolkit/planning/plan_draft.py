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
        capabilities: newest available version of each capability, in registry order.
        connected: ids of the providers that the account has connections for.
        providers: ids of the providers that can run each capability, by capability id; empty if
            the capability runs on this machine's CPU.
    """

    capabilities: Sequence[Capability]
    connected: frozenset[str]
    providers: Mapping[str, frozenset[str]]


@dataclass(frozen=True)
class PlanDraft:
    """A plan as a planner makes it, before it is given an id and a price.

    Attributes:
        nodes: nodes, dependencies before dependents; the last sink is the main deliverable.
        missing: unavailable capabilities, each with the ids of the providers that would enable it,
            the default provider first.
        deliverables: requested nodes, in the order they were named.
        question: question that a person must answer first, or None.
    """

    nodes: list[PlanNode]
    missing: tuple[Missing, ...] = ()
    rationale: str = ""
    deliverables: tuple[str, ...] = ()
    reading: PlanReading = field(default_factory=PlanReading)
    question: str | None = None

    @property
    def missing_capabilities(self) -> tuple[str, ...]:
        """The requested capabilities that nothing here provides."""
        return tuple(gap.capability for gap in self.missing if not gap.any_of)

    @property
    def missing_connections(self) -> tuple[str, ...]:
        """The ids of the providers whose connection would enable a missing capability."""
        return tuple(dict.fromkeys(chain(*(gap.any_of for gap in self.missing))))
