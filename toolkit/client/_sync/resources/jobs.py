# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""`client.jobs`: what is done for a run, a node, or on a compute of one's own."""

from collections.abc import Mapping
from typing import Unpack

from toolkit.client._options import collect_options, document_options
from toolkit.client._sync.execution import Execution
from toolkit.client._sync.resource import WorkResource
from toolkit.client._work_views import JobView
from toolkit.contract import jobs
from toolkit.contract.run_options import WORK_OPTIONS, WorkOptions


class Job(JobView, Execution[jobs.Job]):
    """A job: a run's, a workflow node's, or one asked for on a compute."""

    noun, resource, record_type = "Job", "jobs", jobs.Job


class Jobs(WorkResource[Job]):
    """`client.jobs`."""

    handle = Job

    @document_options(WorkOptions)
    def create(
        self,
        type: str,
        compute_id: str,
        input: Mapping[str, object],
        **options: Unpack[WorkOptions],
    ) -> Job:
        """Have a job done on a compute of one's own; it is under way when this returns.

        Args:
            type: what to do, such as `image` (`job.type` of a capability).
            compute_id: the compute to do it on.
            input: the capability's input.
            **options: those of a run.

        Raises:
            RequestError: `INVALID_REQUEST`, `NOT_FOUND` and others.
        """
        chosen = collect_options(options, self._http.choose_cache("capability"), WORK_OPTIONS)
        body = {"type": type, "compute_id": compute_id, "input": dict(input), "options": chosen}
        return self._create(body)
