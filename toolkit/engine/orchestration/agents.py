"""The service of `/v1/agents`: registers, lists and deletes them."""

from toolkit.contract.agents import Agent, AgentCreate, find_parameters
from toolkit.contract.base import format_rfc3339, now
from toolkit.contract.errors import ErrorCode, RequestError, build_not_found
from toolkit.contract.ids import Prefix, new_id
from toolkit.engine.context import EngineContext
from toolkit.engine.execution.admission import check_place
from toolkit.engine.request_context import RequestContext
from toolkit.engine.services.idempotency import commit_accepted
from toolkit.store import Conflict, InsertRow, Row, UpdateRow


class Agents:
    """The service of `/v1/agents`."""

    def __init__(self, core: EngineContext) -> None:
        self._core = core

    async def create(self, context: RequestContext, request: AgentCreate) -> Agent:
        """Register a version of an agent.

        Raises:
            RequestError: `CONFLICT` for a name and version that are there, `NOT_FOUND` for a
                capability, endpoint or compute that is not, `CAPABILITY_UNAVAILABLE`.
        """
        constraints = request.constraints
        for name in (*request.capabilities, *(constraints.capabilities or ())):
            self._core.registry.require(name)
        await check_place(
            self._core, context.account_id, constraints.endpoint_id, constraints.compute_id
        )
        agent = Agent(
            id=new_id(Prefix.AGENT),
            parameters=find_parameters(request.objective),
            created_at=now(),
            **dict(request),
        )
        row: dict[str, object] = {
            "id": agent.id,
            "account_id": context.account_id,
            "named": _make_name_key(context.account_id, agent.name, agent.version),
            "deleted": False,
            "created_at": format_rfc3339(agent.created_at),
            "doc": agent.model_dump_json(),
        }
        await self._core.quotas.check_storage(context.account_id, len(str(row["doc"])))
        try:
            await commit_accepted(self._core, context, [InsertRow("agents", row)], agent)
        except Conflict:
            raise RequestError(
                ErrorCode.CONFLICT,
                f"`{agent.name}@{agent.version}` is there already; register another version.",
            ) from None
        return agent

    async def get(self, context: RequestContext, agent_id: str) -> Agent:
        """Return one agent.

        Raises:
            RequestError: `NOT_FOUND`.
        """
        row = await self._core.store.get_row("agents", agent_id)
        if row is None or row["account_id"] != context.account_id or row["deleted"]:
            raise build_not_found("agent", agent_id)
        return _read_agent(row)

    async def list(self, context: RequestContext, limit: int, before: str | None) -> list[Agent]:
        """Return a page of agents, newest first."""
        rows = await self._core.store.list_page(
            "agents", context.account_id, limit=limit, before=before, deleted=False
        )
        return [_read_agent(row) for row in rows]

    async def find(self, context: RequestContext, name: str, version: str | None) -> Agent:
        """Find the agent of a name, in the given or its newest version.

        Args:
            context: who asks.
            name: its name, or `name@version`.
            version: the version, where it is not in the name.

        Raises:
            RequestError: `NOT_FOUND`; `INVALID_REQUEST` when name and version disagree.
        """
        bare, _, named = name.partition("@")
        if named and version is not None and named != version:
            raise RequestError(
                ErrorCode.INVALID_REQUEST, "The name and the version disagree; give it once."
            )
        wanted = named or version
        if wanted is not None:
            rows = await self._core.store.find_rows(
                "agents", named=_make_name_key(context.account_id, bare, wanted)
            )
        else:
            living = await self._core.store.find_rows(
                "agents", account_id=context.account_id, deleted=False
            )
            rows = [row for row in living if _read_agent(row).name == bare]
        if not rows:
            raise build_not_found("agent", name if wanted is None else f"{bare}@{wanted}")
        return _read_agent(rows[-1])

    async def delete(self, context: RequestContext, agent_id: str) -> Agent:
        """Delete an agent; its runs stay, and its name and version are free again."""
        agent = await self.get(context, agent_id)
        agent.deleted = True
        values = {"deleted": True, "named": agent.id, "doc": agent.model_dump_json()}
        await self._core.store.write([UpdateRow("agents", agent.id, values)])
        return agent


def _make_name_key(account_id: str, name: str, version: str) -> str:
    return f"{account_id}/{name}@{version}"


def _read_agent(row: Row) -> Agent:
    return Agent.model_validate_json(str(row["doc"]))
