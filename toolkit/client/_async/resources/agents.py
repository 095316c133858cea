"""`client.agents`: named objectives, with parameters that each run fills in."""

from toolkit.client._async.handle import AsyncDeletable
from toolkit.client._async.resource import AsyncResource
from toolkit.client._async.resources.runs import AsyncRun, AsyncRuns
from toolkit.client._definition_views import AgentView
from toolkit.client._replies import AsyncReply
from toolkit.client._resource_calls import AgentCalls
from toolkit.contract import agents


class AsyncAgent(AgentView, AsyncDeletable[agents.Agent]):
    """An agent: a named objective, with parameters that each run fills in."""

    noun, resource, record_type = "Agent", "agents", agents.Agent

    async def run(self, **parameters: str) -> AsyncRun:
        """Start a run of the agent with the given parameters; return the run before it ends.

        Raises:
            RequestError: `INVALID_REQUEST` for a parameter that is missing, `CREDENTIALS_MISSING`.
        """
        return await AsyncRuns(self._http).create(self.name, parameters, target="agent")


class AsyncAgents(AgentCalls[AsyncReply[AsyncAgent]], AsyncResource[AsyncAgent]):
    """`client.agents`. The runs of a deleted agent remain."""

    handle = AsyncAgent
