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
MAX_REVIEW_RETRIES = 2  # maximum number of repeats that reviews cause
Issue = Annotated[str, Field(min_length=1, max_length=1_000)]
Answer = Annotated[str, Field(min_length=1, max_length=2_000, pattern=r"\S")]
PERSON_REVIEWER = "person"  # the reviewer's name for a person's verdict
JUDGE_REVIEWER = "judge"


class PlanNodeCreate(NodeCreate):
    """One node of a plan to run, and the reason for it."""

    reason: str = Field(default="", max_length=2_000)
    expect: Expect | None = None


class PlanGiven(Request):
    """A plan to run unchanged: a preview, edited or not, or a plan that a caller wrote.

    Attributes:
        nodes: nodes of the plan.
        deliverables: nodes whose results are wanted; by default the nodes without dependents.
    """

    nodes: list[PlanNodeCreate] = Field(max_length=1000, json_schema_extra={"minItems": 1})
    deliverables: list[NodeId] = Field(default=[], max_length=1000)

    @classmethod
    def of(cls, plan: Plan) -> "PlanGiven":
        """Convert an existing plan to a request that runs it unchanged."""
        nodes = [
            PlanNodeCreate(**{**dict(node), "options": node.options or Options()})
            for node in plan.nodes
        ]
        return cls(nodes=nodes, deliverables=plan.deliverables)


class TaskCreate(PlanCreate):
    """`POST /v1/tasks`.

    Attributes:
        plan: plan to run unchanged, without planning; reviews compare its results with the
            objective.
    """

    plan: PlanGiven | None = None
    tags: GivenTags = []
    note: GivenNote = ""


class TaskResume(Request):
    """`POST /v1/tasks/{id}/resume`.

    Attributes:
        answer: answer to the task's question; required with a question, else rejected.
    """

    answer: Answer | None = None


class TaskAnswer(Record):
    """A person's answer to a question; later planning includes it."""

    question: str
    answer: str


class Criteria(Record):
    """The three criteria of a review, each from 0 to 1."""

    objective_alignment: float = Field(ge=0, le=1)
    technical_success: float = Field(ge=0, le=1)
    output_completeness: float = Field(ge=0, le=1)


class CriteriaGiven(Request):
    """The three criteria as a person sets them."""

    objective_alignment: float = Field(ge=0, le=1)
    technical_success: float = Field(ge=0, le=1)
    output_completeness: float = Field(ge=0, le=1)


class RecommendedAction(Record):
    """The action of a retry: the node that runs again, and the changes to its input.

    Attributes:
        action: `regenerate` from an automatic review, `retry` from a person's verdict.
        constraints: members of the input that change.
        instructions: text added to the node's first request, or a person's remarks.
        provider: provider to call this time, if it is a different provider.
    """

    node_id: str
    action: str
    constraints: JsonObject = {}
    instructions: list[str] = []
    provider: str | None = None


class Review(Record):
    """A verdict of an automatic reviewer or of a person.

    Attributes:
        score, criteria: always set by an automatic reviewer; may be null in a person's verdict.
        attempt: number of the task's attempt under review, counted from 1.
        saw_pictures: whether the judge was shown the pictures.
    """

    decision: Decision
    score: float | None = Field(default=None, ge=0, le=1)
    criteria: Criteria | None = None
    issues: list[str] = []
    recommended_action: RecommendedAction | None = None
    recommended_actions: list[RecommendedAction] = Field(
        default=[], description="all nodes that a retry runs again, including `recommended_action`"
    )
    reviewer: str = "checks"
    attempt: int | None = None
    saw_pictures: bool = False


class ReviewCreate(Request):
    """`POST /v1/tasks/{id}/reviews`: a person's verdict on a task that has ended.

    Attributes:
        score: overall score from 0 to 1; null by default.
        criteria: scores of the three criteria; null by default.
        issues: faults of the results; a retry passes them on as a person's remarks.
        attempt: attempt under review, counted from 1. The default is the attempt that the task
            delivers, else the best attempt for `pass`, and the last for others.
        node_id: node that a retry runs again, with its dependents; by default the last without
            dependents. With issues it is the nodes before it that the issues can be traced to.
        constraints: members of the input that a retry sets on that node.
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
            raise ValueError("node_id and constraints need the decision `retry`")
        return self


class AgentCall(Record):
    """The agent that a task runs as, and the run that asked for it."""

    agent_id: str
    name: str
    version: str
    run_id: str
    input: JsonObject = {}
    options: Options = Options()


class TaskAttempt(Record):
    """One workflow of a task, its results, and their review.

    Attributes:
        review: last verdict on it; null if it was cancelled before a verdict.
    """

    workflow_id: str
    review: Review | None = None
    artifact_ids: dict[str, str] = Field(
        default={}, description="its artifacts that the task delivers, by node id"
    )
    cost_usd: Usd | None = None


class Task(Record):
    """A task in its current state.

    Attributes:
        estimated_cost_usd: expected cost of its plan, in US dollars; null if a price is unknown.
        cost_usd: sum of its workflows' own costs, in US dollars; null if a cost is unknown.
        cost_incurred_usd: total paid in US dollars, which budgets count, with failed attempts and
            retries.
    """

    id: str
    objective: str
    constraints: Constraints = Constraints()
    agent: AgentCall | None = None
    status: TaskStatus = "planning"
    status_detail: str | None = None
    plan_id: str | None = None
    plan_given: bool = Field(default=False, description="whether the caller gave the plan")
    workflow_id: str | None = None
    workflow_ids: list[str] = Field(
        default=[], description="all workflows of the task, oldest first"
    )
    llm_job_ids: list[str] = Field(
        default=[], description="jobs of the language models that planned it or judged its results"
    )
    final_artifact_id: str | None = None
    best_artifact_id: str | None = Field(
        default=None,
        description="artifact of the attempt with the best score, in any status of the task",
    )
    final_attempt: int | None = Field(
        default=None, description="number of the delivered attempt, from 1"
    )
    artifact_ids: dict[str, str] = Field(default={}, description="delivered artifacts, by node id")
    review: Review | None = None
    reviews: list[Review] = []
    review_attempts: int = 0
    attempts: list[TaskAttempt] = Field(
        default=[], description="all workflows that ran, each with its review, oldest first"
    )
    missing_capabilities: list[str] = []
    missing_connections: list[str] = []
    missing: list[Missing] = Field(
        default=[], description="missing capabilities, each with its possible providers"
    )
    question: str | None = Field(
        default=None, description="question that a person must answer before the task continues"
    )
    answers: list[TaskAnswer] = Field(default=[], description="answers of a person so far")
    warnings: list[str] = Field(
        default=[], description="warnings of the delivered workflow, or else of the last workflow"
    )
    estimated_cost_usd: Usd | None = None
    cost_usd: Usd | None = None
    cost_incurred_usd: Usd = 0.0
    error: ErrorInfo | None = None
    tags: list[str] = []
    note: str | None = None
    created_at: Timestamp
    completed_at: Timestamp | None = None
