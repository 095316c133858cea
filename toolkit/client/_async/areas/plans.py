"""`client.plans`: objectives planned and not done."""

from datetime import datetime

from toolkit.client import _wire
from toolkit.client._async.area import AsyncArea
from toolkit.client._async.handle import AsyncHandle
from toolkit.client._drawn import Drawn, planned_nodes
from toolkit.contract import plans, workflows


class AsyncPlan(Drawn, AsyncHandle[plans.Plan]):
    """A plan."""

    kind, area, model = "Plan", "plans", plans.Plan
    planned = True

    @property
    def objective(self) -> str:
        """The objective, as it was given."""
        return self.record.objective

    @property
    def nodes(self) -> list[plans.PlanNode]:
        """The nodes that it would run, each with the reason for it."""
        return self.record.nodes

    @property
    def deliverables(self) -> list[str]:
        """The nodes whose results were asked for."""
        return self.record.deliverables

    @property
    def executable(self) -> bool:
        """Whether it can be run as it stands."""
        return self.record.executable

    @property
    def missing(self) -> list[plans.Missing]:
        """What it lacks: each capability, and the providers that would do."""
        return self.record.missing

    @property
    def missing_capabilities(self) -> list[str]:
        """The capabilities that it lacks."""
        return self.record.missing_capabilities

    @property
    def missing_connections(self) -> list[str]:
        """The providers, any of which it needs a connection to."""
        return self.record.missing_connections

    @property
    def estimated_cost_usd(self) -> plans.CostRange:
        """The least, the expected and the most US dollars; none where a price is unknown."""
        return self.record.estimated_cost_usd

    @property
    def rationale(self) -> str:
        """Why it is as it is, in a few sentences."""
        return self.record.rationale

    @property
    def created_at(self) -> datetime:
        """The time at which it was made."""
        return self.record.created_at

    def _rows(self) -> list[plans.PlanNode]:
        return self.record.nodes

    def _title(self) -> str:
        return self.record.objective

    def _nodes(self) -> list[workflows.Node]:
        return planned_nodes([node.model_dump() for node in self.record.nodes])


class AsyncPlans(AsyncArea[AsyncPlan]):
    """`client.plans`."""

    handle = AsyncPlan

    async def create(
        self,
        objective: str,
        *,
        max_cost_usd: float | None = None,
        optimize_for: str | None = None,
    ) -> AsyncPlan:
        """Plan an objective without doing it."""
        constraints = _wire.without_none(max_cost_usd=max_cost_usd, optimize_for=optimize_for)
        return await self._posted({"objective": objective, "constraints": constraints})
