"""Tasks: an objective that is planned, run, reviewed and retried (specification, "Task")."""

from typing import Literal

from pydantic import Field

from toolkit.contract.base import ErrorInfo, JsonObject, Record, Timestamp, Usd
from toolkit.contract.plans import Constraints, PlanCreate

TaskStatus = Literal["planning", "blocked", "executing", "reviewing", "completed", "failed"]
FINAL_TASK_STATUSES: frozenset[str] = frozenset({"completed", "failed"})
Decision = Literal["pass", "retry", "fail"]


class TaskCreate(PlanCreate):
    """`POST /v1/tasks`."""


class Criteria(Record):
    """The three criteria of a review, each from 0 to 1."""

    objective_alignment: float = Field(ge=0, le=1)
    technical_success: float = Field(ge=0, le=1)
    output_completeness: float = Field(ge=0, le=1)


class RecommendedAction(Record):
    """What a retry does: which node runs again, how, and with what added to its input."""

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
    reviewer: str = "checks"


class Task(Record):
    """A task as it stands."""

    id: str
    objective: str
    constraints: Constraints = Constraints()
    status: TaskStatus = "planning"
    status_detail: str | None = None
    plan_id: str | None = None
    workflow_id: str | None = None
    workflow_ids: list[str] = Field(default=[], description="every workflow made, oldest first")
    final_artifact_id: str | None = None
    artifact_ids: dict[str, str] = Field(
        default={}, description="what the task delivers, by node id"
    )
    review: Review | None = None
    reviews: list[Review] = []
    review_attempts: int = 0
    missing_capabilities: list[str] = []
    missing_connections: list[str] = []
    cost_usd: Usd | None = None
    cost_incurred_usd: Usd = 0.0
    error: ErrorInfo | None = None
    created_at: Timestamp
    completed_at: Timestamp | None = None


__all__ = [
    "FINAL_TASK_STATUSES",
    "Constraints",
    "Criteria",
    "Decision",
    "RecommendedAction",
    "Review",
    "Task",
    "TaskCreate",
    "TaskStatus",
]
