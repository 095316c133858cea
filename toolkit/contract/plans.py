"""Plans: what a task would do, before it does it (decisions, "Records")."""

from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, Field

from toolkit.contract.base import JsonObject, Record, Request, Timestamp, Usd
from toolkit.contract.choices import OptimizeFor, PlannerChoice, ReviewMode
from toolkit.contract.jobs import Options

CapabilityName = Annotated[str, Field(min_length=1, max_length=128)]


def _check_range(given: list[float | None]) -> list[float | None]:
    least, most = given
    if least is not None and most is not None and most < least:
        raise ValueError("the least is more than the most")
    return given


# A number, or the least and the most of a range; null where it has no end.
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
    """What a node's result has to come to, as data that the checks of a review count.

    Each amount is a number, or the least and the most of a range, such as `[180, 220]`.

    Attributes:
        words, characters, sentences, lines, paragraphs, items: of a text; items are those of its
            lists, or of its JSON or CSV.
        duration_s: of a sound, in seconds.
        width, height: of a picture or card, in pixels.
        language: of a text, by its code of ISO 639-1, such as `de`.
        format: of a text.
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
    """The limits that a task must keep to.

    Attributes:
        endpoint_id, compute_id: where GPU work runs; of both, on the endpoint.
        capabilities: the only ones that may be used, such as `llm.generate`; all, by default.
        planner: who plans: `llm`, a language model; `rules`, by keywords; or `auto`, the model
            where one is connected outside the sandbox. The operator's setting, by default.
        review: who reviews: `checks`; the `judge`, a language model as well; or `auto`, the judge
            where one is connected outside the sandbox and affordable. The operator's setting, by
            default.
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

    Those are bounded by `constraints.max_cost_usd`, or else by 0.05 USD.
    """

    # Not white space alone, by whichever of the readings of it that schemas and Python have.
    objective: str = Field(min_length=1, max_length=10_000, pattern=r"[^\s\x1c-\x1f\x85]")
    constraints: Constraints = Constraints()


class PlanNode(Record):
    """One node a plan would run, and why it is in the plan.

    Attributes:
        optional: whether what depends on it runs without its artifact where it fails.
        options: how it is carried out, where the plan says so.
        expect: what its result has to come to, which the review counts.
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
    cost_incurred_usd: Usd = Field(
        default=0.0, description="what planning it cost: a language model's tokens"
    )
    llm_job_ids: list[str] = Field(
        default=[], description="the jobs by which a language model was asked for it"
    )
    planner: Literal["rules", "llm"] = "rules"
    planner_reason: str = Field(default="", description="why it was planned by this planner")
    rationale: str = ""
    created_at: Timestamp

    @property
    def executable(self) -> bool:
        """True if it can be run as it stands."""
        lacks = self.missing_capabilities or self.missing_connections or self.question
        return bool(self.nodes) and not lacks
