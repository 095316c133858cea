# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""`client.agents`: named objectives, with parameters that each run fills in."""

from toolkit.client._definition_views import AgentView
from toolkit.client._replies import Reply
from toolkit.client._resource_calls import AgentCalls
from toolkit.client._sync.handle import Deletable
from toolkit.client._sync.resource import Resource
from toolkit.client._sync.resources.runs import Run, Runs
from toolkit.contract import agents


class Agent(AgentView, Deletable[agents.Agent]):
    """An agent: a named objective, with parameters that each run fills in."""

    noun, resource, record_type = "Agent", "agents", agents.Agent

    def run(self, **parameters: str) -> Run:
        """Start a run of the agent with the given parameters; return the run before it ends.

        Raises:
            RequestError: `INVALID_REQUEST` for a parameter that is missing, `CREDENTIALS_MISSING`.
        """
        return Runs(self._http).create(self.name, parameters, target="agent")


class Agents(AgentCalls[Reply[Agent]], Resource[Agent]):
    """`client.agents`. The runs of a deleted agent remain."""

    handle = Agent
