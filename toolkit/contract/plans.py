"""Plans: a preview of a task's work before the task runs it (decisions, "Records")."""

from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, Field

from toolkit.contract.base import JsonObject, Record, Request, Timestamp, Usd
from toolkit.contract.choices import OptimizeFor, PlannerChoice, ReviewMode
from toolkit.contract.jobs import Options

CapabilityName = Annotated[str, Field(min_length=1, max_length=128)]


def _check_range(bounds: list[float | None]) -> list[float | None]:
    low, high = bounds
    if low is not None and high is not None and high < low:
        raise ValueError("the minimum is larger than the maximum")
    return bounds


# A number, or the minimum and maximum of a range; null if the range has no such bound.
Amount: TypeAlias = (
    Annotated[float, Field(ge=0)]
    | Annotated[
        list[Annotated[float, Field(ge=0)] | None],
        Field(min_length=2, max_length=2),
        AfterValidator(_check_range),
    ]
)
TextFormat: TypeAlias = Literal["plain", "markdown", "json", "csv", "html"]


class Expect(Request):
    """The expected properties of a node's result, as data that the checks of a review measure.

    Each amount is a number, or the minimum and maximum of a range, such as `[180, 220]`.

    Attributes:
        words, characters, sentences, lines, paragraphs, items: amounts in a text. Items are those
            in its lists, JSON or CSV.
        duration_s: length of a sound, in seconds.
        width, height: size of a picture or card, in pixels.
        language: language of a text, as an ISO 639-1 code such as `de`.
        format: format of a text.
    """

    words: Amount | None = None
    characters: Amount | None = None
    sentences: Amount | None = None
    lines: Amount | None = None
    paragraphs: Amount | None = None
    items: Amount | None = None
    duration_s: Amount | None = None
    width: Amount | None = None
    height: Amount | None = None
    language: str | None = Field(default=None, pattern=r"^[a-z]{2,3}$")
    format: TextFormat | None = None


class Constraints(Request):
    """The limits of a task.

    Attributes:
        endpoint_id, compute_id: place where GPU work runs; if both are set, the endpoint.
        capabilities: names of the capabilities that may be used, such as `llm.generate`; all by
            default.
        planner: `llm`, a language model; `rules`, by keywords; or `auto`, the model if one is
            connected outside the sandbox. The default is the operator's setting.
        review: `checks`; `judge`, a language model as well; or `auto`, the judge if a model is
            connected outside the sandbox and affordable. The default is the operator's setting.
    """

    max_cost_usd: Usd | None = None
    optimize_for: OptimizeFor | None = None
    endpoint_id: str | None = Field(default=None, max_length=64)
    compute_id: str | None = Field(default=None, max_length=64)
    capabilities: list[CapabilityName] | None = Field(default=None, min_length=1, max_length=64)
    planner: PlannerChoice | None = None
    review: ReviewMode | None = None


class PlanCreate(Request):
    """`POST /v1/plans`: the dry run of a task; it spends nothing but an LLM planner's tokens.

    `constraints.max_cost_usd` limits the cost of these tokens; without it the limit is 0.05 USD.
    """

    # Not white space alone, as both JSON Schema and Python define white space.
    objective: str = Field(min_length=1, max_length=10_000, pattern=r"[^\s\x1c-\x1f\x85]")
    constraints: Constraints = Constraints()


class PlanNode(Record):
    """One node that a plan would run, and the reason for it.

    Attributes:
        optional: whether its dependents run without its artifact if it fails.
        options: options of its execution, if the plan sets any.
        expect: expected properties of its result, which the review measures.
    """

    id: str
    capability: str
    input: JsonObject = {}
    depends_on: list[str] = []
    reason: str = ""
    optional: bool = False
    options: Options | None = None
    expect: Expect | None = None


class CostRange(Record):
    """The range of a plan's cost in US dollars; null if a part is unknown or not connected.

    Attributes:
        low: minimum: short answers of the cheapest model that may be called.
        expected: expected bill of the plan's first choices.
        high: maximum bill if each node makes one call, and at most `max_cost_usd`.
    """

    low: Usd | None = None
    expected: Usd | None = None
    high: Usd | None = None


class Missing(Record):
    """A capability that a plan needs and does not have.

    Attributes:
        any_of: providers of which one must be connected, the default first; empty if no provider
            here offers the capability.
    """

    capability: str
    any_of: list[str] = []


class PlanReading(Record):
    """The part of its objective that a plan understood.

    Attributes:
        understood: share of the objective's words that were understood, from 0 to 1.
        words: words that were not understood, as the objective spells them.
    """

    understood: float = Field(default=1.0, ge=0, le=1)
    words: list[str] = []


class Plan(Record):
    """A plan; it is executable if nothing is missing and no question is open."""

    id: str
    objective: str
    nodes: list[PlanNode] = []
    deliverables: list[str] = Field(
        default=[], description="nodes whose results the objective asks for"
    )
    missing_capabilities: list[str] = []
    missing_connections: list[str] = []
    missing: list[Missing] = Field(
        default=[], description="missing capabilities, each with its possible providers"
    )
    reading: PlanReading = PlanReading()
    question: str | None = Field(
        default=None, description="question that a person must answer before the plan can run"
    )
    estimated_cost_usd: CostRange = CostRange()
    cost_incurred_usd: Usd = Field(
        default=0.0, description="cost of planning in US dollars: the language model's tokens"
    )
    llm_job_ids: list[str] = Field(
        default=[], description="jobs of the language model that planned it"
    )
    planner: Literal["rules", "llm"] = "rules"
    planner_reason: str = Field(default="", description="reason for the choice of the planner")
    rationale: str = ""
    created_at: Timestamp

    @property
    def executable(self) -> bool:
        """Whether the plan can run in its current state."""
        lacks = self.missing_capabilities or self.missing_connections or self.question
        return bool(self.nodes) and not lacks
