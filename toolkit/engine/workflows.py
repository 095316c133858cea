"""Workflows: accepted, stored, read and cancelled. How they run is `scheduler.py`'s."""

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from toolkit.contract.base import now, rfc3339
from toolkit.contract.errors import Detail, ErrorCode, RequestError, not_found
from toolkit.contract.ids import Prefix, new_id
from toolkit.contract.jobs import FINAL_STATUSES, Job, Options
from toolkit.contract.workflows import Node, NodeCreate, Workflow, WorkflowCreate
from toolkit.engine.admission import Admission, within_budget
from toolkit.engine.budget import Budget, spending
from toolkit.engine.core import Core
from toolkit.engine.graph import build
from toolkit.engine.jobs import JobRunner
from toolkit.engine.nodes import show
from toolkit.engine.registry import fillable_fields, validate_input
from toolkit.engine.roots import Roots
from toolkit.engine.scheduler import Scheduler
from toolkit.store import Change, Emit, Insert, Lease


class Workflows:
    """`/v1/workflows`."""

    def __init__(self, core: Core, roots: Roots, runner: JobRunner, admission: Admission) -> None:
        self._core = core
        self._roots = roots
        self._runner = runner
        self._admission = admission
        roots.handle("workflow", self._carry_out)

    async def create(self, account_id: str, request: WorkflowCreate) -> Workflow:
        """Accept a workflow; it is durable and under way when this returns.

        Raises:
            RequestError: `INVALID_WORKFLOW`, `INVALID_REQUEST`, `NOT_FOUND` for an unknown
                capability, `CREDENTIALS_MISSING`, `PROVIDER_NOT_ALLOWED`, `BUDGET_EXCEEDED`.
        """
        await self.check(account_id, request)
        workflow = self.draft(request)
        inserted, lease = self._core.store.new_root(workflow.id, "workflow", account_id)
        options = {node.id: node_options(request, node) for node in request.nodes}
        changes = self.inserted(workflow, account_id, workflow.id, options)
        await self._core.store.write([inserted, *changes])
        self._roots.start(lease)
        return workflow

    async def check(self, account_id: str, request: WorkflowCreate) -> None:
        """Everything that is refused before anything is stored."""
        settings, registry = self._core.settings, self._core.registry
        build(request.nodes, max_nodes=settings.max_nodes, max_edges=settings.max_edges)
        by_id = {node.id: registry.require(node.capability) for node in request.nodes}
        faults: list[Detail] = []
        expected: list[Decimal | None] = []
        for i, node in enumerate(request.nodes):
            capability = by_id[node.id]
            fillable = fillable_fields(capability, [by_id[up] for up in node.depends_on])
            try:
                value = validate_input(capability, node.input, fillable, f"nodes.{i}.input")
            except RequestError as error:
                faults += error.details
                continue
            # What upstream fills in is not known yet, so neither is what it will cost.
            operation = capability.estimate(value) if value is not None else None
            options = node_options(request, node)
            expected.append(
                await self._admission.admit(account_id, capability, node.input, options, operation)
            )
        if faults:
            raise RequestError(
                ErrorCode.INVALID_REQUEST, "Some nodes have inputs that do not fit.", details=faults
            )
        within_budget(request.options.max_cost_usd, expected)

    def draft(self, request: WorkflowCreate, *, task_id: str | None = None) -> Workflow:
        """The record of a new workflow."""
        return Workflow(
            id=new_id(Prefix.WORKFLOW),
            name=request.name,
            endpoint_id=request.endpoint_id,
            compute_id=request.compute_id,
            max_retries=request.max_retries,
            options=request.options,
            task_id=task_id,
            nodes=[
                Node(
                    id=node.id,
                    capability=self._core.registry.require(node.capability).name,
                    input=node.input,
                    depends_on=node.depends_on,
                )
                for node in request.nodes
            ],
            created_at=now(),
        )

    def inserted(
        self,
        workflow: Workflow,
        account_id: str,
        root_id: str,
        options: Mapping[str, Options],
        kept: Mapping[str, str] | None = None,
    ) -> list[Change]:
        """A new workflow as rows; `kept` names the jobs of nodes taken over from another one."""
        spec = {
            "options": {
                node_id: chosen.model_dump(mode="json", exclude_defaults=True)
                for node_id, chosen in options.items()
            },
            "kept": dict(kept or {}),
        }
        row: dict[str, object] = {
            "id": workflow.id,
            "account_id": account_id,
            "root_id": root_id,
            "task_id": workflow.task_id,
            "status": workflow.status,
            "created_at": rfc3339(workflow.created_at),
            "doc": workflow.model_dump_json(),
            "spec": json.dumps(spec),
        }
        at = rfc3339(workflow.created_at)
        event = Emit(workflow.id, "workflow.queued", {"id": workflow.id}, at)
        return [Insert("workflows", row), event]

    async def get(self, account_id: str, workflow_id: str) -> Workflow:
        """One workflow, its nodes as they stand.

        Raises:
            RequestError: `NOT_FOUND`.
        """
        row = await self._core.store.get("workflows", workflow_id)
        if row is None or row["account_id"] != account_id:
            raise not_found("workflow", workflow_id)
        return await self._current(row)

    async def _current(self, row: Mapping[str, Any]) -> Workflow:
        """A workflow as it stands: while it runs, its nodes are told by their jobs."""
        workflow = Workflow.model_validate_json(str(row["doc"]))
        if workflow.status in FINAL_STATUSES:
            return workflow
        workflow.status = row["status"]
        kept: dict[str, str] = json.loads(str(row["spec"]))["kept"]
        rows = await self._core.store.find("jobs", workflow_id=workflow.id)
        jobs = {str(job["node_id"]): Job.model_validate_json(str(job["doc"])) for job in rows}
        for node_id, job_id in kept.items():
            found = await self._core.store.get("jobs", job_id)
            if found is not None:
                jobs[node_id] = Job.model_validate_json(str(found["doc"]))
        show(workflow, jobs)
        workflow.started_at = min(
            (j.started_at for j in jobs.values() if j.started_at), default=None
        )
        return workflow

    async def list(self, account_id: str, limit: int, before: str | None) -> list[Workflow]:
        """A page of workflows, newest first."""
        rows = await self._core.store.page("workflows", account_id, limit=limit, before=before)
        return [await self._current(row) for row in rows]

    async def cancel(self, account_id: str, workflow_id: str) -> Workflow:
        """End a workflow; what has ended is answered as it is."""
        workflow = await self.get(account_id, workflow_id)
        if workflow.status not in FINAL_STATUSES:
            # A task's workflow has no lease of its own: the task is what is cancelled.
            await self._roots.cancel(workflow.task_id or workflow_id)
        return await self.get(account_id, workflow_id)

    async def _carry_out(self, lease: Lease) -> None:
        await self.run(lease.root_id, lease)

    async def run(self, workflow_id: str, lease: Lease, budgets: Sequence[Budget] = ()) -> Workflow:
        """Run a stored workflow to its end, from wherever it stands."""
        row = await self._core.store.get("workflows", workflow_id)
        if row is None:
            raise not_found("workflow", workflow_id)
        workflow = Workflow.model_validate_json(str(row["doc"]))
        if workflow.status in FINAL_STATUSES:
            return workflow
        own = spending(workflow.options.max_cost_usd, workflow.cost_incurred_usd)
        scheduler = Scheduler(
            self._core, self._runner, workflow, json.loads(str(row["spec"])), lease, (*budgets, own)
        )
        return await scheduler.run()


def node_options(request: WorkflowCreate, node: NodeCreate) -> Options:
    """A node's options over the workflow's; the workflow's budget is the workflow's own."""
    mine = node.options.model_dump(exclude_defaults=True)
    theirs = request.options.model_dump(exclude_defaults=True, exclude={"max_cost_usd"})
    if request.endpoint_id is not None:
        theirs["endpoint_id"] = request.endpoint_id
    return Options(**{**theirs, **mine})
