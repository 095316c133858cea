"""The manager: takes a task from state to state, each step persisted before the next begins."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal

from toolkit.contract.base import ErrorInfo, now, rfc3339
from toolkit.contract.errors import ErrorCode, RequestError, ToolkitError, not_found
from toolkit.contract.plans import Plan, PlanNode
from toolkit.contract.tasks import (
    FINAL_TASK_STATUSES,
    RecommendedAction,
    Task,
    TaskCreate,
    TaskStatus,
)
from toolkit.contract.workflows import Workflow
from toolkit.engine.artifacts import Artifacts
from toolkit.engine.budget import spending
from toolkit.engine.core import Core
from toolkit.engine.graph import downstream
from toolkit.engine.nodes import dollars, total
from toolkit.engine.plans import Plans, workflow_of
from toolkit.engine.reviewer import Evidence, review
from toolkit.engine.stored import read_job
from toolkit.engine.work import Suspended
from toolkit.engine.workflows import Workflows, spec_of
from toolkit.plugins import Upstream
from toolkit.store import Change, Emit, Lease, Update

MAX_REVIEW_RETRIES = 2


class Manager:
    """The manager flow of the specification: each state has one step, which sets the next one.

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
        self, core: Core, plans: Plans, workflows: Workflows, artifacts: Artifacts
    ) -> None:
        self._core = core
        self._plans = plans
        self._workflows = workflows
        self._artifacts = artifacts
        self._steps: Mapping[TaskStatus, Callable[[Task, Lease], Awaitable[None]]] = {
            "planning": self._plan,
            "executing": self._execute,
            "reviewing": self._review,
        }

    async def carry_out(self, lease: Lease) -> None:
        """Take a task from wherever it stands to a state in which no step is left."""
        row = await self._core.store.get("tasks", lease.root_id)
        if row is None:
            raise not_found("task", lease.root_id)
        task = Task.model_validate_json(str(row["doc"]))
        try:
            while task.status in self._steps:
                if self._core.draining:
                    raise Suspended(task.id)
                await self._steps[task.status](task, lease)
        except ToolkitError as error:
            await self._sum_up(task)
            await self.fail(task, lease, ErrorInfo.of(error))
        except asyncio.CancelledError:
            if not self._core.draining and task.status not in FINAL_TASK_STATUSES:
                await self._sum_up(task)
                await self.fail(task, lease, why(ErrorCode.CANCELLED))
            raise

    async def check_allowance(
        self, account_id: str, key_id: str | None, request: TaskCreate
    ) -> None:
        """Refuse a task of which the day's allowance covers nothing that its plan would cost.

        Raises:
            RequestError: `BUDGET_EXCEEDED`.
        """
        if await self._core.allowances.left(account_id, key_id) is None:
            return
        await self._core.allowances.check(account_id, key_id, None)
        plan = await self._plans.make(account_id, request)
        if plan.executable:
            flow = workflow_of(request.objective, request.constraints, plan.nodes)
            await self._workflows.check_allowance(account_id, key_id, flow)

    async def _plan(self, task: Task, lease: Lease) -> None:
        request = TaskCreate(objective=task.objective, constraints=task.constraints)
        plan = await self._plans.make(lease.account_id, request)
        task.plan_id = plan.id
        stored = self._plans.inserted(lease.account_id, plan)
        if not plan.executable:
            task.missing_capabilities = plan.missing_capabilities
            task.missing_connections = plan.missing_connections
            task.missing = plan.missing
            if task.agent is not None:  # a run is not resumed: it fails where a task is blocked
                unconnected = bool(task.missing_connections)
                code = "CREDENTIALS_MISSING" if unconnected else "CAPABILITY_UNAVAILABLE"
                task.error = why(ErrorCode[code])
            await self.move(task, lease, "failed" if task.agent else "blocked", [stored])
            return
        task.estimated_cost_usd = plan.estimated_cost_usd.expected
        try:
            changes = await self._new_workflow(task, lease, plan.nodes, {})
        except RequestError as error:
            task.error = ErrorInfo.of(error)
            await self.move(task, lease, "failed", [stored])
            return
        await self.move(task, lease, "executing", [stored, *changes])

    async def _new_workflow(
        self, task: Task, lease: Lease, nodes: Sequence[PlanNode], kept: Mapping[str, str]
    ) -> Sequence[Change]:
        """Draft the workflow that a plan becomes, or one that re-runs the nodes not in `kept`."""
        request = workflow_of(task.objective, task.constraints, nodes)
        left = task.constraints.max_cost_usd
        if left is not None:
            spent = Decimal(str(task.cost_incurred_usd))
            left = float(max(Decimal(0), Decimal(str(left)) - spent))
        checked = await self._workflows.check(lease.account_id, request, kept, limit=left)
        await self._workflows.check_allowance(lease.account_id, lease.key_id, request, kept)
        workflow = self._workflows.draft(request, checked, task_id=task.id)
        task.workflow_id = workflow.id
        task.workflow_ids.append(workflow.id)
        spec = spec_of(checked.options, kept)
        return self._workflows.inserted(workflow, lease.account_id, task.id, spec)

    async def _execute(self, task: Task, lease: Lease) -> None:
        if task.workflow_id is None:
            raise not_found("workflow", "of this task")
        await self._sum_up(task)
        limit = spending(task.constraints.max_cost_usd, task.cost_incurred_usd)
        await self._workflows.run(task.workflow_id, lease, [limit])
        await self._sum_up(task)
        await self.move(task, lease, "reviewing")

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
            ),
            lease.account_id,
        )
        task.review = verdict
        task.reviews.append(verdict)
        if verdict.decision == "pass" and workflow.status == "completed":
            await self.deliver(task, lease, workflow, plan)
        elif verdict.decision == "retry" and verdict.recommended_action and left > 0:
            await self.again(task, lease, workflow, plan, verdict.recommended_action)
        else:
            exhausted = task.review_attempts >= MAX_REVIEW_RETRIES
            code = ErrorCode.RETRIES_EXHAUSTED if exhausted else ErrorCode.REVIEW_FAILED
            await self.fail(task, lease, workflow.error or why(code))

    async def deliver(self, task: Task, lease: Lease, workflow: Workflow, plan: Plan) -> None:
        """Complete a task with the artifacts of its workflow."""
        by_id = {node.id: node.artifact_id for node in workflow.nodes}
        task.final_artifact_id = workflow.final_artifact_id
        task.artifact_ids = {
            node_id: artifact_id
            for node_id in plan.deliverables
            if (artifact_id := by_id.get(node_id)) is not None
        }
        await self.move(task, lease, "completed")

    async def again(
        self,
        task: Task,
        lease: Lease,
        workflow: Workflow,
        plan: Plan,
        action: RecommendedAction,
    ) -> None:
        """Re-run only the node to blame and its descendants, with the constraints."""
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
        await self.move(task, lease, "executing", changes)

    async def _evidence(
        self, account_id: str, workflow: Workflow, plan: Plan
    ) -> Sequence[Evidence]:
        """Load the output of each node for the reviewer."""
        reasons = {node.id: node.reason for node in plan.nodes}
        evidence: dict[str, Evidence] = {}
        for node in workflow.nodes:
            output, blob = None, None
            if node.job_id is not None and node.artifact_id is not None:
                row = await self._core.store.get("jobs", node.job_id)
                output = read_job(row).output if row else None
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
        jobs = [
            read_job(row)
            for workflow_id in task.workflow_ids
            for row in await self._core.store.find("jobs", workflow_id=workflow_id)
        ]
        task.cost_usd = total(job.cost_usd for job in jobs if job.status == "completed")
        task.cost_incurred_usd = dollars(job.cost_incurred_usd for job in jobs)

    async def fail(self, task: Task, lease: Lease, error: ErrorInfo) -> None:
        """End a task with an error."""
        task.error = error
        await self.move(task, lease, "failed")

    async def move(
        self, task: Task, lease: Lease, status: TaskStatus, changes: Sequence[Change] = ()
    ) -> None:
        """Persist the task in its next state, with the event and what came with it."""
        task.status = status
        if status in FINAL_TASK_STATUSES:
            task.completed_at = now()
        if status in FINAL_TASK_STATUSES | {"blocked"} and not task.workflow_ids:
            task.cost_usd = 0.0  # it ended before anything was called
        saved = Update("tasks", task.id, {"status": status, "doc": task.model_dump_json()})
        await self._core.store.write([*changes, saved, told(task)], lease=lease)


