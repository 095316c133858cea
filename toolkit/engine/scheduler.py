"""Runs one workflow: a node starts the moment its last dependency completes."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from toolkit.contract.artifacts import Artifact
from toolkit.contract.base import ErrorInfo, now, rfc3339
from toolkit.contract.errors import ErrorCode
from toolkit.contract.ids import Prefix, new_id
from toolkit.contract.jobs import FINAL_STATUSES, Job, Options
from toolkit.contract.workflows import Node, Workflow, WorkflowStatus
from toolkit.engine.budget import Budget
from toolkit.engine.core import Core
from toolkit.engine.graph import last_sink, sinks
from toolkit.engine.jobs import JobRunner
from toolkit.engine.nodes import fill_node, show
from toolkit.engine.work import Suspended, Work, interrupted
from toolkit.store import Change, Emit, Lease, Update

DEFAULT_OPTIONS = Options()


class Scheduler:
    """Carries out a workflow from wherever it stands, without level barriers.

    The state of a node is that of its job; what is kept here is only what is needed to know what
    can start next, and all of it can be made again from the store.
    """

    def __init__(
        self,
        core: Core,
        runner: JobRunner,
        workflow: Workflow,
        spec: Mapping[str, Any],
        lease: Lease,
        budgets: Sequence[Budget],
    ) -> None:
        self._core = core
        self._runner = runner
        self._workflow = workflow
        self._spec = spec
        self._lease = lease
        self._budgets = tuple(budgets)
        self._nodes: dict[str, Node] = {node.id: node for node in workflow.nodes}
        self._dependents: dict[str, list[str]] = {node_id: [] for node_id in self._nodes}
        for node in workflow.nodes:
            for upstream in node.depends_on:
                self._dependents[upstream].append(node.id)
        self._waiting_for = {node.id: len(node.depends_on) for node in workflow.nodes}
        self._jobs: dict[str, Job] = {}
        self._vendor_jobs: dict[str, str] = {}
        self._artifacts: dict[str, Artifact] = {}
        self._running: set[asyncio.Task[None]] = set()
        self._idle = asyncio.Event()
        self._failure: BaseException | None = None

    async def run(self) -> Workflow:
        """Run to the end; the final state is durable when this returns.

        Raises:
            LeaseLost: another process has taken it over.
            Suspended: the engine is shutting down, and nodes are left for the next one.
            asyncio.CancelledError: it is `cancelled`, or the engine is shutting down.
        """
        try:
            await self._recover()
            self._begin()
            for failed in [n for n in self._workflow.nodes if n.status in ("failed", "cancelled")]:
                await self._cancel_downstream(failed)
            for node in list(self._workflow.nodes):
                if self._ready(node):
                    self._start(node)
            if self._running:
                await self._idle.wait()
            if self._failure is not None:
                raise self._failure
            if any(node.status not in FINAL_STATUSES for node in self._workflow.nodes):
                raise Suspended(self._workflow.id)
        except asyncio.CancelledError:
            await self._stop()
            if not self._core.draining:
                await self._finish("cancelled", _error(ErrorCode.CANCELLED))
            raise
        except BaseException:
            await self._stop()
            raise
        return await self._end()

    async def _recover(self) -> None:
        """Take over what earlier processes, or an earlier workflow, have done."""
        store = self._core.store
        rows = await store.find("jobs", workflow_id=self._workflow.id)
        for job_id in self._spec["kept"].values():
            row = await store.get("jobs", job_id)
            rows.extend([row] if row is not None else [])
        kept = {job_id: node_id for node_id, job_id in self._spec["kept"].items()}
        for row in rows:
            job = Job.model_validate_json(str(row["doc"]))
            node_id = kept.get(job.id, job.node_id or "")
            self._jobs[node_id] = job
            fill_node(self._nodes[node_id], job)
            if row["vendor_job_id"] is not None:
                self._vendor_jobs[node_id] = str(row["vendor_job_id"])
            if job.status == "completed" and job.artifact_id is not None:
                artifact = await store.get("artifacts", job.artifact_id)
                if artifact is not None:
                    self._artifacts[node_id] = Artifact.model_validate_json(str(artifact["doc"]))
                for dependent in self._dependents[node_id]:
                    self._waiting_for[dependent] -= 1

    def _begin(self) -> None:
        workflow = self._workflow
        if workflow.started_at is None:
            workflow.started_at = now()
        workflow.status = "running"
        # The record itself is written again when there is more to say than its status.
        saved = Update("workflows", workflow.id, {"status": workflow.status})
        self._core.store.write([saved, self._event("running")], lease=self._lease, eager=False)

    def _ready(self, node: Node) -> bool:
        unfinished = node.status not in FINAL_STATUSES and not self._core.draining
        return unfinished and self._waiting_for[node.id] == 0

    def _start(self, node: Node) -> None:
        task = asyncio.create_task(self._carry_out(node))
        self._running.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._failure = self._failure or task.exception()
        if not self._running or self._failure is not None:
            self._idle.set()

    async def _carry_out(self, node: Node) -> None:
        work = self._work(node)
        artifact = await self._runner.execute(work)
        # The rest of the node's record follows from its job, at the end.
        node.status, node.error = work.job.status, work.job.error
        node.completed_at = work.job.completed_at
        if artifact is None:
            await self._cancel_downstream(node)
            return
        self._artifacts[node.id] = artifact
        for dependent in self._dependents[node.id]:
            self._waiting_for[dependent] -= 1
            if self._ready(self._nodes[dependent]):
                self._start(self._nodes[dependent])

    def _work(self, node: Node) -> Work:
        """The node's job: the one it had before a crash, or a new one."""
        earlier = self._jobs.get(node.id)
        job = interrupted(earlier) if earlier is not None else self._new_job(node)
        self._jobs[node.id] = job
        return Work(
            job=job,
            capability=self._core.registry.require(node.capability),
            account_id=self._lease.account_id,
            lease=self._lease,
            resource_id=self._workflow.id,
            kind="node",
            budgets=self._budgets,
            max_retries=self._workflow.max_retries,
            upstream={up: self._artifacts[up] for up in node.depends_on},
            vendor_job_id=self._vendor_jobs.get(node.id),
            simulated=self._core.settings.sandbox,
            new=earlier is None,
        )

    def _new_job(self, node: Node) -> Job:
        return Job(
            id=new_id(Prefix.JOB),
            workflow_id=self._workflow.id,
            node_id=node.id,
            capability=node.capability,
            input=node.input,
            from_artifacts={up: self._artifacts[up].id for up in node.depends_on},
            options=self._options(node),
            created_at=now(),
        )

    def _options(self, node: Node) -> Options:
        given = self._spec["options"].get(node.id)
        return Options(**given) if given else DEFAULT_OPTIONS

    async def _cancel_downstream(self, failed: Node) -> None:
        """Cancel only what lies behind a node that failed; independent branches go on."""
        changes: list[Change] = []
        behind = list(self._dependents[failed.id])
        while behind:
            node = self._nodes[behind.pop()]
            if node.status in FINAL_STATUSES:
                continue
            error = _error(ErrorCode.UPSTREAM_FAILED, f"`{failed.id}` did not complete.")
            changes.append(self._cancelled(node, error))
            behind += self._dependents[node.id]
        if changes:
            await self._core.store.write([self._saved(), *changes], lease=self._lease)

    def _cancelled(self, node: Node, error: ErrorInfo) -> Emit:
        """A node that never started: it has no job, and the workflow's record keeps its state."""
        node.job_id = None
        node.status, node.error, node.completed_at = "cancelled", error, now()
        data: dict[str, object] = {
            "id": self._workflow.id,
            "node_id": node.id,
            "error": error.model_dump(mode="json", exclude_none=True),
        }
        at = rfc3339(node.completed_at)
        return Emit(self._workflow.id, "node.cancelled", data, at)

    async def _stop(self) -> None:
        """Have every running node stop, each writing down its own end."""
        running = list(self._running)
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)

    async def _end(self) -> Workflow:
        failed = [node for node in self._workflow.nodes if node.status == "failed"]
        if not failed:
            await self._finish("completed", None)
        else:
            first = min(failed, key=lambda node: node.completed_at or now())
            await self._finish("failed", first.error)
        return self._workflow

    async def _finish(self, status: WorkflowStatus, error: ErrorInfo | None) -> None:
        workflow = self._workflow
        changes: list[Change] = []
        show(workflow, self._jobs)
        if status == "cancelled":
            for node in workflow.nodes:
                if node.status not in FINAL_STATUSES:
                    changes.append(self._cancelled(node, _error(ErrorCode.CANCELLED)))
        workflow.status, workflow.error, workflow.completed_at = status, error, now()
        took = workflow.completed_at - workflow.created_at
        workflow.latency_ms = max(0, int(took.total_seconds() * 1000))
        order = list(self._nodes)
        depends_on = {node.id: node.depends_on for node in workflow.nodes}
        workflow.sink_artifact_ids = {
            node_id: artifact_id
            for node_id in sinks(order, depends_on)
            if (artifact_id := self._nodes[node_id].artifact_id) is not None
        }
        if status == "completed":
            workflow.final_artifact_id = workflow.sink_artifact_ids[last_sink(order, depends_on)]
        changes += [self._saved(), self._event(status)]
        await self._core.store.write(changes, lease=self._lease)

    def _saved(self) -> Update:
        workflow = self._workflow
        values = {"status": workflow.status, "doc": workflow.model_dump_json()}
        return Update("workflows", workflow.id, values)

    def _event(self, state: str) -> Emit:
        workflow = self._workflow
        data: dict[str, object] = {"id": workflow.id}
        if workflow.error is not None:
            data["error"] = workflow.error.model_dump(mode="json", exclude_none=True)
        for name in ("final_artifact_id", "cost_usd", "latency_ms"):
            if state in FINAL_STATUSES and getattr(workflow, name) is not None:
                data[name] = getattr(workflow, name)
        return Emit(workflow.id, f"workflow.{state}", data, rfc3339(now()))


def _error(code: ErrorCode, message: str | None = None) -> ErrorInfo:
    return ErrorInfo(code=code.name, message=message or code.hint)
