"""How a workflow's record follows from the jobs of its nodes."""

from collections.abc import Iterable, Mapping

from toolkit.contract.jobs import Job
from toolkit.contract.workflows import Node, Workflow


def show(workflow: Workflow, jobs: Mapping[str, Job]) -> None:
    """Put what is known of its jobs, by node, into a workflow's nodes and sums."""
    for node in workflow.nodes:
        if node.id in jobs:
            fill_node(node, jobs[node.id])
    own = [job for job in jobs.values() if job.workflow_id == workflow.id]
    estimates = [job.estimated_cost_usd for job in own if job.status == "completed"]
    known = [cost for cost in estimates if cost is not None]
    # An unknown price is null, never 0: it makes the sum unknown too.
    workflow.cost_usd = dollars(known) if len(known) == len(estimates) else None
    workflow.cost_incurred_usd = dollars(job.cost_incurred_usd for job in own)
    workflow.retries = sum(job.retry_count for job in own)


def fill_node(node: Node, job: Job) -> None:
    """A node as its job stands."""
    node.status = job.status
    node.status_detail = job.status_detail
    node.job_id = job.id
    node.artifact_id = job.artifact_id
    node.retry_count = job.retry_count
    node.provider = job.provider
    node.cost_usd = job.cost_usd
    node.error = job.error
    node.started_at = job.started_at
    node.completed_at = job.completed_at


def dollars(amounts: Iterable[float]) -> float:
    """A sum of dollars, to the billionth: binary fractions would show in the last digits.

    >>> dollars([0.1, 0.2])
    0.3
    """
    return round(sum(amounts), 9)