def told(task: Task) -> Emit:
    """Make the event of the state that a task is in."""
    data: dict[str, object] = {"id": task.id, "review_attempts": task.review_attempts}
    for name in ("plan_id", "workflow_id", "final_artifact_id"):
        if getattr(task, name) is not None:
            data[name] = getattr(task, name)
    if task.status == "blocked":
        data["missing_capabilities"] = task.missing_capabilities
        data["missing_connections"] = task.missing_connections
        data["missing"] = [one.model_dump(mode="json") for one in task.missing]
    if task.status in FINAL_TASK_STATUSES and task.cost_usd is not None:
        data["cost_usd"] = task.cost_usd
    if task.error is not None:
        data["error"] = task.error.model_dump(mode="json", exclude_none=True)
    return Emit(task.id, f"task.{task.status}", data, rfc3339(now()))


def why(code: ErrorCode, message: str | None = None) -> ErrorInfo:
    """Make the error that a record shows of a code."""
    return ErrorInfo(code=code.name, message=message or code.hint)


def _text_of(upstream: list[Evidence]) -> str | None:
    """Join the texts of the upstream nodes as their dependent was given them."""
    texts = [
        text
        for item in upstream
        if item.blob is not None
        and (text := Upstream(item.node.id, "", item.blob).text) is not None
    ]
    return "\n\n".join(texts) or None
