"""Retries and forks of workflows, which do not pay twice for existing results."""

import json
from collections.abc import Mapping
from typing import Any

from toolkit.contract.base import JsonObject, format_rfc3339, now
from toolkit.contract.errors import Detail, ErrorCode, RequestError
from toolkit.contract.jobs import Options
from toolkit.contract.suggestions import explain_unknown
from toolkit.contract.workflows import (
    Node,
    NodeCreate,
    WorkflowCreate,
    WorkflowFork,
    WorkflowRecord,
)
from toolkit.engine.context import EngineContext
from toolkit.engine.execution.leases import LeaseManager
from toolkit.engine.execution.node_states import find_dependents, find_descendants, find_kept_jobs
from toolkit.engine.job_record import JobRecord, read_job
from toolkit.engine.orchestration.workflows import Workflows
from toolkit.engine.request_context import RequestContext
from toolkit.engine.services.idempotency import commit_accepted
from toolkit.store import AppendEvent, Change, Lease, UpdateRow


class WorkflowReruns:
    """The operations `/v1/workflows/{id}/retry` and `/v1/workflows/{id}/fork`."""

    def __init__(self, core: EngineContext, leases: LeaseManager, workflows: Workflows) -> None:
        self._core = core
        self._leases = leases
        self._workflows = workflows

    async def retry(self, context: RequestContext, workflow_id: str) -> WorkflowRecord:
        """Run a failed or cancelled workflow again, from its failed nodes on.

        The id, the completed nodes and the recorded costs stay. Further costs are charged to the
        key of the request.

        Raises:
            RequestError: `NOT_FOUND`; `CONFLICT` unless it is failed or cancelled and not a task's;
                `BUDGET_EXCEEDED` if the key's allowance covers no call of it.
        """
        row = await self._workflows.get_row(context, workflow_id)
        workflow = await self._workflows.read_current(row)
        if workflow.status not in ("failed", "cancelled") or workflow.task_id is not None:
            raise RequestError(
                ErrorCode.CONFLICT,
                f"The workflow is {workflow.status}"
                f"{' and part of a task' if workflow.task_id else ''}: only a failed or cancelled"
                " workflow that is not part of a task can be retried.",
            )
        kept_jobs = find_kept_jobs(workflow.nodes, ())
        request = _rebuild_request(workflow, json.loads(str(row["spec"])), {})
        await self._workflows.check_allowance(context, request, kept_jobs)
        await self._core.quotas.check_queue(context.account_id)
        lease = await self._leases.reacquire(workflow_id, context.key_id)
        try:
            await self._requeue(context, workflow, lease)
        except BaseException:
            await self._leases.release(lease)  # nothing was changed: the workflow is still ended
            raise
        self._leases.start(lease)
        return await self._workflows.get(context, workflow_id)

    async def _requeue(
        self, context: RequestContext, workflow: WorkflowRecord, lease: Lease
    ) -> None:
        """Reset a workflow and its failed jobs in the store, so that they run again."""
        rows = await self._core.store.find_rows("jobs", workflow_id=workflow.id)
        kept_ids = set(find_kept_jobs(workflow.nodes, ()).values())
        changes: list[Change] = []
        for row in rows:
            job = read_job(row)
            if job.status in ("failed", "cancelled") and job.id not in kept_ids:
                _reset_job(job)
                values = {"status": job.status, "doc": job.to_json, "vendor_job_id": None}
                changes.append(UpdateRow("jobs", job.id, values))
        workflow = _reset_workflow(workflow)
        update = self._core.records.workflows.make_update(workflow, status=workflow.status)
        at = format_rfc3339(now())
        changes += [
            update,
            AppendEvent(workflow.id, "workflow.queued", {"id": workflow.id}, at),
        ]
        await commit_accepted(self._core, context, changes, workflow, lease=lease)

    async def fork(
        self,
        context: RequestContext,
        workflow_id: str,
        request: WorkflowFork,
    ) -> WorkflowRecord:
        """Make a new workflow that re-runs a node and its descendants, and keeps all other results.

        Raises:
            RequestError: `NOT_FOUND`, `INVALID_REQUEST` for a node that is unknown or does not run
                again, and every error of `create`.
        """
        row = await self._workflows.get_row(context, workflow_id)
        source = await self._workflows.read_current(row)
        rerun_ids = self._find_rerun_nodes(source, request)
        spec = json.loads(str(row["spec"]))
        kept_jobs = find_kept_jobs(source.nodes, rerun_ids)
        workflow_request = _rebuild_request(source, spec, request.overrides)
        return await self._workflows.create(
            context, workflow_request, kept_jobs, forked_from=source.id
        )

    @staticmethod
    def _find_rerun_nodes(source: WorkflowRecord, request: WorkflowFork) -> set[str]:
        dependents = find_dependents(source.nodes)
        faults = []
        rerun_ids: set[str] = set()
        if request.from_node not in dependents:
            message = explain_unknown("node", request.from_node, dependents)
            faults.append(Detail("from_node", message))
        else:
            rerun_ids = {request.from_node, *find_descendants(request.from_node, dependents)}
        faults += [
            Detail(f"overrides.{node_id}", "is not a node that runs again")
            for node_id in request.overrides
            if node_id not in rerun_ids
        ]
        if faults:
            raise RequestError(
                ErrorCode.INVALID_REQUEST, "The fork does not fit the workflow.", details=faults
            )
        return rerun_ids


def _rebuild_request(
    source: WorkflowRecord, spec: Mapping[str, Any], overrides: Mapping[str, JsonObject]
) -> WorkflowCreate:
    """Rebuild the request that created a workflow, with other inputs for some nodes.

    It has the workflow's present tags and note, and shares its seal, because it keeps its results.
    """

    def share_seal(options: Options) -> Options:
        if options.sealed is not True:
            return options
        return options.model_copy(update={"sealed": source.task_id or source.id})

    return WorkflowCreate(
        name=source.name,
        tags=source.tags,
        note=source.note or "",
        endpoint_id=source.endpoint_id,
        compute_id=source.compute_id,
        max_retries=source.max_retries,
        options=share_seal(source.options),
        nodes=[
            NodeCreate(
                id=node.id,
                capability=node.capability,
                input={**node.input, **overrides.get(node.id, {})},
                depends_on=node.depends_on,
                options=share_seal(Options(**spec["options"].get(node.id, {}))),
                optional=node.optional,
            )
            for node in source.nodes
        ],
    )


def _reset_workflow(workflow: WorkflowRecord) -> WorkflowRecord:
    """Return a copy of a record in its state before any run, with its creation time."""
    node_fields = ("id", "capability", "input", "depends_on", "optional", "estimated_cost_usd")
    nodes = [Node(**{name: getattr(node, name) for name in node_fields}) for node in workflow.nodes]
    values = {"nodes": nodes, "status": "queued", "sink_artifact_ids": {}, "warnings": []}
    result_fields = ("final_artifact_id", "latency_ms", "error", "started_at", "completed_at")
    return workflow.model_copy(update={**values, **dict.fromkeys(result_fields)})


def _reset_job(job: JobRecord) -> None:
    """Reset a job to queued; keep its attempts and their costs."""
    job.status, job.status_detail, job.error = "queued", None, None
    job.started_at = job.completed_at = job.latency_ms = job.queue_ms = None
    job.retry_count = 0
    job.cost_usd, job.cost_source = None, "unknown"
