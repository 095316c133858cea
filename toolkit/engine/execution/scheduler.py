"""The scheduler of one workflow: a node starts the moment its last dependency completes."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextvars import copy_context
from decimal import Decimal
from typing import Any

from toolkit.contract.base import ErrorInfo, format_rfc3339, now
from toolkit.contract.errors import ErrorCode
from toolkit.contract.ids import Prefix, new_id
from toolkit.contract.jobs import FINAL_STATUSES, Options
from toolkit.contract.money import ZERO_USD, from_wire_usd
from toolkit.contract.workflows import Node, WorkflowRecord, WorkflowStatus
from toolkit.engine.concurrency.pacing import Pacer
from toolkit.engine.context import EngineContext
from toolkit.engine.execution.job_executor import JobExecutor, make_deadline_error
from toolkit.engine.execution.job_run import JobRun, requeue_interrupted
from toolkit.engine.execution.node_states import (
    JobState,
    SkippedNode,
    find_dependents,
    find_optional,
    find_skipped,
    make_error_info,
    materialize_nodes,
    skip_descendants,
)
from toolkit.engine.execution.shutdown import ShutdownInterrupt
from toolkit.engine.execution.workflow_graph import DEFAULT_OPTIONS
from toolkit.engine.job_record import JobRecord, read_job
from toolkit.engine.money.budget import Budget
from toolkit.engine.services.artifacts import StoredArtifact
from toolkit.store import AppendEvent, Change, Lease, StoreUnavailableError, UpdateRow

START_BATCH_SIZE = 4
MAX_TURN_S = 0.002  # maximum time for which a chain of nodes that never wait may hold the loop


class Scheduler:
    """The scheduler of one workflow, from its current state and without level barriers.

    The state of a node is the state of its job. The scheduler keeps only the data that decide which
    nodes can start next, and can rebuild all of it from the store.
    """

    def __init__(
        self,
        core: EngineContext,
        executor: JobExecutor,
        workflow: WorkflowRecord,
        spec: Mapping[str, Any],
        lease: Lease,
        budgets: Sequence[Budget],
    ) -> None:
        self._core = core
        self._executor = executor
        self._workflow = workflow
        self._spec = spec
        self._lease = lease
        self._budgets = tuple(budgets)
        self._nodes: dict[str, Node] = {node.id: node for node in workflow.nodes}
        self._dependents = find_dependents(workflow.nodes)
        self._optional = find_optional(workflow.nodes)
        self._waiting_for = {node.id: len(node.depends_on) for node in workflow.nodes}
        self._unstarted_dependents = {up: len(nodes) for up, nodes in self._dependents.items()}
        self._interrupted: dict[str, JobRecord] = {}
        self._states: dict[str, JobState] = {}
        self._skipped: dict[str, SkippedNode] = {}
        self._vendor_jobs: dict[str, str] = {}
        self._artifacts: dict[str, StoredArtifact] = {}
        self._tasks: set[asyncio.Task[None] | None] = set()
        # One context for all nodes: by default every task would get its own copy.
        self._context = copy_context()
        self._idle = asyncio.Event()
        self._failure: Exception | None = None
        # Durations are by the monotonic clock; the time before this process, by the wall clock.
        self._started = time.monotonic()
        self._earlier_s = 0.0
        self._yields_at = 0.0  # when nodes let the loop go on, by the monotonic clock

    async def run(self) -> WorkflowRecord:
        """Run the workflow to its end; the final state is durable when this returns.

        Raises:
            LeaseLost: another process has taken the workflow over.
            ShutdownInterrupt: the engine is shutting down, and nodes are left for the next engine.
            asyncio.CancelledError: the workflow is `cancelled`, or the engine is shutting down.
        """
        try:
            self._mark_running()
            await self._start_chains(
                [node_id for node_id in self._nodes if self._is_ready(node_id)]
            )
            if self._tasks and self._failure is None:
                self._idle.clear()  # the first may have ended before the others were begun
                async with asyncio.timeout(self._workflow.options.deadline_s) as deadline:
                    await self._idle.wait()
            if self._failure is not None:
                raise self._failure
            if not all(map(self._is_over, self._nodes)):
                raise ShutdownInterrupt(self._workflow.id)
        except asyncio.CancelledError:
            await self._stop_nodes()
            if not self._core.is_draining:
                await self._finish("cancelled", make_error_info(ErrorCode.CANCELLED))
            raise
        except TimeoutError:
            await self._stop_nodes()
            limit_s = self._workflow.options.deadline_s
            if self._core.is_draining or limit_s is None or not deadline.expired():
                raise
            return await self._finish("failed", make_deadline_error(limit_s))
        except BaseException as error:
            if isinstance(error, StoreUnavailableError):
                # Nodes stopped here have not ended: the process that takes this up runs them.
                self._core.store.writer.forfeit(self._lease, error)
            await self._stop_nodes()
            raise
        return await self._finish_from_states()

    async def abandon(self) -> WorkflowRecord:
        """End the workflow and its unfinished nodes as cancelled, without running them."""
        for node_id in list(self._interrupted):
            job_run = self._make_job_run(self._nodes[node_id])
            await self._executor.cancel(job_run)
            self._states[node_id] = JobState.of(job_run.job)
        return await self._finish("cancelled", make_error_info(ErrorCode.CANCELLED))

    async def recover(self) -> tuple[Decimal, Decimal]:
        """Take over the results of earlier processes, or of an earlier workflow.

        Returns:
            the US dollars spent so far, and the part of them that no record counted yet because a
            crash cut the calls off; both count as if this process had spent them.
        """
        store = self._core.store
        rows = await store.find_rows("jobs", workflow_id=self._workflow.id)
        for job_id in self._spec["kept"].values():
            row = await store.get_row("jobs", job_id)
            rows.extend([row] if row is not None else [])
        node_ids = {job_id: node_id for node_id, job_id in self._spec["kept"].items()}
        incurred = interruptions = ZERO_USD
        for row in rows:
            job = read_job(row)
            node_id = node_ids.get(job.id, job.node_id or "")
            if row["status"] not in FINAL_STATUSES:  # the document may be ahead of it
                recorded_cost = job.cost_incurred_usd
                self._interrupted[node_id] = job = requeue_interrupted(job)
                interruptions += job.cost_incurred_usd - recorded_cost
            if job.workflow_id == self._workflow.id:
                incurred += job.cost_incurred_usd
            self._states[node_id] = JobState.of(job)
            if row["vendor_job_id"] is not None:
                self._vendor_jobs[node_id] = str(row["vendor_job_id"])
            if job.status == "completed" and job.artifact_id is not None:
                artifact = await store.get_row("artifacts", job.artifact_id)
                if artifact is not None:
                    self._artifacts[node_id] = StoredArtifact.of(artifact)
            if self._is_done_with(node_id):
                for dependent in self._dependents[node_id]:
                    self._waiting_for[dependent] -= 1
        self._skipped = find_skipped(self._states, self._dependents, self._optional)
        self._earlier_s = max(0.0, (now() - self._workflow.created_at).total_seconds())
        return incurred, interruptions

    def _mark_running(self) -> None:
        if self._workflow.started_at is None:
            earlier = [state.started_at for state in self._states.values() if state.started_at]
            started_at = min(earlier, default=now())
            self._workflow = self._workflow.model_copy(update={"started_at": started_at})
        # Only the status column: the record is written again when the workflow ends.
        update = UpdateRow("workflows", self._workflow.id, {"status": "running"})
        event = self._make_event("running")
        self._core.store.write([update, event], lease=self._lease, eager=False)

    def _is_over(self, node_id: str) -> bool:
        state = self._states.get(node_id)
        is_final = state is not None and state.status in FINAL_STATUSES
        return is_final or node_id in self._skipped

    def _is_done_with(self, node_id: str) -> bool:
        """Check whether the dependents of a node need neither wait for it nor be skipped."""
        status = self._states[node_id].status
        return status == "completed" or (status == "failed" and node_id in self._optional)

    def _is_ready(self, node_id: str) -> bool:
        free = self._waiting_for[node_id] == 0 and not self._core.is_draining
        return free and not self._is_over(node_id)

    def _start_chain(self, node_id: str) -> None:
        carried_out = self._run_chain(node_id)
        self._tasks.add(asyncio.create_task(carried_out, context=self._context))

    async def _start_chains(self, node_ids: Sequence[str]) -> None:
        """Start nodes in small batches; in between, other tasks run and the store may catch up."""
        for i, node_id in enumerate(node_ids):
            self._start_chain(node_id)
            if i % START_BATCH_SIZE == START_BATCH_SIZE - 1:
                await asyncio.sleep(0)
                await self._core.store.writer.backlog.wait_for_room()

    async def _run_chain(self, first: str) -> None:
        """Run a node and then, as long as there is one, a node that waited for it.

        A chain is therefore one task, and its next node does not queue behind the node's siblings.
        """
        ready = [first]
        try:
            while ready:
                node_id, *siblings = ready
                await self._start_chains(siblings)
                ready = await self._run_node(node_id)
        except ShutdownInterrupt:
            pass  # nodes that have begun go on
        except Exception as error:
            self._failure = self._failure or error
        finally:
            self._tasks.discard(asyncio.current_task())
            if not self._tasks or self._failure is not None:
                self._idle.set()

    async def _run_node(self, node_id: str) -> list[str]:
        """Run one node and return the nodes that can start now that it has ended."""
        job_run = self._make_job_run(self._nodes[node_id])
        try:
            outcome = await self._executor.execute(job_run)
        finally:
            self._states[node_id] = JobState.of(job_run.job)
        # No need to wait until the end is durable: writes under a lease are in order and without
        # gaps, so its dependents' come after it, and they spend only after their own writes.
        if not self._is_done_with(node_id):
            return []
        if self._unstarted_dependents[node_id] and outcome.artifact is not None:
            self._artifacts[node_id] = outcome.artifact
        if not job_run.job.latency_ms and self._has_to_yield():
            await asyncio.sleep(0)  # it may never have yielded to the loop: let other tasks run
            self._yields_at = time.monotonic() + MAX_TURN_S
        for dependent in self._dependents[node_id]:
            self._waiting_for[dependent] -= 1
        return [node_id for node_id in self._dependents[node_id] if self._is_ready(node_id)]

    def _has_to_yield(self) -> bool:
        """Check whether a chain must yield to the event loop.

        It must at once if another job is active, and otherwise after `MAX_TURN_S`.
        """
        slots = self._core.concurrency
        is_alone = len(self._tasks) == 1 and not (slots.used_count or slots.waiting_count)
        return not is_alone or time.monotonic() > self._yields_at

    def _skip_descendants(self, job_run: JobRun) -> list[Change]:
        """Mark the descendants of a failed node as skipped, and return their events.

        Does nothing for any other state, and if the node is optional.
        """
        if job_run.job.status != "failed" or job_run.job.node_id in self._optional:
            return []
        skipped = skip_descendants(
            str(job_run.job.node_id), job_run.job.completed_at, self._dependents, self._skipped
        )
        self._skipped |= skipped
        return [self._make_cancelled_event(node_id, skip) for node_id, skip in skipped.items()]

    def _make_job_run(self, node: Node) -> JobRun:
        """Prepare the node's job: the job it had before a crash, or a new job."""
        earlier = self._interrupted.pop(node.id, None)
        upstream_ids = [up for up in node.depends_on if self._states[up].status == "completed"]
        upstream = {up: self._artifacts[up] for up in upstream_ids}
        for up in upstream:
            self._unstarted_dependents[up] -= 1
            if not self._unstarted_dependents[up]:
                del self._artifacts[up]  # so that a large workflow is not in memory as a whole
        job = earlier or self._make_job(node, upstream)
        limit = from_wire_usd(job.options.max_cost_usd)
        node_budgets = () if limit is None else (Budget(limit, job.cost_incurred_usd),)
        return JobRun(
            job=job,
            capability=self._core.require_for_node(node.capability),
            account_id=self._lease.account_id,
            lease=self._lease,
            resource_id=self._workflow.id,
            kind="node",
            budgets=(*self._budgets, *node_budgets),
            max_retries=self._workflow.max_retries,
            # The caller sets the retries of its own workflow; a task's is reviewed and changed.
            stops_when_lasting=self._workflow.task_id is not None,
            upstream=upstream,
            vendor_job_id=self._vendor_jobs.get(node.id),
            is_new=earlier is None,
            on_state=self._skip_descendants,
        )

    def _make_job(self, node: Node, upstream: Mapping[str, StoredArtifact]) -> JobRecord:
        overrides = self._spec["options"].get(node.id)
        options = Options(**overrides) if overrides else DEFAULT_OPTIONS
        return JobRecord(
            id=new_id(Prefix.JOB),
            workflow_id=self._workflow.id,
            node_id=node.id,
            capability=node.capability,
            input=node.input,
            from_artifacts={up: entry.artifact.id for up, entry in upstream.items()},
            options=options,
            compute_id=options.compute_id,
            created_at=now(),
        )

    def _make_cancelled_event(self, node_id: str, skip: SkippedNode) -> AppendEvent:
        """Make the event of a node that never starts, and so has no job."""
        data: dict[str, object] = {
            "id": self._workflow.id,
            "node_id": node_id,
            "error": skip.error.model_dump(mode="json", exclude_none=True),
        }
        return AppendEvent(
            self._workflow.id, "node.cancelled", data, format_rfc3339(skip.skipped_at)
        )

    async def _stop_nodes(self) -> None:
        running = [task for task in self._tasks if task is not None]
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)

    async def _finish_from_states(self) -> WorkflowRecord:
        """Record the workflow's end: failed if a required node or every last node failed."""
        failures = {id_: state for id_, state in self._states.items() if state.status == "failed"}
        failed = [state for id_, state in failures.items() if id_ not in self._optional]
        last = [node_id for node_id, dependents in self._dependents.items() if not dependents]
        if not failed and all(node_id in failures for node_id in last):
            failed = [failures[node_id] for node_id in last]
        if not failed:
            return await self._finish("completed", None)
        first = min(failed, key=lambda state: state.completed_at or now())
        return await self._finish("failed", first.error)

    async def _finish(self, status: WorkflowStatus, error: ErrorInfo | None) -> WorkflowRecord:
        """Record the end of the workflow; nodes that have not ended become cancelled."""
        changes: list[Change] = []
        ended_at = now()
        skip = SkippedNode(make_error_info(ErrorCode.CANCELLED), ended_at)
        late = {node_id: skip for node_id in self._nodes if not self._is_over(node_id)}
        self._skipped |= late
        async with Pacer(self._lease.account_id) as pacer:
            for node_id in late:
                changes.append(self._make_cancelled_event(node_id, skip))
                await pacer.pause()
            workflow = await materialize_nodes(self._workflow, self._states, self._skipped, pacer)
        workflow.status, workflow.error, workflow.completed_at = status, error, ended_at
        workflow.latency_ms = int((self._earlier_s + time.monotonic() - self._started) * 1000)
        artifact_ids = {node.id: node.artifact_id for node in workflow.nodes}
        last = [node_id for node_id, dependents in self._dependents.items() if not dependents]
        workflow.sink_artifact_ids = {
            node_id: artifact_id
            for node_id in last
            if (artifact_id := artifact_ids[node_id]) is not None
        }
        if status == "completed":
            workflow.final_artifact_id = list(workflow.sink_artifact_ids.values())[-1]
        self._workflow = workflow
        values = {"status": status, "doc": workflow.model_dump_json()}
        changes += [UpdateRow("workflows", workflow.id, values), self._make_event(status)]
        await self._core.store.write(changes, lease=self._lease)
        return workflow

    def _make_event(self, state: str) -> AppendEvent:
        workflow = self._workflow
        data: dict[str, object] = {"id": workflow.id}
        if workflow.error is not None:
            data["error"] = workflow.error.model_dump(mode="json", exclude_none=True)
        for name in ("final_artifact_id", "cost_usd", "latency_ms"):
            if state in FINAL_STATUSES and getattr(workflow, name) is not None:
                data[name] = getattr(workflow, name)
        if state in FINAL_STATUSES and workflow.warnings:
            data["warnings"] = workflow.warnings
        return AppendEvent(workflow.id, f"workflow.{state}", data, format_rfc3339(now()))
