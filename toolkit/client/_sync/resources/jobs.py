# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""`client.jobs`: what is done for a run, a node, or on a compute of one's own."""

from toolkit.client._replies import Reply
from toolkit.client._sync.execution import Execution
from toolkit.client._sync.resource import WorkResource
from toolkit.client._work_calls import JobCalls
from toolkit.client._work_views import JobView
from toolkit.contract import jobs


class Job(JobView, Execution[jobs.Job]):
    """A job: a run's, a workflow node's, or one asked for on a compute."""

    noun, resource, record_type = "Job", "jobs", jobs.Job


class Jobs(JobCalls[Reply[Job]], WorkResource[Job]):
    """`client.jobs`."""

    handle = Job
