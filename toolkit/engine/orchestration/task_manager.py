"""The manager: moves a task from state to state, each step persisted before the next begins."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from toolkit.contract.base import ErrorInfo, format_rfc3339, now
from toolkit.contract.errors import ErrorCode, RequestError, ToolkitError, build_not_found
from toolkit.contract.money import ZERO_USD, from_wire_usd, to_wire_usd
from toolkit.contract.plans import Plan, PlanNode
from toolkit.contract.tasks import (
    FINAL_TASK_STATUSES,
    MAX_REVIEW_RETRIES,
    RecommendedAction,
    Task,
    TaskCreate,
    TaskStatus,
)
from toolkit.contract.workflows import WorkflowRecord
from toolkit.engine.concurrency.cancellation import finish_before_cancel
from toolkit.engine.context import EngineContext
from toolkit.engine.execution.node_states import (
    find_dependents,
    find_descendants,
    find_kept_jobs,
    make_error_info,
)
from toolkit.engine.execution.shutdown import ShutdownInterrupt
from toolkit.engine.execution.workflow_graph import make_spec
from toolkit.engine.job_record import read_job
from toolkit.engine.money.amounts import sum_costs
from toolkit.engine.money.budget import Budget
from toolkit.engine.orchestration.planning import Planning
from toolkit.engine.orchestration.planning_steps import PlanningSteps
from toolkit.engine.orchestration.plans import Plans, make_workflow_request
from toolkit.engine.orchestration.reviewing.evidence_reader import EvidenceReader, NodeHistory
from toolkit.engine.orchestration.reviewing.task_attempts import (
    PASSED,
    add_review,
    find_best,
    record_attempt,
)
from toolkit.engine.orchestration.reviewing.task_judge import TaskJudge
from toolkit.engine.orchestration.workflows import Workflows
from toolkit.engine.request_context import RequestContext
from toolkit.planning.review.reviewer import judge_issues
from toolkit.store import AccountScope, AppendEvent, Change, Lease, StoreUnavailableError


@dataclass(eq=False, slots=True)
class TaskManager:
    """The manager flow of the specification: each state has one step, which sets the next state.

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

    _core: EngineContext
    _planning_steps: PlanningSteps
    _planning: Planning
    _plans: Plans
    _workflows: Workflows
    _evidence: EvidenceReader
    _judge: TaskJudge

    async def run_task(self, lease: Lease) -> None:
        """Run a task from its present state until it has ended or is blocked.

        Raises:
            ShutdownInterrupt: the engine shuts down before the next step.
        """
        task = await finish_before_cancel(
            self._core.records.tasks.get(AccountScope(lease.account_id), lease.root_id)
        )
        steps = {"planning": self._plan, "executing": self._execute, "reviewing": self._review}
        try:
            while step := steps.get(task.status):
                if self._core.is_draining:
                    raise ShutdownInterrupt(task.id)
                await step(task, lease)
        except StoreUnavailableError:
            raise
        except ToolkitError as error:
            await self._settle(task, lease)
            await self.fail(task, lease, ErrorInfo.of(error))
        except asyncio.CancelledError:
            if not self._core.is_draining and task.status not in FINAL_TASK_STATUSES:
                await self._settle(task, lease)
                await self.fail(task, lease, make_error_info(ErrorCode.CANCELLED))
            raise

    async def check_allowance(self, context: RequestContext, request: TaskCreate) -> None:
        """Refuse a task if the allowances of its key and account cover no call of its plan.

        Raises:
            RequestError: `BUDGET_EXCEEDED`.
        """
        if await self._core.allowances.find_remaining(context) is None:
            return
        await self._core.allowances.check_bound(context, None)
        if request.plan is None and await self._planning.is_by_model(context.account_id, request):
            return  # unknown before a model is asked, which costs money
        plan = await self._plans.make(context.account_id, request)
        if plan.executable:
            flow = make_workflow_request(request.objective, request.constraints, plan.nodes)
            await self._workflows.check_allowance(context, flow)

    async def _plan(self, task: Task, lease: Lease) -> None:
        await self._sum_costs(task)
        plan = await self._planning.plan_task(task, lease)
        await self._sum_costs(task)
        plan_change: Change
        if task.plan_given and task.plan_id is not None:
            plan.id = task.plan_id
            plan_change = self._core.records.plans.make_update(plan)
        else:
            plan_change = self._core.records.plans.make_insert(lease.account_id, plan)
        task.plan_id, task.question = plan.id, plan.question
        if not plan.executable:
            task.missing_capabilities = plan.missing_capabilities
            task.missing_connections = plan.missing_connections
            task.missing = plan.missing
            if task.agent is not None:  # a run is not resumed: it fails instead of becoming blocked
                is_unconnected = bool(task.missing_connections)
                code = "CREDENTIALS_MISSING" if is_unconnected else "CAPABILITY_UNAVAILABLE"
                task.error = make_error_info(ErrorCode[code])
            await self.set_status(task, lease, "failed" if task.agent else "blocked", [plan_change])
            return
        expected_cost = plan.estimated_cost_usd.expected
        task.estimated_cost_usd = (
            None if expected_cost is None else expected_cost + plan.cost_incurred_usd
        )
        try:
            changes = await self._draft_workflow(task, lease, plan.nodes, {})
        except RequestError as error:
            task.error = ErrorInfo.of(error)
            await self.set_status(task, lease, "failed", [plan_change])
            return
        await self.set_status(task, lease, "executing", [plan_change, *changes])

    async def _draft_workflow(
        self, task: Task, lease: Lease, nodes: Sequence[PlanNode], kept_jobs: Mapping[str, str]
    ) -> Sequence[Change]:
        """Draft the workflow of a plan, name it in the task, and return the changes that store it.

        Args:
            kept_jobs: jobs of nodes that do not run again, by node id.

        Raises:
            RequestError: if the workflow cannot run, or costs more than is left.
        """
        request = make_workflow_request(task.objective, task.constraints, nodes)
        limit = from_wire_usd(task.constraints.max_cost_usd)
        if limit is not None:
            limit = max(ZERO_USD, limit - from_wire_usd(task.cost_incurred_usd))
        graph = await self._workflows.check(lease.account_id, request, kept_jobs, limit=limit)
        await self._workflows.check_allowance(RequestContext.of_lease(lease), request, kept_jobs)
        workflow = self._workflows.draft(request, graph, task_id=task.id)
        task.workflow_id = workflow.id
        task.workflow_ids.append(workflow.id)
        if self._core.texts.is_wanted(task.id):
            # Its first node may be called before the task's watcher learns of it.
            self._core.texts.expect(workflow.id)
        spec = make_spec(graph.options, kept_jobs)
        return self._workflows.to_changes(workflow, lease.account_id, task.id, spec)

    async def _execute(self, task: Task, lease: Lease) -> None:
        if task.workflow_id is None:
            raise build_not_found("workflow", "of this task")
        await self._sum_costs(task)
        limit = Budget(
            from_wire_usd(task.constraints.max_cost_usd), from_wire_usd(task.cost_incurred_usd)
        )
        workflow = await self._workflows.run(task.workflow_id, lease, [limit])
        task.warnings = workflow.warnings
        await self._sum_costs(task)
        await self.set_status(task, lease, "reviewing")

    async def _review(self, task: Task, lease: Lease) -> None:
        context = RequestContext.of_lease(lease)
        workflow = await self._workflows.get(context, task.workflow_id or "")
        plan = await self._plans.get(context, task.plan_id or "")
        index = record_attempt(task, workflow, plan)
        evidence = await self._evidence.read(lease.account_id, task, workflow, plan)
        evidence = await self._judge.hear_narrations(task, lease, evidence)
        retries_left = MAX_REVIEW_RETRIES - task.review_attempts
        issues = await self._planning_steps.check_results(
            lease.account_id, plan.objective, evidence, plan.deliverables, task.review_attempts
        )
        verdict = judge_issues(
            issues,
            evidence,
            attempt=task.review_attempts,
            retries_left=retries_left,
            pass_score=self._core.settings.review.pass_score,
        )
        verdict = await self._judge.reconsider(
            verdict, task, lease, plan, evidence, issues, retries_left
        )
        await self._sum_costs(task)
        add_review(task, index, verdict, plan)
        if verdict.decision == "pass" and workflow.status == "completed":
            # An attempt that passed before a person asked for better wins, unless this is better.
            best = find_best(task, PASSED)
            await self.deliver(task, lease, index if best is None else best)
        elif verdict.decision == "retry" and retries_left > 0:
            await self.rerun(task, lease, workflow, plan, verdict.recommended_actions)
        else:
            is_exhausted = task.review_attempts >= MAX_REVIEW_RETRIES
            code = ErrorCode.RETRIES_EXHAUSTED if is_exhausted else ErrorCode.REVIEW_FAILED
            await self.fail(task, lease, workflow.error or make_error_info(code))

    async def deliver(self, task: Task, lease: Lease, index: int) -> None:
        """Complete a task with the results of an attempt."""
        attempt = task.attempts[index]
        context = RequestContext.of_lease(lease)
        workflow = await self._workflows.get(context, attempt.workflow_id)
        task.final_attempt = index + 1
        task.final_artifact_id = workflow.final_artifact_id
        task.artifact_ids = attempt.artifact_ids
        task.warnings = workflow.warnings
        await self.set_status(task, lease, "completed")

    async def rerun(
        self,
        task: Task,
        lease: Lease,
        workflow: WorkflowRecord,
        plan: Plan,
        actions: Sequence[RecommendedAction],
    ) -> None:
        """Draft a workflow that re-runs the nodes of the actions and their descendants.

        The task becomes `executing`; the workflow itself runs later.

        Raises:
            RequestError: if a change does not fit a node, or costs more than is left.
        """
        dependents = find_dependents(workflow.nodes)
        changes = {action.node_id: action.constraints for action in actions}
        rerun_ids = {*changes}.union(
            *(find_descendants(node_id, dependents) for node_id in changes)
        )
        plan_nodes = {node.id: node for node in plan.nodes}
        nodes = [
            PlanNode(
                id=node.id,
                capability=node.capability,
                input={**node.input, **changes.get(node.id, {})},
                depends_on=node.depends_on,
                optional=node.optional,
                options=NodeHistory.trace(plan_nodes[node.id], task.reviews).options
                if node.id in plan_nodes
                else None,
            )
            for node in workflow.nodes
        ]
        workflow_changes = await self._draft_workflow(
            task, lease, nodes, find_kept_jobs(workflow.nodes, rerun_ids)
        )
        task.review_attempts += 1
        await self.set_status(task, lease, "executing", workflow_changes)

    async def _settle(self, task: Task, lease: Lease) -> None:
        """End the last workflow of a task that is ending, and total the costs."""
        if task.workflow_id is not None and task.plan_id is not None:
            # The task may have been stopped before its workflow began, or between two steps of it.
            workflow = await self._workflows.abandon(task.workflow_id, lease)
            plan = await self._plans.get(RequestContext.of_lease(lease), task.plan_id)
            record_attempt(task, workflow, plan)
        await self._sum_costs(task)

    async def _sum_costs(self, task: Task) -> None:
        """Total the cost of the task so far: its workflows, and the calls of planner and judge."""
        store = self._core.store
        jobs = [
            read_job(row)
            for workflow_id in task.workflow_ids
            for row in await store.find_rows("jobs", workflow_id=workflow_id)
        ]
        cost = sum_costs(job.cost_usd for job in jobs if job.status == "completed")
        for job_id in task.llm_job_ids:
            jobs += [read_job(row) for row in await store.find_rows("jobs", id=job_id)]
        task.cost_usd = to_wire_usd(cost)
        task.cost_incurred_usd = to_wire_usd(sum((job.cost_incurred_usd for job in jobs), ZERO_USD))

    async def fail(self, task: Task, lease: Lease, error: ErrorInfo) -> None:
        """End a task with an error."""
        task.error = error
        await self.set_status(task, lease, "failed")

    async def set_status(
        self, task: Task, lease: Lease, status: TaskStatus, changes: Sequence[Change] = ()
    ) -> None:
        """Persist the task in its next state, with the event and further changes."""
        task.status = status
        if status != "blocked":  # it may be cancelled while it is being blocked
            task.question = None
        if status in FINAL_TASK_STATUSES:
            task.completed_at = now()
        if status in FINAL_TASK_STATUSES | {"blocked"} and not task.workflow_ids:
            task.cost_usd = 0.0  # it ended before any call
        update = self._core.records.tasks.make_update(task, status=status)
        commit = self._core.store.write([*changes, update, make_task_event(task)], lease=lease)
        try:
            await asyncio.shield(commit)
        except asyncio.CancelledError:
            if not self._core.is_draining:
                await commit  # the code that ends the task reads the stored record
            raise


def make_task_event(task: Task) -> AppendEvent:
    """Make the event of the state that a task is in."""
    data: dict[str, object] = {"id": task.id, "review_attempts": task.review_attempts}
    for name in ("plan_id", "workflow_id", "final_artifact_id"):
        if getattr(task, name) is not None:
            data[name] = getattr(task, name)
    if task.status == "blocked":
        data["missing_capabilities"] = task.missing_capabilities
        data["missing_connections"] = task.missing_connections
        data["question"] = task.question
        data["missing"] = [need.model_dump(mode="json") for need in task.missing]
    if task.status in FINAL_TASK_STATUSES and task.cost_usd is not None:
        data["cost_usd"] = task.cost_usd
    if task.status in FINAL_TASK_STATUSES and task.warnings:
        data["warnings"] = task.warnings
    if task.error is not None:
        data["error"] = task.error.model_dump(mode="json", exclude_none=True)
    return AppendEvent(task.id, f"task.{task.status}", data, format_rfc3339(now()))
