"""The workflows that are stored, as callers see them: one, or a page; and their annotations."""

import json
from collections.abc import Mapping
from typing import Any

from toolkit.contract.annotations import WorkAnnotate
from toolkit.contract.jobs import FINAL_STATUSES
from toolkit.contract.operations.work_queries import NO_FILTER, WorkFilter
from toolkit.contract.workflows import WorkflowRecord
from toolkit.engine.annotations import annotate_record
from toolkit.engine.concurrency.pacing import Pacer
from toolkit.engine.context import EngineContext
from toolkit.engine.execution.node_states import (
    JobState,
    find_dependents,
    find_optional,
    find_skipped,
    materialize_nodes,
)
from toolkit.engine.job_record import read_job
from toolkit.engine.request_context import RequestContext
from toolkit.store import WORKFLOW_LIST, Row


class WorkflowReader:
    """The part of the service of `/v1/workflows` that starts nothing."""

    def __init__(self, core: EngineContext) -> None:
        self._core = core

    async def get(self, context: RequestContext, workflow_id: str) -> WorkflowRecord:
        """Return one workflow, its nodes as they stand.

        Raises:
            RequestError: `NOT_FOUND`.
        """
        return await self.read_current(await self.get_row(context, workflow_id))

    async def get_row(self, context: RequestContext, workflow_id: str) -> Row:
        """Return one workflow's row.

        Raises:
            RequestError: `NOT_FOUND`.
        """
        return await self._core.records.workflows.get_row(context.scope, workflow_id)

    async def read_current(self, row: Row) -> WorkflowRecord:
        """Read a workflow as it stands: while it runs, its nodes follow from their jobs."""
        async with Pacer(row["account_id"]) as pacer:
            workflow = self._core.records.workflows.read(row)
            if "note" in row:  # as of a list
                workflow = annotate_record(workflow, row)
            else:
                workflow = await self._core.annotations.show(workflow, workflow.id)
            if workflow.status in FINAL_STATUSES:
                return workflow
            await pacer.pause()
            kept: dict[str, str] = json.loads(str(row["spec"]))["kept"]
            jobs: dict[str, JobState] = {}
            for job in await self._core.store.find_rows("jobs", workflow_id=workflow.id):
                await pacer.pause()
                jobs[str(job["node_id"])] = _read_state(job)
            for node_id, job_id in kept.items():
                await pacer.pause()
                found = await self._core.store.get_row("jobs", job_id)
                if found is not None:
                    jobs[node_id] = _read_state(found)
            await pacer.pause()
            skipped = find_skipped(
                jobs, find_dependents(workflow.nodes), find_optional(workflow.nodes)
            )
            workflow = await materialize_nodes(workflow, jobs, skipped, pacer)
            await pacer.pause()
        started = (job.started_at for job in jobs.values() if job.started_at)
        workflow.status, workflow.started_at = row["status"], min(started, default=None)
        return workflow

    async def list(
        self,
        context: RequestContext,
        limit: int,
        before: str | None,
        wanted: WorkFilter = NO_FILTER,
    ) -> list[WorkflowRecord]:
        """Return a page of workflows that a filter lets through, newest first."""
        rows = await self._core.store.list_work(WORKFLOW_LIST, context.scope, wanted, limit, before)
        return [await self.read_current(row) for row in rows]

    async def count(self, context: RequestContext, wanted: WorkFilter = NO_FILTER) -> int | None:
        """Count the workflows that a filter lets through; None if that takes too long."""
        return await self._core.store.count_work(WORKFLOW_LIST, context.scope, wanted)

    async def annotate(
        self, context: RequestContext, workflow_id: str, request: WorkAnnotate
    ) -> WorkflowRecord:
        """Change the tags or the note of a workflow.

        Raises:
            RequestError: `NOT_FOUND`.
        """
        await self.get_row(context, workflow_id)
        await self._core.annotations.change(context.account_id, workflow_id, request)
        return await self.get(context, workflow_id)


def _read_state(row: Mapping[str, Any]) -> JobState:
    return JobState.of(read_job(row))
