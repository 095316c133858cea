"""`client.agents`: objectives to fill in, under a name."""

from collections.abc import Sequence

from toolkit.client._async.handle import AsyncDeletable
from toolkit.client._async.resource import AsyncDeletableResource
from toolkit.client._async.resources.runs import AsyncRun
from toolkit.client._definition_views import AgentView
from toolkit.client._wire.messages import drop_none, make_run_body
from toolkit.contract import agents, runs
from toolkit.contract.choices import OptimizeFor


class AsyncAgent(AgentView, AsyncDeletable[agents.Agent]):
    """An agent: an objective to fill in, under a name."""

    noun, resource, record_type = "Agent", "agents", agents.Agent

    async def run(self, **parameters: str) -> AsyncRun:
        """Run it with its parameters filled in; the run is under way when this returns.

        Raises:
            RequestError: `INVALID_REQUEST` for a parameter that is missing, `CREDENTIALS_MISSING`.
        """
        body = make_run_body(self.name, parameters, None, {}, "agent")
        return AsyncRun(
            self._http, await self._http.request_record(runs.Run, "POST", "/runs", json=body)
        )


class AsyncAgents(AsyncDeletableResource[AsyncAgent]):
    """`client.agents`; the runs of one that is deleted stay."""

    handle = AsyncAgent

    async def create(
        self,
        name: str,
        objective: str,
        *,
        version: str | None = None,
        capabilities: Sequence[str] | None = None,
        max_cost_usd: float | None = None,
        optimize_for: OptimizeFor | None = None,
        endpoint_id: str | None = None,
        compute_id: str | None = None,
    ) -> AsyncAgent:
        """Register a version of an agent; run it by its handle, or by its name in `runs.create`.

        Args:
            name: in lower case, such as `card-maker`.
            objective: what is wanted; each `{word}` in it is a parameter of its runs.
            version: `1` by default; a version never changes.
            capabilities: the only ones it may use; all, by default.
            max_cost_usd: what each run may cost.
            optimize_for: `cost`, `latency`, `quality` or `balanced`.
            endpoint_id: a serverless endpoint, for images.
            compute_id: a GPU pod to use instead.

        Raises:
            RequestError: `CONFLICT` for a name and version that are there, `NOT_FOUND`.
        """
        constraints = drop_none(
            max_cost_usd=max_cost_usd,
            optimize_for=optimize_for,
            endpoint_id=endpoint_id,
            compute_id=compute_id,
        )
        body = drop_none(
            name=name,
            version=version,
            objective=objective,
            constraints=constraints,
            capabilities=None if capabilities is None else list(capabilities),
        )
        return await self._create(body)
