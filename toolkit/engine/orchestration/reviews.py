"""The service of reviews by a person, who passes, fails or re-runs part of an ended task."""

from toolkit.contract.errors import Detail, ErrorCode, RequestError
from toolkit.contract.plans import Plan
from toolkit.contract.tasks import (
    FINAL_TASK_STATUSES,
    PERSON_REVIEWER,
    Criteria,
    RecommendedAction,
    Review,
    ReviewCreate,
    Task,
)
from toolkit.contract.workflows import WorkflowRecord
from toolkit.engine.context import EngineContext
from toolkit.engine.execution.leases import LeaseManager
from toolkit.engine.orchestration.plans import Plans
from toolkit.engine.orchestration.task_manager import (
    MAX_REVIEW_RETRIES,
    TaskManager,
    make_error_info,
)
from toolkit.engine.orchestration.tasks import Tasks
from toolkit.engine.orchestration.workflows import Workflows
from toolkit.engine.request_context import RequestContext
from toolkit.store import Lease

_DEFAULT_SCORES = {"pass": 1.0, "retry": 0.5, "fail": 0.0}


class Reviews:
    """The service of `/v1/tasks/{id}/reviews`."""

    def __init__(
        self,
        core: EngineContext,
        leases: LeaseManager,
        plans: Plans,
        workflows: Workflows,
        tasks: Tasks,
        manager: TaskManager,
    ) -> None:
        self._core = core
        self._leases = leases
        self._plans = plans
        self._workflows = workflows
        self._tasks = tasks
        self._manager = manager

    async def create(self, context: RequestContext, task_id: str, request: ReviewCreate) -> Task:
        """Replace the reviewer's verdict on a task that has ended by a person's.

        The costs of a retry are charged to the key of the request.

        Raises:
            RequestError: `NOT_FOUND`; `CONFLICT` for a task that is still worked on, made nothing,
                or was retried as often as it may be; `INVALID_REQUEST` for a node that is not
                there, or constraints that do not fit it; `BUDGET_EXCEEDED` for a retry that the
                key's allowance does not cover.
            ServiceError: `RATE_LIMITED` for a retry while too much of the account's is queued.
        """
        task = await self._tasks.get(context, task_id)
        if task.status not in FINAL_TASK_STATUSES or not task.workflow_id or not task.plan_id:
            raise RequestError(
                ErrorCode.CONFLICT, f"The task is {task.status}, with nothing made to judge yet."
            )
        workflow = await self._workflows.get(context, task.workflow_id)
        plan = await self._plans.get(context, task.plan_id)
        verdict = _make_review(task, workflow, request)
        if verdict.decision == "retry":
            await self._core.allowances.check_bound(context, None)
            await self._core.quotas.check_queue(context.account_id)
        lease = await self._leases.reacquire(task_id, context.key_id)
        try:
            task.review = verdict
            task.reviews.append(verdict)
            await self._apply_review(task, lease, workflow, plan, verdict)
        except BaseException:
            await self._leases.release(lease)  # nothing was changed: it has still ended
            raise
        if verdict.decision == "retry":
            self._leases.start(lease)
        else:
            await self._leases.release(lease)
        return await self._tasks.get(context, task_id)

    async def _apply_review(
        self, task: Task, lease: Lease, workflow: WorkflowRecord, plan: Plan, verdict: Review
    ) -> None:
        """Apply a verdict to a task."""
        task.error, task.completed_at = None, None
        task.final_artifact_id, task.artifact_ids = None, {}
        if verdict.recommended_action is not None:
            await self._manager.rerun(task, lease, workflow, plan, verdict.recommended_action)
        elif verdict.decision == "pass":
            await self._manager.deliver(task, lease, workflow, plan)
        else:
            await self._manager.fail(task, lease, make_error_info(ErrorCode.REVIEW_FAILED))


def _make_review(task: Task, workflow: WorkflowRecord, request: ReviewCreate) -> Review:
    """Make the review of a person's verdict.

    Raises:
        RequestError: `CONFLICT`, `INVALID_REQUEST`.
    """
    score = _DEFAULT_SCORES[request.decision] if request.score is None else request.score
    if request.decision == "pass" and workflow.status != "completed":
        raise RequestError(
            ErrorCode.CONFLICT, "Its workflow did not complete; ask for a retry, or fail it."
        )
    criteria = Criteria(
        objective_alignment=score,
        technical_success=float(workflow.status == "completed"),
        output_completeness=score,
    )
    if request.criteria is not None:
        criteria = Criteria(**request.criteria.model_dump())
    return Review(
        decision=request.decision,
        score=score,
        criteria=criteria,
        issues=request.issues,
        recommended_action=_make_action(task, workflow, request),
        reviewer=PERSON_REVIEWER,
    )


def _make_action(
    task: Task, workflow: WorkflowRecord, request: ReviewCreate
) -> RecommendedAction | None:
    """Choose what a retry runs again: the node that is named, or the one that delivers.

    Raises:
        RequestError: `CONFLICT` when no retry is left, `INVALID_REQUEST`.
    """
    if request.decision != "retry":
        return None
    if task.review_attempts >= MAX_REVIEW_RETRIES:
        raise RequestError(
            ErrorCode.CONFLICT,
            f"It was retried {MAX_REVIEW_RETRIES} times, which is all; submit a new task.",
        )
    nodes = [node.id for node in workflow.nodes]
    depended_on = {up for node in workflow.nodes for up in node.depends_on}
    last = [node_id for node_id in nodes if node_id not in depended_on][-1]
    node_id = request.node_id or last
    if node_id not in nodes:
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            "The retry names a node that is not there.",
            details=[Detail("node_id", f"must be one of {', '.join(nodes)}")],
        )
    return RecommendedAction(node_id=node_id, action="retry", constraints=request.constraints)
