"""Runs of agents: each is a task that the API shows as a run."""

from dataclasses import dataclass
from datetime import timedelta

from toolkit.contract.agents import Agent, fill_parameters
from toolkit.contract.base import JsonObject
from toolkit.contract.errors import Detail, ErrorCode, RequestError
from toolkit.contract.ids import Prefix, new_id
from toolkit.contract.jobs import JobStatus, Options
from toolkit.contract.operations.work_queries import WorkFilter
from toolkit.contract.plans import Constraints
from toolkit.contract.runs import Run, RunCreate
from toolkit.contract.tasks import FINAL_TASK_STATUSES, AgentCall, Task, TaskCreate, TaskStatus
from toolkit.engine.annotations import annotate_record
from toolkit.engine.context import EngineContext
from toolkit.engine.execution.workflow_graph import PLACE_FIELDS
from toolkit.engine.orchestration.agents import Agents
from toolkit.engine.orchestration.planning import Planning
from toolkit.engine.orchestration.plans import Plans
from toolkit.engine.orchestration.tasks import Tasks
from toolkit.engine.request_context import RequestContext
from toolkit.store import AGENT_RUN_LIST

# The state of a run whose task has ended; until then it is `running`.
RUN_STATUSES: dict[TaskStatus, JobStatus] = {"completed": "completed", "failed": "failed"}
# Options that an agent's run may have; the other options are for a single call of a vendor.
_ALLOWED_OPTIONS = PLACE_FIELDS | {"optimize_for", "max_cost_usd"}


@dataclass(eq=False, slots=True)
class AgentRuns:
    """The part of `/v1/runs` that serves `target: agent`."""

    _core: EngineContext
    _agents: Agents
    _planning: Planning
    _plans: Plans
    _tasks: Tasks

    async def create(self, context: RequestContext, request: RunCreate) -> Run:
        """Accept a run of an agent; it is durable and in progress when this returns.

        Raises:
            RequestError: `NOT_FOUND` for an unknown agent, `INVALID_REQUEST` for an input that does
                not fit the objective or an option that does not apply,
                `CREDENTIALS_MISSING`, `CAPABILITY_UNAVAILABLE`.
        """
        agent = await self._agents.find(context, request.name, request.version)
        task_request = TaskCreate(
            objective=_fill_objective(agent, request.input),
            constraints=_merge_constraints(agent, request.options),
            tags=request.tags,
            note=request.note,
        )
        await self._check_plan(context.account_id, task_request)
        call = AgentCall(
            agent_id=agent.id,
            name=agent.name,
            version=agent.version,
            run_id=new_id(Prefix.RUN),
            input=request.input,
            options=request.options,
        )
        task = await self._tasks.create(context, task_request, agent=call, show=to_run)
        return to_run(task)

    async def find(self, context: RequestContext, run_id: str) -> Task | None:
        """Find the task behind a run; None if the run is not an agent's."""
        tasks = self._core.records.tasks
        rows = await tasks.find_rows(context.scope, run_id=run_id)
        return tasks.read(rows[0]) if rows else None

    async def list(
        self, context: RequestContext, limit: int, before: str | None, work_filter: WorkFilter
    ) -> list[Run]:
        """Return a page of agents' runs that match a filter, newest first."""
        rows = await self._core.store.list_work(
            AGENT_RUN_LIST, context.scope, work_filter, limit, before
        )
        read = self._core.records.tasks.read
        return [to_run(annotate_record(read(row), row)) for row in rows]

    async def count(self, context: RequestContext, work_filter: WorkFilter) -> int | None:
        """Count the agents' runs that match a filter; None if that takes too long."""
        if work_filter.provider is not None:
            return 0  # an agent's run names no provider
        return await self._core.store.count_work(AGENT_RUN_LIST, context.scope, work_filter)

    async def cancel(self, context: RequestContext, task_id: str) -> Run:
        """Cancel a run; return a run that has ended unchanged."""
        return to_run(await self._tasks.cancel(context, task_id))

    async def _check_plan(self, account_id: str, request: TaskCreate) -> None:
        """Refuse a run whose plan could not run, before anything is stored or spent.

        Raises:
            RequestError: `CREDENTIALS_MISSING`, `INVALID_REQUEST`, `CAPABILITY_UNAVAILABLE`.
        """
        await self._plans.check(account_id, request)
        if await self._planning.is_by_model(account_id, request):
            return  # unknown before a model is asked, which costs money
        plan = await self._plans.make(account_id, request)
        if plan.missing_connections:
            names = ", ".join(plan.missing_connections)
            raise RequestError(
                ErrorCode.CREDENTIALS_MISSING, f"The agent needs a connection: register {names}."
            )
        if plan.question is not None:
            raise RequestError(ErrorCode.INVALID_REQUEST, plan.question)
        if not plan.executable:
            names = ", ".join(plan.missing_capabilities) or "an unknown capability"
            raise RequestError(
                ErrorCode.CAPABILITY_UNAVAILABLE,
                f"The agent needs {names}, which is not allowed for it or not available here.",
            )


