# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""`client.agents`: objectives to fill in, under a name."""

from toolkit.client._definition_views import AgentView
from toolkit.client._replies import Reply
from toolkit.client._resource_calls import AgentCalls
from toolkit.client._sync.handle import Deletable
from toolkit.client._sync.resource import Resource
from toolkit.client._sync.resources.runs import Run
from toolkit.client._wire.messages import make_run_body
from toolkit.contract import agents, runs


class Agent(AgentView, Deletable[agents.Agent]):
    """An agent: an objective to fill in, under a name."""

    noun, resource, record_type = "Agent", "agents", agents.Agent

    def run(self, **parameters: str) -> Run:
        """Run it with its parameters filled in; the run is under way when this returns.

        Raises:
            RequestError: `INVALID_REQUEST` for a parameter that is missing, `CREDENTIALS_MISSING`.
        """
        body = make_run_body(self.name, parameters, None, {}, "agent")
        return Run(self._http, self._http.request_record(runs.Run, "POST", "/runs", json=body))


class Agents(AgentCalls[Reply[Agent]], Resource[Agent]):
    """`client.agents`. The runs of a deleted agent remain."""

    handle = Agent
