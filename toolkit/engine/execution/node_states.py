"""The states of nodes, and a workflow's record, computed from the jobs of its nodes."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from operator import attrgetter
from typing import NamedTuple, Self

from toolkit.contract.base import ErrorInfo, now
from toolkit.contract.errors import MAX_MESSAGE, ErrorCode
from toolkit.contract.jobs import JobStatus
from toolkit.contract.money import ZERO_USD, to_wire_usd
from toolkit.contract.suggestions import truncate_text
from toolkit.contract.workflows import Node, NodeCreate, WorkflowRecord
from toolkit.engine.concurrency.pacing import Pacer
from toolkit.engine.job_record import JobRecord
from toolkit.engine.money.amounts import sum_costs

NODES_BETWEEN_PAUSES = 32  # 32 nodes take a tenth of a millisecond


@dataclass(frozen=True, slots=True)
class SkippedNode:
    """A node that will never start: the reason, and the time since when."""

    error: ErrorInfo
    skipped_at: datetime


class JobState(NamedTuple):
    """The part of a job that a workflow's record shows; it stays in memory after the job ends."""

    id: str
    workflow_id: str | None
    status: JobStatus
    status_detail: str | None
    artifact_id: str | None
    retry_count: int
    provider: str | None
    cost_usd: Decimal | None
    cost_incurred_usd: Decimal
    error: ErrorInfo | None
    started_at: datetime | None
    completed_at: datetime | None
    cached_from: str | None

    @classmethod
    def of(cls, job: JobRecord) -> Self:
        """Return the current state of a job."""
        return cls._make(_read_state(job))


_read_state = attrgetter(*JobState._fields)


async def materialize_nodes(
    workflow: WorkflowRecord,
    jobs: Mapping[str, JobState],
    skipped: Mapping[str, SkippedNode],
    pacer: Pacer,
) -> WorkflowRecord:
    """Return a workflow's record with its nodes' states, and the sums of their costs and retries.

    Args:
        workflow: the record, which is not changed.
        jobs: the jobs of its nodes in their current state, by node id.
        skipped: the nodes that will never have a job, by node id.
        pacer: the pacer that divides the work into slices.
    """
    nodes = []
    for i, node in enumerate(workflow.nodes):
        nodes.append(_materialize_node(node, jobs.get(node.id), skipped.get(node.id)))
        if i % NODES_BETWEEN_PAUSES == 0:
            await pacer.pause()
    own_jobs = [job for job in jobs.values() if job.workflow_id == workflow.id]
    failures = [node for node in nodes if node.optional and node.status == "failed"]
    cost = sum_costs(job.cost_usd for job in own_jobs if job.status == "completed")
    incurred_cost = sum((job.cost_incurred_usd for job in own_jobs), ZERO_USD)
    return workflow.model_copy(
        update={
            "nodes": nodes,
            "cost_usd": to_wire_usd(cost),
            "cost_incurred_usd": to_wire_usd(incurred_cost),
            "retries": sum(job.retry_count for job in own_jobs),
            "warnings": [_describe_failure(node) for node in failures],
        }
    )


def _materialize_node(node: Node, job: JobState | None, skip: SkippedNode | None) -> Node:
    if skip is not None:
        update = {"status": "cancelled", "error": skip.error, "completed_at": skip.skipped_at}
        return node.model_copy(update={**update, "cost_usd": 0.0})  # it never started
    if job is None:
        return node
    costs = {name: to_wire_usd(getattr(job, name)) for name in ("cost_usd", "cost_incurred_usd")}
    members = {name: value for name, value in job._asdict().items() if name in Node.model_fields}
    return node.model_copy(update={**members, **costs, "id": node.id, "job_id": job.id})


def _describe_failure(node: Node) -> str:
    reason = f": {node.error.code}: {node.error.message}" if node.error is not None else ""
    return truncate_text(f"`{node.id}` is optional and failed{reason}", MAX_MESSAGE)


def find_kept_jobs(nodes: Sequence[Node], rerun_ids: Collection[str]) -> dict[str, str]:
    """Find the jobs whose results are kept, by node id, if the nodes of `rerun_ids` run again.

    An optional node that failed is kept too, unless a node that depends on it runs again.
    """
    dependents = find_dependents(nodes)
    failed_ids = {node.id for node in nodes if node.optional and node.status == "failed"}
    kept_ids = {node.id for node in nodes if node.status == "completed"} | failed_ids
    kept_ids -= set(rerun_ids)
    while needed_ids := {
        node_id for node_id in failed_ids & kept_ids if not kept_ids.issuperset(dependents[node_id])
    }:
        kept_ids -= needed_ids
    return {
        node.id: node.job_id for node in nodes if node.id in kept_ids and node.job_id is not None
    }


def find_dependents(nodes: Iterable[Node | NodeCreate]) -> dict[str, list[str]]:
    """Find the nodes that depend on each node, directly."""
    nodes = list(nodes)
    dependents: dict[str, list[str]] = {node.id: [] for node in nodes}
    for node in nodes:
        for upstream in node.depends_on:
            dependents[upstream].append(node.id)
    return dependents


def find_descendants(node_id: str, dependents: Mapping[str, Sequence[str]]) -> list[str]:
    """Find every node that depends on a node, directly or through others.

    >>> find_descendants("a", {"a": ["b"], "b": ["c"], "c": [], "d": []})
    ['b', 'c']
    """
    descendants: dict[str, None] = {}
    queue = list(dependents[node_id])
    while queue:
        dependent = queue.pop()
        if dependent not in descendants:
            descendants[dependent] = None
            queue += dependents[dependent]
    return list(descendants)


def find_optional(nodes: Iterable[Node | NodeCreate]) -> frozenset[str]:
    """Find the ids of optional nodes: if such a node fails, its dependents run without it."""
    return frozenset(node.id for node in nodes if node.optional)


def skip_descendants(
    node_id: str, at: datetime | None, edges: Mapping[str, Sequence[str]], skipped: Collection[str]
) -> dict[str, SkippedNode]:
    """Find the nodes that will never start because a node failed, except nodes already skipped."""
    message = f"`{node_id}` did not complete."
    error = ErrorInfo(code=ErrorCode.UPSTREAM_FAILED.name, message=message)
    skip = SkippedNode(error, at or now())
    return {
        descendant: skip
        for descendant in find_descendants(node_id, edges)
        if descendant not in skipped
    }


def find_skipped(
    jobs: Mapping[str, JobState], edges: Mapping[str, Sequence[str]], optional: Collection[str]
) -> dict[str, SkippedNode]:
    """Find the nodes that never start because a node that they need failed or was cancelled.

    Args:
        jobs: the jobs in their current state, by node id.
        edges: the nodes that depend on each node, by its id.
        optional: the nodes whose dependents run without them.
    """
    failures = [
        (node_id, job)
        for node_id, job in jobs.items()
        if job.status == "cancelled" or (job.status == "failed" and node_id not in optional)
    ]
    skipped: dict[str, SkippedNode] = {}
    for node_id, job in sorted(failures, key=lambda item: item[1].completed_at or now()):
        skipped |= skip_descendants(node_id, job.completed_at, edges, skipped)
    return skipped


def make_error_info(code: ErrorCode) -> ErrorInfo:
    """Make the error that a record shows for a code, with the code's standard message."""
    return ErrorInfo(code=code.name, message=code.hint)
