"""Tasks: an objective that is planned, run, reviewed and retried (specification, "Task")."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from toolkit.contract.annotations import GivenNote, GivenTags
from toolkit.contract.base import ErrorInfo, JsonObject, Record, Request, Timestamp, Usd
from toolkit.contract.choices import Decision
from toolkit.contract.jobs import Options
from toolkit.contract.plans import Constraints, Expect, Missing, Plan, PlanCreate
from toolkit.contract.workflows import NodeCreate, NodeId

TaskStatus = Literal["planning", "blocked", "executing", "reviewing", "completed", "failed"]
FINAL_TASK_STATUSES: frozenset[str] = frozenset({"completed", "failed"})
MAX_REVIEW_RETRIES = 2  # times that reviews have a task run again
Issue = Annotated[str, Field(min_length=1, max_length=1_000)]
Answer = Annotated[str, Field(min_length=1, max_length=2_000, pattern=r"\S")]
PERSON_REVIEWER = "person"  # who reviews where it is not the checks
JUDGE_REVIEWER = "judge"


class PlanNodeCreate(NodeCreate):
    """One node of a plan to run, and why it is in the plan."""

    reason: str = Field(default="", max_length=2_000)
    expect: Expect | None = None


class PlanGiven(Request):
    """A plan to run as it is: one that was previewed, edited or not, or one that a caller made.

    Attributes:
        nodes: its nodes.
        deliverables: those whose results are asked for; those that nothing depends on, by default.
    """

    nodes: list[PlanNodeCreate] = Field(max_length=1000, json_schema_extra={"minItems": 1})
    deliverables: list[NodeId] = Field(default=[], max_length=1000)

    @classmethod
    def of(cls, plan: Plan) -> "PlanGiven":
        """Give a plan that is there as it is."""
        nodes = [
            PlanNodeCreate(**{**dict(node), "options": node.options or Options()})
            for node in plan.nodes
        ]
        return cls(nodes=nodes, deliverables=plan.deliverables)


class TaskCreate(PlanCreate):
    """`POST /v1/tasks`.

    Attributes:
        plan: is run as it is, and nothing is planned; the objective is what its results are
            reviewed by.
    """

    plan: PlanGiven | None = None
    tags: GivenTags = []
    note: GivenNote = ""


class TaskResume(Request):
    """`POST /v1/tasks/{id}/resume`.

    Attributes:
        answer: to the question that blocks the task; needed where there is one, and only there.
    """

    answer: Answer | None = None


class TaskAnswer(Record):
    """The answer that a person gave to a question; what is planned then includes it."""

    question: str
    answer: str


class Criteria(Record):
    """The three criteria of a review, each from 0 to 1."""

    objective_alignment: float = Field(ge=0, le=1)
    technical_success: float = Field(ge=0, le=1)
    output_completeness: float = Field(ge=0, le=1)


class CriteriaGiven(Request):
    """The three criteria as a person gives them."""

    objective_alignment: float = Field(ge=0, le=1)
    technical_success: float = Field(ge=0, le=1)
    output_completeness: float = Field(ge=0, le=1)


class RecommendedAction(Record):
    """The action of a retry: which node runs again, how, and with what added to its input.

    Attributes:
        action: `regenerate` as a review found, `retry` as a person asked.
        constraints: input members that differ.
        instructions: what one of those members adds to what the node was asked at first; a
            person's remarks where a person reviewed.
        provider: who is asked this time, where it is another one.
    """

    node_id: str
    action: str
    constraints: JsonObject = {}
    instructions: list[str] = []
    provider: str | None = None


class Review(Record):
    """A verdict, the reviewer's or a person's.

    Attributes:
        score, criteria: the reviewer gives both; a person need not, and they are null then.
        attempt: which of the task's attempts it judges, counted from 1.
    """

    decision: Decision
    score: float | None = Field(default=None, ge=0, le=1)
    criteria: Criteria | None = None
    issues: list[str] = []
    recommended_action: RecommendedAction | None = None
    recommended_actions: list[RecommendedAction] = Field(
        default=[], description="all that a retry runs again, the one above among them"
    )
    reviewer: str = "checks"
    attempt: int | None = None


class ReviewCreate(Request):
    """`POST /v1/tasks/{id}/reviews`: a person's verdict on a task that has ended.

    Attributes:
        score: overall; none, by default.
        criteria: each by itself; none, by default.
        issues: what is wrong; a retry tells it the nodes that it runs again, as a person's remarks.
        attempt: which of the task's attempts is judged, counted from 1; by default the one that
            the task delivers, or else for `pass` the best one, and for the others the last.
        node_id: what a retry runs again, with all that depends on it; by default the last node
            that nothing depends on, or where there are issues, those before it that can be told.
        constraints: input members that a retry sets on that node.
    """

    decision: Decision
    score: float | None = Field(default=None, ge=0, le=1)
    criteria: CriteriaGiven | None = None
    issues: list[Issue] = Field(default=[], max_length=100)
    attempt: int | None = Field(default=None, ge=1)
    node_id: NodeId | None = None
    constraints: JsonObject = {}

    @model_validator(mode="after")
    def _check_retry_fields(self) -> "ReviewCreate":
        if self.decision != "retry" and (self.node_id is not None or self.constraints):
            raise ValueError("node_id and constraints are for a retry")
        return self


class AgentCall(Record):
    """The agent that a task is carried out as, and the run that asked for it."""

    agent_id: str
    name: str
    version: str
    run_id: str
    input: JsonObject = {}
    options: Options = Options()


class TaskAttempt(Record):
    """One workflow of a task, what it made, and how that was judged.

    Attributes:
        review: the last verdict on it; none where it was cancelled before there was one.
    """

    workflow_id: str
    review: Review | None = None
    artifact_ids: dict[str, str] = Field(
        default={}, description="what it made of what the task delivers, by node id"
    )
    cost_usd: Usd | None = None


class Task(Record):
    """A task as it stands.

    Attributes:
        estimated_cost_usd: what its plan was expected to cost; null where a price is not known.
        cost_usd: the sum over its workflows of each one's own; null where one is not known.
        cost_incurred_usd: what was paid in all: failed attempts and retries too. Budgets go by it.
    """

    id: str
    objective: str
    constraints: Constraints = Constraints()
    agent: AgentCall | None = None
    status: TaskStatus = "planning"
    status_detail: str | None = None
    plan_id: str | None = None
    plan_given: bool = Field(
        default=False, description="whether its plan was given with it, and not made for it"
    )
    workflow_id: str | None = None
    workflow_ids: list[str] = Field(default=[], description="every workflow made, oldest first")
    llm_job_ids: list[str] = Field(
        default=[],
        description="the jobs by which a language model planned it or judged its results",
    )
    final_artifact_id: str | None = None
    best_artifact_id: str | None = Field(
        default=None, description="of the attempt that scored best, whatever the task's state"
    )
    final_attempt: int | None = Field(
        default=None, description="the attempt that is delivered, counted from 1"
    )
    artifact_ids: dict[str, str] = Field(
        default={}, description="what the task delivers, by node id"
    )
    review: Review | None = None
    reviews: list[Review] = []
    review_attempts: int = 0
    attempts: list[TaskAttempt] = Field(
        default=[], description="every workflow that was run, oldest first, with its review"
    )
    missing_capabilities: list[str] = []
    missing_connections: list[str] = []
    missing: list[Missing] = Field(
        default=[], description="what it lacks: each capability, and the providers that would do"
    )
    question: str | None = Field(
        default=None, description="what a person has to answer before it goes on"
    )
    answers: list[TaskAnswer] = Field(default=[], description="what a person has answered so far")
    warnings: list[str] = Field(
        default=[], description="those of the workflow that it delivers, or else ran last"
    )
    estimated_cost_usd: Usd | None = None
    cost_usd: Usd | None = None
    cost_incurred_usd: Usd = 0.0
    error: ErrorInfo | None = None
    tags: list[str] = []
    note: str | None = None
    created_at: Timestamp
    completed_at: Timestamp | None = None
