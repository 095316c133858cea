"""Tasks: an objective that is planned, run, reviewed and retried (specification, "Task")."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from toolkit.contract.base import ErrorInfo, JsonObject, Record, Request, Timestamp, Usd
from toolkit.contract.choices import Decision
from toolkit.contract.jobs import Options
from toolkit.contract.plans import Constraints, Missing, PlanCreate
from toolkit.contract.workflows import NodeId

TaskStatus = Literal["planning", "blocked", "executing", "reviewing", "completed", "failed"]
FINAL_TASK_STATUSES: frozenset[str] = frozenset({"completed", "failed"})
Issue = Annotated[str, Field(min_length=1, max_length=1_000)]
PERSON_REVIEWER = "person"  # who reviews where it is not the checks
JUDGE_REVIEWER = "judge"


class TaskCreate(PlanCreate):
    """`POST /v1/tasks`."""


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
    """The action of a retry: which node runs again, how, and with what added to its input."""

    node_id: str
    action: str
    constraints: JsonObject = {}


class Review(Record):
    """The reviewer's verdict."""

    decision: Decision
    score: float = Field(ge=0, le=1)
    criteria: Criteria
    issues: list[str] = []
    recommended_action: RecommendedAction | None = None
    recommended_actions: list[RecommendedAction] = Field(
        default=[], description="all that a retry runs again, the one above among them"
    )
    reviewer: str = "checks"


class ReviewCreate(Request):
    """`POST /v1/tasks/{id}/reviews`: a person's verdict on a task that has ended.

    Attributes:
        score: overall; 1 for `pass`, 0.5 for `retry` and 0 for `fail`, by default.
        criteria: each by itself; as the score and the workflow say, by default.
        node_id: what a retry runs again, with all that depends on it; by default the last node
            that nothing depends on.
        constraints: input members that a retry sets on that node.
    """

    decision: Decision
    score: float | None = Field(default=None, ge=0, le=1)
    criteria: CriteriaGiven | None = None
    issues: list[Issue] = Field(default=[], max_length=100)
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
    """One workflow of a task, what it made, and how that was judged."""

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
    artifact_ids: dict[str, str] = Field(
        default={}, description="what the task delivers, by node id"
    )
    review: Review | None = None
    reviews: list[Review] = []
    review_attempts: int = 0
    attempts: list[TaskAttempt] = Field(
        default=[], description="every workflow that was reviewed, oldest first"
    )
    missing_capabilities: list[str] = []
    missing_connections: list[str] = []
    missing: list[Missing] = Field(
        default=[], description="what it lacks: each capability, and the providers that would do"
    )
    question: str | None = Field(
        default=None, description="what a person has to answer before it goes on"
    )
    warnings: list[str] = Field(default=[], description="those of the workflow that it stands at")
    estimated_cost_usd: Usd | None = None
    cost_usd: Usd | None = None
    cost_incurred_usd: Usd = 0.0
    error: ErrorInfo | None = None
    created_at: Timestamp
    completed_at: Timestamp | None = None


__all__ = [
    "FINAL_TASK_STATUSES",
    "JUDGE_REVIEWER",
    "PERSON_REVIEWER",
    "AgentCall",
    "Constraints",
    "Criteria",
    "Decision",
    "Missing",
    "RecommendedAction",
    "Review",
    "ReviewCreate",
    "Task",
    "TaskAttempt",
    "TaskCreate",
    "TaskStatus",
]
