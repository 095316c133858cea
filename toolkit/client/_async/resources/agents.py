"""`client.agents`: objectives to fill in, under a name."""

from toolkit.client._async.handle import AsyncDeletable
from toolkit.client._async.resource import AsyncResource
from toolkit.client._async.resources.runs import AsyncRun
from toolkit.client._definition_views import AgentView
from toolkit.client._replies import AsyncReply
from toolkit.client._resource_calls import AgentCalls
from toolkit.client._wire.messages import make_run_body
from toolkit.contract import agents, runs


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


class AsyncAgents(AgentCalls[AsyncReply[AsyncAgent]], AsyncResource[AsyncAgent]):
    """`client.agents`. The runs of a deleted agent remain."""

    handle = AsyncAgent
