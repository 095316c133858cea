"""`client.jobs`: what is done for a run, a node, or on a compute of one's own."""

from toolkit.client._async.execution import AsyncExecution
from toolkit.client._async.resource import AsyncWorkResource
from toolkit.client._replies import AsyncReply
from toolkit.client._work_calls import JobCalls
from toolkit.client._work_views import JobView
from toolkit.contract import jobs


class AsyncJob(JobView, AsyncExecution[jobs.Job]):
    """A job: a run's, a workflow node's, or one asked for on a compute."""

    noun, resource, record_type = "Job", "jobs", jobs.Job


class AsyncJobs(JobCalls[AsyncReply[AsyncJob]], AsyncWorkResource[AsyncJob]):
    """`client.jobs`."""

    handle = AsyncJob