def to_run(task: Task) -> Run:
    """Return an agent's task as the run that the API shows for it.

    Raises:
        ValueError: if the task is not an agent's.
    """
    if task.agent is None:
        raise ValueError(f"{task.id} is not an agent's task")
    status = RUN_STATUSES.get(task.status, "running")
    if task.error is not None and task.error.code == ErrorCode.CANCELLED.name:
        status = "cancelled"
    is_over = task.status in FINAL_TASK_STATUSES
    duration = task.completed_at - task.created_at if is_over and task.completed_at else None
    return Run(
        id=task.agent.run_id,
        target="agent",
        capability=f"{task.agent.name}@{task.agent.version}",
        task_id=task.id,
        input=task.agent.input,
        options=task.agent.options,
        status=status,
        status_detail=None if is_over else task.status,
        output=_make_output(task) if task.status == "completed" else None,
        artifact_id=task.final_artifact_id,
        error=task.error,
        cost_usd=task.cost_usd,
        cost_incurred_usd=task.cost_incurred_usd,
        cost_source="unknown" if task.cost_usd is None else "metered",
        latency_ms=None if duration is None else int(duration / timedelta(milliseconds=1)),
        created_at=task.created_at,
        started_at=task.created_at if task.plan_id is not None else None,
        completed_at=task.completed_at,
        tags=task.tags,
        note=task.note,
    )


def _make_output(task: Task) -> JsonObject:
    return {
        "task_id": task.id,
        "final_artifact_id": task.final_artifact_id,
        "artifact_ids": task.artifact_ids,
        "review": task.review.model_dump(mode="json") if task.review else None,
    }


def _fill_objective(agent: Agent, run_input: JsonObject) -> str:
    """Fill a run's input into an agent's objective.

    Raises:
        RequestError: `INVALID_REQUEST` for missing, unknown and non-text values.
    """
    values = {name: value for name, value in run_input.items() if isinstance(value, str)}
    faults = [
        *(
            Detail(f"input.{name}", "is missing")
            for name in agent.parameters
            if name not in run_input
        ),
        *(
            Detail(f"input.{name}", "is not a parameter")
            for name in run_input.keys() - agent.parameters
        ),
        *(Detail(f"input.{name}", "is not a text") for name in run_input.keys() - values.keys()),
    ]
    if faults:
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            "The input does not fit the agent's objective.",
            details=faults,
        )
    return fill_parameters(agent.objective, values)


def _merge_constraints(agent: Agent, options: Options) -> Constraints:
    """Merge a run's options over an agent's constraints; of two cost limits the lower applies.

    Raises:
        RequestError: `INVALID_REQUEST` for options that apply only to single calls.
    """
    overrides = options.model_dump(exclude_defaults=True)
    faults = [Detail(f"options.{name}", "does not apply to an agent") for name in overrides]
    faults = [fault for fault in faults if fault.path.partition(".")[2] not in _ALLOWED_OPTIONS]
    if faults:
        raise RequestError(
            ErrorCode.INVALID_REQUEST, "Some options apply only to single calls.", details=faults
        )
    limits = [agent.constraints.max_cost_usd, options.max_cost_usd]
    if any(limit is not None for limit in limits):
        overrides["max_cost_usd"] = min(limit for limit in limits if limit is not None)
    if PLACE_FIELDS & overrides.keys():  # the run sets the place, so the agent does not
        overrides = dict.fromkeys(PLACE_FIELDS) | overrides
    allowed = agent.constraints.capabilities or agent.capabilities or None
    return agent.constraints.model_copy(update={**overrides, "capabilities": allowed})
