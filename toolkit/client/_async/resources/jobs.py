"""`client.jobs`: what is done for a run, a node, or on a compute of one's own."""

from collections.abc import Mapping

from toolkit.client import _wire
from toolkit.client._async.execution import AsyncExecution
from toolkit.client._async.resource import AsyncWorkResource
from toolkit.contract import jobs


class AsyncJob(AsyncExecution[jobs.Job]):
    """A job: a run's, a workflow node's, or one asked for on a compute."""

    kind, resource, model = "Job", "jobs", jobs.Job

    @property
    def run_id(self) -> str:
        """The run that it is carried out for; empty if there is none."""
        return self.record.run_id or ""

    @property
    def compute_id(self) -> str:
        """The compute that it runs on; empty elsewhere."""
        return self.record.compute_id or ""


class AsyncJobs(AsyncWorkResource[AsyncJob]):
    """`client.jobs`."""

    handle = AsyncJob

    async def create(
        self,
        type: str,
        compute_id: str,
        input: Mapping[str, object],
        *,
        optimize_for: str | None = None,
        provider: str | None = None,
        max_cost_usd: float | None = None,
        deadline_s: float | None = None,
        cache: bool | None = None,
        fallback_on_rejection: bool = False,
    ) -> AsyncJob:
        """Have a job done on a compute of one's own; it is under way when this returns.

        Args:
            type: what to do, such as `image` (`job.type` of a capability).
            compute_id: the compute to do it on.
            input: the capability's input.
            optimize_for: `cost`, `latency`, `quality` or `balanced`.
            provider: the compute's own, or the `prv_` id of a connection to it; by default the
                connection that created it.
            max_cost_usd: refuse, or stop, rather than spend more.
            deadline_s: fail rather than take longer, in seconds.
            cache: use the result of an equal job again, and keep this one's; the client's own
                choice by default.
            fallback_on_rejection: try the next connection even with an input that was refused.

        Raises:
            RequestError: `INVALID_REQUEST`, `NOT_FOUND` and others.
        """
        options = _wire.drop_none(
            optimize_for=optimize_for,
            provider=provider,
            max_cost_usd=max_cost_usd,
            deadline_s=deadline_s,
            cache=self._http.choose_cache("capability") if cache is None else cache,
            fallback_on_rejection=fallback_on_rejection or None,
        )
        body = {"type": type, "compute_id": compute_id, "input": dict(input), "options": options}
        return await self._create(body)
