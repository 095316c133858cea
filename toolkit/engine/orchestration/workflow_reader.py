"""The workflows that are stored, as callers see them: one, or a page; and their annotations."""

import asyncio
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

# Who waits for an end reads it at once.
KEPT_S = 2.0
MAX_NODES = 50_000  # of all that are kept


class EndedWorkflows:
    """The records of workflows that ended in this process, for a moment.

    To read the document of a large workflow takes longer than to write it did. Each record is given
    to its first reader alone, so that no two share one, and only while the stored document is the
    very text that was written: who runs a workflow again, here or elsewhere, writes another.
    """

    def __init__(self) -> None:
        self._kept: dict[str, tuple[str, WorkflowRecord]] = {}
        self._node_count = 0

    def add(self, workflow: WorkflowRecord, doc: str) -> None:
        """Add a workflow that has ended, and the document that was written of it."""
        if self._node_count + len(workflow.nodes) > MAX_NODES or workflow.id in self._kept:
            return
        self._kept[workflow.id] = doc, workflow
        self._node_count += len(workflow.nodes)
        asyncio.get_running_loop().call_later(KEPT_S, self._remove, workflow.id)

    def take(self, row: Row) -> WorkflowRecord | None:
        """Take the record of a workflow's row; none unless it is what the row holds."""
        doc, workflow = self._remove(str(row["id"]))
        return workflow if doc is not None and doc == row["doc"] else None

    def _remove(self, workflow_id: str) -> tuple[str | None, WorkflowRecord | None]:
        doc, workflow = self._kept.pop(workflow_id, (None, None))
        if workflow is not None:
            self._node_count -= len(workflow.nodes)
        return doc, workflow


class WorkflowReader:
    """The part of the service of `/v1/workflows` that starts nothing."""

    def __init__(self, core: EngineContext) -> None:
        self._core = core
        self._ended = EndedWorkflows()

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
            workflow = self._ended.take(row) or self._core.records.workflows.read(row)
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
