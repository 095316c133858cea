"""Plans: what a task would do, before it does it (decisions, "Records")."""

from typing import Annotated, Literal

from pydantic import Field

from toolkit.contract.base import JsonObject, Record, Request, Timestamp, Usd
from toolkit.contract.choices import OptimizeFor, PlannerChoice, ReviewMode
from toolkit.contract.jobs import Options

CapabilityName = Annotated[str, Field(min_length=1, max_length=128)]


class Constraints(Request):
    """The limits that a task must keep to.

    Attributes:
        endpoint_id, compute_id: where GPU work runs; of both, on the endpoint.
        capabilities: the only ones that may be used, such as `llm.generate`; all, by default.
        planner: who plans: `rules`; `llm`, a language model; or `auto`, the model where the rules
            did not understand all of it. The operator's setting, by default.
        review: who reviews: `checks`, or a language model as well, the `judge`. The operator's
            setting, by default.
    """

    max_cost_usd: Usd | None = None
    optimize_for: OptimizeFor | None = None
    endpoint_id: str | None = Field(default=None, max_length=64)
    compute_id: str | None = Field(default=None, max_length=64)
    capabilities: list[CapabilityName] | None = Field(default=None, min_length=1, max_length=64)
    planner: PlannerChoice | None = None
    review: ReviewMode | None = None


class PlanCreate(Request):
    """`POST /v1/plans`: the dry run of a task; it spends nothing but an LLM planner's tokens."""

    # Not white space alone, by whichever of the readings of it that schemas and Python have.
    objective: str = Field(min_length=1, max_length=10_000, pattern=r"[^\s\x1c-\x1f\x85]")
    constraints: Constraints = Constraints()


class PlanNode(Record):
    """One node a plan would run, and why it is in the plan.

    Attributes:
        optional: whether what depends on it runs without its artifact where it fails.
        options: how it is carried out, where the plan says so.
    """

    id: str
    capability: str
    input: JsonObject = {}
    depends_on: list[str] = []
    reason: str = ""
    optional: bool = False
    options: Options | None = None


class CostRange(Record):
    """The range that a plan's cost may come to; null where a part is not known or not connected.

    Attributes:
        low: the least: short answers of the cheapest model that may be called.
        expected: what its first choices are expected to be billed.
        high: the most that one call of each node can be billed, and no more than `max_cost_usd`.
    """

    low: Usd | None = None
    expected: Usd | None = None
    high: Usd | None = None


class Missing(Record):
    """A capability that a plan needs and does not have.

    Attributes:
        any_of: the providers of which one has to be connected, the default one first; none where
            nothing here makes it.
    """

    capability: str
    any_of: list[str] = []


class PlanReading(Record):
    """How much of its objective a plan took in.

    Attributes:
        understood: the share of the objective's words that were understood, from 0 to 1.
        words: those that were not, as the objective has them.
    """

    understood: float = Field(default=1.0, ge=0, le=1)
    words: list[str] = []


class Plan(Record):
    """A plan; executable when nothing is missing and nothing has to be asked."""

    id: str
    objective: str
    nodes: list[PlanNode] = []
    deliverables: list[str] = Field(
        default=[], description="the nodes whose results were asked for"
    )
    missing_capabilities: list[str] = []
    missing_connections: list[str] = []
    missing: list[Missing] = Field(
        default=[], description="what it lacks: each capability, and the providers that would do"
    )
    reading: PlanReading = PlanReading()
    question: str | None = Field(
        default=None, description="what a person has to answer before it can be run"
    )
    estimated_cost_usd: CostRange = CostRange()
    cost_usd: Usd = Field(
        default=0.0, description="what planning it cost: a language model's tokens"
    )
    planner: Literal["rules", "llm"] = "rules"
    rationale: str = ""
    created_at: Timestamp

    @property
    def executable(self) -> bool:
        """True if it can be run as it stands."""
        lacks = self.missing_capabilities or self.missing_connections or self.question
        return bool(self.nodes) and not lacks
