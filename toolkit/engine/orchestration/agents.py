"""The service of `/v1/agents`: registers, lists and deletes them."""

from toolkit.contract.agents import Agent, AgentCreate, find_parameters
from toolkit.contract.base import now
from toolkit.contract.errors import ErrorCode, RequestError, build_not_found
from toolkit.contract.ids import Prefix, new_id
from toolkit.engine.context import EngineContext
from toolkit.engine.execution.admission import check_place
from toolkit.engine.request_context import RequestContext
from toolkit.engine.services.idempotency import commit_accepted
from toolkit.engine.services.record_reader import RecordReader
from toolkit.store import Conflict


class Agents(RecordReader[Agent]):
    """The operations of `/v1/agents`."""

    def __init__(self, core: EngineContext) -> None:
        super().__init__(core, core.records.agents)

    async def create(self, context: RequestContext, request: AgentCreate) -> Agent:
        """Register a version of an agent.

        Raises:
            RequestError: `CONFLICT` for an existing name and version, `NOT_FOUND` for an unknown
                capability, endpoint or compute, `CAPABILITY_UNAVAILABLE`.
        """
        constraints = request.constraints
        for name in (*request.capabilities, *(constraints.capabilities or ())):
            self._core.registry.require(name)
        await check_place(
            self._core, context.scope, constraints.endpoint_id, constraints.compute_id
        )
        agent = Agent(
            id=new_id(Prefix.AGENT),
            parameters=find_parameters(request.objective),
            created_at=now(),
            **dict(request),
        )
        name_key = _make_name_key(context.account_id, agent.name, agent.version)
        insert = self._records.make_insert(context.account_id, agent, named=name_key)
        size_bytes = len(str(insert.values["doc"]))
        await self._core.quotas.check_storage(context.account_id, size_bytes)
        try:
            await commit_accepted(self._core, context, [insert], agent)
        except Conflict:
            raise RequestError(
                ErrorCode.CONFLICT,
                f"`{agent.name}@{agent.version}` already exists; register another version.",
            ) from None
        return agent

    async def find(self, context: RequestContext, name: str, version: str | None) -> Agent:
        """Find the agent of a name, in the given version or the version registered last.

        Args:
            name: name of the agent, or `name@version`.
            version: version, if the name does not include it.

        Raises:
            RequestError: `NOT_FOUND`; `INVALID_REQUEST` if name and version disagree.
        """
        agent_name, _, suffix = name.partition("@")
        if suffix and version is not None and suffix != version:
            raise RequestError(
                ErrorCode.INVALID_REQUEST, "The name and the version disagree; give it once."
            )
        exact_version = suffix or version
        if exact_version is not None:
            name_key = _make_name_key(context.account_id, agent_name, exact_version)
            rows = await self._records.find_rows(context.scope, named=name_key)
        else:
            rows = await self._records.find_rows(context.scope)
        agents = [agent for agent in map(self._records.read, rows) if agent.name == agent_name]
        if not agents:
            raise build_not_found(
                "agent", name if exact_version is None else f"{agent_name}@{exact_version}"
            )
        return agents[-1]

    async def delete(self, context: RequestContext, agent_id: str) -> Agent:
        """Delete an agent; its runs stay, and its name and version are free again."""
        agent = await self.get(context, agent_id)
        agent.deleted = True
        update = self._records.make_update(agent, deleted=True, named=agent.id)
        await self._core.store.write([update])
        return agent


def _make_name_key(account_id: str, name: str, version: str) -> str:
    return f"{account_id}/{name}@{version}"
