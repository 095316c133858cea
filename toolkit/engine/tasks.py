"""Tasks: the manager flow of the specification, persisted at each step."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace

from toolkit.contract.base import ErrorInfo, now, rfc3339
from toolkit.contract.errors import ErrorCode, RequestError, ToolkitError, not_found
from toolkit.contract.ids import Prefix, new_id
from toolkit.contract.jobs import FINAL_STATUSES, Job, Options
from toolkit.contract.plans import Plan, PlanNode
from toolkit.contract.tasks import FINAL_TASK_STATUSES, Review, Task, TaskCreate, TaskStatus
from toolkit.contract.workflows import NodeCreate, Workflow, WorkflowCreate
from toolkit.engine.artifacts import Artifacts
from toolkit.engine.budget import spending
from toolkit.engine.core import Core
from toolkit.engine.graph import downstream
from toolkit.engine.nodes import dollars
from toolkit.engine.once import accept
from toolkit.engine.plans import Plans
from toolkit.engine.reviewer import Evidence, review
from toolkit.engine.roots import Roots
from toolkit.engine.work import Suspended
from toolkit.engine.workflows import Workflows, spec_of
from toolkit.plugins import Upstream
from toolkit.store import Change, Emit, Insert, Lease, Update

MAX_REVIEW_RETRIES = 2
TASK_NODE_RETRIES = 2


class Tasks:
    """`/v1/tasks`: each state has one step, which says what the next state is.

    ```
    planning  ── plan not executable ──▶ blocked ── resume ──▶ planning
        │ plan executable
        ▼
    executing ── workflow done ──▶ reviewing ── pass ──▶ completed
        ▲                              │ retry, at most twice
        └──────────────────────────────┤
                                       └── fail, or retries exhausted ──▶ failed
    ```
    """

    def __init__(
        self, core: Core, roots: Roots, plans: Plans, workflows: Workflows, artifacts: Artifacts
    ) -> None:
        self._core = core
        self._roots = roots
        self._plans = plans
        self._workflows = workflows
        self._artifacts = artifacts
        self._steps: Mapping[TaskStatus, Callable[[Task, Lease], Awaitable[None]]] = {
            "planning": self._plan,
            "executing": self._execute,
            "reviewing": self._review,
        }
        roots.handle("task", self._carry_out)

    async def create(
        self, account_id: str, request: TaskCreate, *, key_id: str | None = None
    ) -> Task:
        """Accept a task; it is durable and being planned when this returns.

        Raises:
            RequestError: `NOT_FOUND` for an endpoint that is not there.
        """
        await self._plans.check(account_id, request)
        await self._core.allowances.check(key_id, None)
        await self._core.quotas.check_queue(account_id)
        task = Task(
            id=new_id(Prefix.TASK),
            objective=request.objective,
            constraints=request.constraints,
            created_at=now(),
        )
        inserted, lease = self._core.store.new_root(task.id, "task", account_id, key_id)
        row: dict[str, object] = {
            "id": task.id,
            "account_id": account_id,
            "status": task.status,
            "created_at": rfc3339(task.created_at),
            "doc": task.model_dump_json(),
        }
        await accept(self._core, [inserted, Insert("tasks", row), _event(task)], task)
        self._roots.start(lease)
        return task

    async def get(self, account_id: str, task_id: str) -> Task:
        """One task.

        Raises:
            RequestError: `NOT_FOUND`.
        """
        row = await self._core.store.get("tasks", task_id)
        if row is None or row["account_id"] != account_id:
            raise not_found("task", task_id)
        return Task.model_validate_json(str(row["doc"]))

    async def list(self, account_id: str, limit: int, before: str | None) -> list[Task]:
        """A page of tasks, newest first."""
        rows = await self._core.store.page("tasks", account_id, limit=limit, before=before)
        return [Task.model_validate_json(str(row["doc"])) for row in rows]

    async def cancel(self, account_id: str, task_id: str) -> Task:
        """End a task, which is then `failed` with `CANCELLED`; an ended one stays as it is."""
        task = await self.get(account_id, task_id)
        if task.status == "blocked":
            await self._lease_again(task, "failed", _error(ErrorCode.CANCELLED))
        elif task.status not in FINAL_TASK_STATUSES:
            await self._roots.cancel(task_id)
        return await self.get(account_id, task_id)

    async def resume(self, account_id: str, task_id: str) -> Task:
        """Take a blocked task back to planning.

        Raises:
            RequestError: `CONFLICT` when it is not blocked.
        """
        task = await self.get(account_id, task_id)
        if task.status != "blocked":
            raise RequestError(
                ErrorCode.CONFLICT, f"The task is {task.status}; only a blocked one is resumed."
            )
        await self._core.quotas.check_queue(account_id)
        await self._lease_again(task, "planning", None)
        return await self.get(account_id, task_id)

    async def _lease_again(self, task: Task, status: TaskStatus, error: ErrorInfo | None) -> None:
        """Move a blocked task, whose root is closed, to another state."""
        lease = await self._core.store.reopen(task.id)
        if lease is None:
            raise RequestError(ErrorCode.CONFLICT, "The task is being worked on.")
        task.missing_capabilities, task.missing_connections = [], []
        task.error = error
        await self._move(task, lease, status)
        if status == "planning":
            self._roots.start(lease)
        else:
            await self._core.store.release(lease, done=True)

    async def _carry_out(self, lease: Lease) -> None:
        task = await self.get(lease.account_id, lease.root_id)
        try:
            while task.status in self._steps:
                if self._core.draining:
                    raise Suspended(task.id)
                await self._steps[task.status](task, lease)
        except ToolkitError as error:
            await self._fail(task, lease, ErrorInfo.of(error))
        except asyncio.CancelledError:
            if not self._core.draining and task.status not in FINAL_TASK_STATUSES:
                await self._sum_up(task)
                await self._fail(task, lease, _error(ErrorCode.CANCELLED))
            raise

    async def _plan(self, task: Task, lease: Lease) -> None:
        request = TaskCreate(objective=task.objective, constraints=task.constraints)
        plan = await self._plans.make(lease.account_id, request)
        task.plan_id = plan.id
        stored = self._plans.inserted(lease.account_id, plan)
        if not plan.executable:
            task.missing_capabilities = plan.missing_capabilities
            task.missing_connections = plan.missing_connections
            await self._move(task, lease, "blocked", [stored])
            return
        low, limit = plan.estimated_cost_usd.low, task.constraints.max_cost_usd
        if limit is not None and (low is None or low > limit):
            cost = "unknown" if low is None else f"at least ${low:.6f}"
            message = f"The plan's cost is {cost}, and max_cost_usd is ${limit:.6f}."
            task.error = _error(ErrorCode.BUDGET_EXCEEDED, message)
            await self._move(task, lease, "failed", [stored])
            return
        changes = await self._new_workflow(task, lease, plan.nodes, {})
        await self._move(task, lease, "executing", [stored, *changes])

    async def _new_workflow(
        self, task: Task, lease: Lease, nodes: Sequence[PlanNode], kept: Mapping[str, str]
    ) -> Sequence[Change]:
        """The workflow that a plan becomes, or one that re-runs what is not `kept`."""
        request = WorkflowCreate(
            name=task.objective.strip()[:200],
            endpoint_id=task.constraints.endpoint_id,
            compute_id=task.constraints.compute_id,
            max_retries=TASK_NODE_RETRIES,
            options=Options(optimize_for=task.constraints.optimize_for),
            nodes=[
                NodeCreate(
                    id=node.id,
                    capability=node.capability,
                    input=node.input,
                    depends_on=node.depends_on,
                )
                for node in nodes
            ],
        )
        options = await self._workflows.check(lease.account_id, request)
        workflow = self._workflows.draft(request, task_id=task.id)
        task.workflow_id = workflow.id
        task.workflow_ids.append(workflow.id)
        spec = spec_of(options, kept)
        return self._workflows.inserted(workflow, lease.account_id, task.id, spec)

    async def _execute(self, task: Task, lease: Lease) -> None:
        if task.workflow_id is None:
            raise not_found("workflow", "of this task")
        await self._sum_up(task)
        limit = spending(task.constraints.max_cost_usd, task.cost_incurred_usd)
        await self._workflows.run(task.workflow_id, lease, [limit])
        await self._sum_up(task)
        await self._move(task, lease, "reviewing")

    async def _review(self, task: Task, lease: Lease) -> None:
        workflow = await self._workflows.get(lease.account_id, task.workflow_id or "")
        plan = await self._plans.get(lease.account_id, task.plan_id or "")
        evidence = await self._evidence(lease.account_id, workflow, plan)
        left = MAX_REVIEW_RETRIES - task.review_attempts
        verdict = await self._core.driver.in_thread(
            lambda: review(
                task.objective,
                evidence,
                plan.deliverables,
                attempt=task.review_attempts,
                retries_left=left,
            )
        )
        task.review = verdict
        task.reviews.append(verdict)
        if verdict.decision == "pass" and workflow.status == "completed":
            await self._pass(task, lease, workflow, plan)
        elif verdict.decision == "retry" and verdict.recommended_action and left > 0:
            await self._retry(task, lease, workflow, plan, verdict)
        else:
            exhausted = task.review_attempts >= MAX_REVIEW_RETRIES
            code = ErrorCode.RETRIES_EXHAUSTED if exhausted else ErrorCode.REVIEW_FAILED
            await self._fail(task, lease, workflow.error or _error(code))

    async def _pass(self, task: Task, lease: Lease, workflow: Workflow, plan: Plan) -> None:
        by_id = {node.id: node.artifact_id for node in workflow.nodes}
        task.final_artifact_id = workflow.final_artifact_id
        task.artifact_ids = {
            node_id: artifact_id
            for node_id in plan.deliverables
            if (artifact_id := by_id.get(node_id)) is not None
        }
        await self._move(task, lease, "completed")

    async def _retry(
        self, task: Task, lease: Lease, workflow: Workflow, plan: Plan, verdict: Review
    ) -> None:
        """Run again only the node to blame and what depends on it, with the constraints."""
        action = verdict.recommended_action
        if action is None:
            raise ValueError("a retry without a recommended action")
        depends_on = {node.id: node.depends_on for node in workflow.nodes}
        again = {action.node_id} | downstream(action.node_id, depends_on)
        kept = {
            node.id: node.job_id
            for node in workflow.nodes
            if node.id not in again and node.status == "completed" and node.job_id is not None
        }
        reasons = {node.id: node.reason for node in plan.nodes}
        nodes = [
            PlanNode(
                id=node.id,
                capability=node.capability,
                input={**node.input, **(action.constraints if node.id == action.node_id else {})},
                depends_on=node.depends_on,
                reason=reasons.get(node.id, ""),
            )
            for node in workflow.nodes
        ]
        task.review_attempts += 1
        changes = await self._new_workflow(task, lease, nodes, kept)
        await self._move(task, lease, "executing", changes)

    async def _evidence(
        self, account_id: str, workflow: Workflow, plan: Plan
    ) -> Sequence[Evidence]:
        """What each node made, loaded for the reviewer to look at."""
        reasons = {node.id: node.reason for node in plan.nodes}
        evidence: dict[str, Evidence] = {}
        for node in workflow.nodes:
            output, blob = None, None
            if node.job_id is not None and node.artifact_id is not None:
                row = await self._core.store.get("jobs", node.job_id)
                output = Job.model_validate_json(str(row["doc"])).output if row else None
                kept = await self._artifacts.find(account_id, node.artifact_id)
                blob = await self._artifacts.blob(kept)
            evidence[node.id] = Evidence(
                node=PlanNode(
                    id=node.id,
                    capability=node.capability,
                    input=node.input,
                    depends_on=node.depends_on,
                    reason=reasons.get(node.id, ""),
                ),
                capability=self._core.registry.require(node.capability),
                status=node.status,
                output=output,
                blob=blob,
                error_code=node.error.code if node.error else None,
                upstream_text=None,
            )
        return [
            replace(item, upstream_text=_text_of([evidence[up] for up in item.node.depends_on]))
            for item in evidence.values()
        ]

    async def _sum_up(self, task: Task) -> None:
        """Add up what all of the task's workflows have cost so far."""
        estimates: list[float | None] = []
        incurred: list[float] = []
        for workflow_id in task.workflow_ids:
            for row in await self._core.store.find("jobs", workflow_id=workflow_id):
                job = Job.model_validate_json(str(row["doc"]))
                incurred.append(job.cost_incurred_usd)
                if job.status in FINAL_STATUSES and job.output is not None:
                    estimates.append(job.cost_usd)
        known = [cost for cost in estimates if cost is not None]
        task.cost_usd = dollars(known) if len(known) == len(estimates) else None
        task.cost_incurred_usd = dollars(incurred)

    async def _fail(self, task: Task, lease: Lease, error: ErrorInfo) -> None:
        task.error = error
        await self._move(task, lease, "failed")

    async def _move(
        self, task: Task, lease: Lease, status: TaskStatus, changes: Sequence[Change] = ()
    ) -> None:
        """Persist the task in its next state, with the event and what came with it."""
        task.status = status
        if status in FINAL_TASK_STATUSES:
            task.completed_at = now()
        saved = Update("tasks", task.id, {"status": status, "doc": task.model_dump_json()})
        await self._core.store.write([*changes, saved, _event(task)], lease=lease)


def _event(task: Task) -> Emit:
    data: dict[str, object] = {"id": task.id, "review_attempts": task.review_attempts}
    for name in ("plan_id", "workflow_id", "final_artifact_id"):
        if getattr(task, name) is not None:
            data[name] = getattr(task, name)
    if task.status == "blocked":
        data["missing_capabilities"] = task.missing_capabilities
        data["missing_connections"] = task.missing_connections
    if task.error is not None:
        data["error"] = task.error.model_dump(mode="json", exclude_none=True)
    return Emit(task.id, f"task.{task.status}", data, rfc3339(now()))


def _error(code: ErrorCode, message: str | None = None) -> ErrorInfo:
    return ErrorInfo(code=code.name, message=message or code.hint)


def _text_of(upstream: list[Evidence]) -> str | None:
    """What the upstream nodes said, as the node that takes it was given it."""
    texts = [
        text
        for item in upstream
        if item.blob is not None
        and (text := Upstream(item.node.id, "", item.blob).text) is not None
    ]
    return "\n\n".join(texts) or None
