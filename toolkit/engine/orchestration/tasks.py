"""The service of `/v1/tasks`: accepts, reads, cancels and resumes; the manager runs them."""

from collections.abc import Callable

from pydantic import BaseModel, ValidationError

from toolkit.contract.base import ErrorInfo, now
from toolkit.contract.errors import Detail, ErrorCode, RequestError
from toolkit.contract.ids import Prefix, new_id
from toolkit.contract.tasks import (
    FINAL_TASK_STATUSES,
    AgentCall,
    Task,
    TaskAnswer,
    TaskCreate,
    TaskResume,
    TaskStatus,
)
from toolkit.engine.annotations import build_annotation, list_given_tags
from toolkit.engine.context import EngineContext
from toolkit.engine.execution.leases import LeaseManager
from toolkit.engine.execution.node_states import make_error_info
from toolkit.engine.orchestration.planning import Planning
from toolkit.engine.orchestration.plans import Plans
from toolkit.engine.orchestration.task_manager import TaskManager, make_task_event
from toolkit.engine.request_context import RequestContext
from toolkit.engine.services.idempotency import commit_accepted
from toolkit.engine.services.record_reader import WorkReader
from toolkit.store import TASK_LIST


class Tasks(WorkReader[Task]):
    """The operations of `/v1/tasks`."""

    def __init__(
        self,
        core: EngineContext,
        leases: LeaseManager,
        planning: Planning,
        plans: Plans,
        manager: TaskManager,
    ) -> None:
        super().__init__(core, core.records.tasks, TASK_LIST)
        self._leases = leases
        self._planning = planning
        self._plans = plans
        self._manager = manager

    async def create(
        self,
        context: RequestContext,
        request: TaskCreate,
        *,
        agent: AgentCall | None = None,
        show: Callable[[Task], BaseModel] = lambda task: task,
    ) -> Task:
        """Accept a task; it is durable and being planned when this returns.

        Args:
            request: objective, constraints, and an optional plan.
            agent: agent that the task is a run of, if any.
            show: function that makes the caller's answer from the task.

        Raises:
            RequestError: `NOT_FOUND` for an unknown endpoint, `INVALID_WORKFLOW` for a plan that
                cannot run.
        """
        await self._plans.check(context.account_id, request)
        plan = None
        if request.plan is not None:
            plan = await self._plans.make(context.account_id, request)
        await self._manager.check_allowance(context, request)
        await self._core.quotas.check_queue(context.account_id)
        task = Task(
            id=new_id(Prefix.TASK),
            objective=request.objective,
            constraints=request.constraints,
            agent=agent,
            plan_id=plan.id if plan else None,
            plan_given=plan is not None,
            tags=list_given_tags(request.tags),
            note=request.note or None,
            created_at=now(),
        )
        root_insert, lease = self._core.store.leases.build_root(
            task.id, "task", context.account_id, context.key_id, agent.agent_id if agent else None
        )
        task_insert = self._core.records.tasks.make_insert(
            context.account_id, task, status=task.status, run_id=agent.run_id if agent else None
        )
        plan_inserts = (
            [self._core.records.plans.make_insert(context.account_id, plan)] if plan else []
        )
        annotation = build_annotation(context.account_id, task.id, request.tags, request.note)
        await commit_accepted(
            self._core,
            context,
            [root_insert, *plan_inserts, task_insert, make_task_event(task), *annotation],
            show(task),
        )
        if context.watches_text:
            self._core.texts.expect(task.id)
        self._leases.start(lease)
        return task

    async def cancel(self, context: RequestContext, task_id: str) -> Task:
        """Cancel a task, which is then `failed` with `CANCELLED`; an ended task stays unchanged."""
        task = await self.get(context, task_id)
        if task.status == "blocked":
            await self._move_blocked(task, "failed", make_error_info(ErrorCode.CANCELLED))
        elif task.status not in FINAL_TASK_STATUSES:
            await self._leases.cancel(task_id)
        return await self.get(context, task_id)

    async def resume(self, context: RequestContext, task_id: str, request: TaskResume) -> Task:
        """Return a blocked task to planning; charge its costs to the key of the request.

        Raises:
            RequestError: `CONFLICT` if it is not blocked, `INVALID_REQUEST` for a question without
                an answer or the reverse, `BUDGET_EXCEEDED` for a key whose allowance is used up.
        """
        task = await self.get(context, task_id)
        if task.status != "blocked":
            raise RequestError(
                ErrorCode.CONFLICT,
                f"The task is {task.status}; only a blocked task can be resumed.",
            )
        answers = _check_answer(task, request)
        try:
            plan_request = await self._planning.build_request(context.account_id, task, answers)
        except ValidationError:
            raise _make_answer_error("is too long, together with the objective.") from None
        await self._manager.check_allowance(context, plan_request)
        await self._core.quotas.check_queue(context.account_id)
        task.answers += answers
        await self._move_blocked(task, "planning", None, context.key_id)
        return await self.get(context, task_id)

    async def _move_blocked(
        self, task: Task, status: TaskStatus, error: ErrorInfo | None, key_id: str | None = None
    ) -> None:
        """Move a blocked task, whose work item is closed, to another state."""
        lease = await self._leases.reacquire(task.id, key_id)
        task.missing_capabilities, task.missing_connections, task.missing = [], [], []
        task.error = error
        await self._manager.set_status(task, lease, status)
        if status == "planning":
            self._leases.start(lease)
        else:
            await self._core.store.leases.release(lease, is_done=True)


def _check_answer(task: Task, request: TaskResume) -> list[TaskAnswer]:
    """Return the answer to a task's question in a list, which is empty without a question.

    Raises:
        RequestError: `INVALID_REQUEST` for a missing answer, or an answer without a question.
    """
    if task.question is None:
        if request.answer is not None:
            raise _make_answer_error("is not needed: omit it, because the task asks nothing.")
        return []
    if request.answer is None:
        raise _make_answer_error(f"is required: {task.question}")
    return [TaskAnswer(question=task.question, answer=request.answer)]


def _make_answer_error(fault: str) -> RequestError:
    return RequestError(
        ErrorCode.INVALID_REQUEST, f"The answer {fault}", details=[Detail("answer", fault)]
    )
