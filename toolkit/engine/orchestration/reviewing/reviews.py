"""The service of reviews by people, which pass, fail or partly re-run an ended task."""

from dataclasses import dataclass

from toolkit.contract.errors import Detail, ErrorCode, RequestError
from toolkit.contract.plans import Plan
from toolkit.contract.tasks import (
    FINAL_TASK_STATUSES,
    MAX_REVIEW_RETRIES,
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
from toolkit.engine.execution.node_states import make_error_info
from toolkit.engine.orchestration.plans import Plans
from toolkit.engine.orchestration.reviewing.evidence_reader import EvidenceReader
from toolkit.engine.orchestration.reviewing.task_attempts import (
    add_review,
    find_best,
    record_attempt,
)
from toolkit.engine.orchestration.task_manager import TaskManager
from toolkit.engine.orchestration.tasks import Tasks
from toolkit.engine.orchestration.workflows import Workflows
from toolkit.engine.request_context import RequestContext
from toolkit.planning.retry import make_asked_actions, tell_remarks
from toolkit.store import Lease


@dataclass(eq=False, slots=True)
class Reviews:
    """The operations of `/v1/tasks/{id}/reviews`: verdicts of people on ended tasks."""

    _core: EngineContext
    _leases: LeaseManager
    _plans: Plans
    _workflows: Workflows
    _evidence: EvidenceReader
    _tasks: Tasks
    _manager: TaskManager

    async def create(self, context: RequestContext, task_id: str, request: ReviewCreate) -> Task:
        """Record a person's verdict on an ended task, in place of the reviewer's; return the task.

        `pass` and `fail` end the task again, and `retry` runs part of it again. The costs of a
        retry are charged to the key of the request.

        Raises:
            RequestError: `NOT_FOUND`; `CONFLICT` for a task that is in progress, has no results,
                has no retries left, or would have the same results; `INVALID_REQUEST`
                for an unknown node or attempt, or constraints that do not fit the node;
                `BUDGET_EXCEEDED` for a retry that the key's allowance does not cover.
            ServiceError: `RATE_LIMITED` for a retry while the account has too much queued work.
        """
        task = await self._tasks.get(context, task_id)
        if task.status not in FINAL_TASK_STATUSES or not task.workflow_id or not task.plan_id:
            raise RequestError(
                ErrorCode.CONFLICT, f"The task is {task.status}, and has no results to review yet."
            )
        plan = await self._plans.get(context, task.plan_id)
        last = await self._workflows.get(context, task.workflow_id)
        index = _choose_attempt(task, request, record_attempt(task, last, plan))
        workflow = await self._workflows.get(context, task.attempts[index].workflow_id)
        if request.decision == "pass" and workflow.status != "completed":
            raise RequestError(
                ErrorCode.CONFLICT,
                "The workflow of this attempt did not complete; pass another attempt, ask for a"
                " retry, or fail it.",
            )
        actions: list[RecommendedAction] = []
        if request.decision == "retry":
            actions = await self._choose_actions(context, task, workflow, plan, request)
            await self._core.allowances.check_bound(context, None)
            await self._core.quotas.check_queue(context.account_id)
        verdict = Review(
            decision=request.decision,
            score=request.score,
            criteria=Criteria(**request.criteria.model_dump()) if request.criteria else None,
            issues=request.issues,
            recommended_action=next(iter(actions), None),
            recommended_actions=actions,
            reviewer=PERSON_REVIEWER,
        )
        lease = await self._leases.reacquire(task_id, context.key_id)
        try:
            add_review(task, index, verdict, plan)
            task.error = task.completed_at = None
            task.final_attempt, task.final_artifact_id, task.artifact_ids = None, None, {}
            await self._apply_review(task, lease, workflow, plan, verdict)
        except BaseException:
            await self._leases.release(lease)  # nothing was changed: the task is still ended
            raise
        if verdict.decision == "retry":
            self._leases.start(lease)
        else:
            await self._leases.release(lease)
        return await self._tasks.get(context, task_id)

    async def _apply_review(
        self, task: Task, lease: Lease, workflow: WorkflowRecord, plan: Plan, verdict: Review
    ) -> None:
        if verdict.decision == "retry":
            requests = await self._evidence.read_requests(lease.account_id, task, workflow, plan)
            actions = [tell_remarks(requests, action) for action in verdict.recommended_actions]
            await self._manager.rerun(task, lease, workflow, plan, actions)
        elif verdict.decision == "pass" and verdict.attempt is not None:
            await self._manager.deliver(task, lease, verdict.attempt - 1)
        else:
            await self._manager.fail(task, lease, make_error_info(ErrorCode.REVIEW_FAILED))

    async def _choose_actions(
        self,
        context: RequestContext,
        task: Task,
        workflow: WorkflowRecord,
        plan: Plan,
        request: ReviewCreate,
    ) -> list[RecommendedAction]:
        """Choose a retry's actions: for the named node, or for nodes that can use the remarks.

        Raises:
            RequestError: `CONFLICT` if no retry is left or nothing would change;
                `INVALID_REQUEST` for an unknown node.
        """
        if task.review_attempts >= MAX_REVIEW_RETRIES:
            raise RequestError(
                ErrorCode.CONFLICT,
                f"The task was retried {MAX_REVIEW_RETRIES} times, the maximum; submit a new task.",
            )
        ids = [node.id for node in workflow.nodes]
        depended_on = {up for node in workflow.nodes for up in node.depends_on}
        node_id = request.node_id or [sink for sink in ids if sink not in depended_on][-1]
        if node_id not in ids:
            raise RequestError(
                ErrorCode.INVALID_REQUEST,
                "The retry names a node that does not exist.",
                details=[Detail("node_id", f"must be one of {', '.join(ids)}")],
            )
        evidence = await self._evidence.read_requests(context.account_id, task, workflow, plan)
        actions = make_asked_actions(
            evidence, node_id, request.issues, request.constraints, task.review_attempts
        )
        if not actions:
            raise RequestError(
                ErrorCode.CONFLICT,
                "The result would be the same: name a node, or constraints that change its input.",
            )
        return actions


def _choose_attempt(task: Task, request: ReviewCreate, last: int) -> int:
    """Choose the index of the attempt that a verdict is on: the named or the final attempt.

    If there is neither, `pass` is on the best attempt, and another verdict on the last.

    Raises:
        RequestError: `INVALID_REQUEST` for an attempt that does not exist.
    """
    if request.attempt is not None:
        if request.attempt > len(task.attempts):
            raise RequestError(
                ErrorCode.INVALID_REQUEST,
                "The review names an attempt that does not exist.",
                details=[Detail("attempt", f"must be 1 to {len(task.attempts)}")],
            )
        return request.attempt - 1
    if task.final_attempt is not None:
        return task.final_attempt - 1
    best = find_best(task) if request.decision == "pass" else None
    return last if best is None else best
