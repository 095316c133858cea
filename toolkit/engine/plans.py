"""Plans: what a task would do; a dry run and the task itself share `Plans.make`."""

from collections.abc import Sequence
from decimal import Decimal

from toolkit.contract.base import now, rfc3339
from toolkit.contract.errors import ErrorCode, RequestError, not_found
from toolkit.contract.ids import Prefix, new_id
from toolkit.contract.jobs import Options
from toolkit.contract.plans import Constraints, CostRange, Plan, PlanCreate, PlanNode
from toolkit.engine.admission import check_place
from toolkit.engine.core import Core
from toolkit.engine.once import accept
from toolkit.engine.planner import PlannerView, make_plan
from toolkit.engine.registry import fillable_fields, validate_input
from toolkit.engine.router import route
from toolkit.plugins import Capability, TextRequest
from toolkit.store import Insert

# What upstream will fill in is not known when a plan is priced; this many characters stand for it.
ASSUMED_CHARACTERS = 1_200


class Plans:
    """`/v1/plans`, and the planning of tasks."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def check(self, account_id: str, request: PlanCreate) -> None:
        """Refuse constraints that name what is not there.

        Raises:
            RequestError: `NOT_FOUND`, `INVALID_REQUEST` for an objective of white space.
        """
        if not request.objective.strip():
            raise RequestError(ErrorCode.INVALID_REQUEST, "The objective is empty.")
        wanted = request.constraints
        self._usable(wanted)
        await check_place(self._core, account_id, wanted.endpoint_id, wanted.compute_id)

    async def create(self, account_id: str, request: PlanCreate) -> Plan:
        """Plan an objective and keep the plan; nothing is spent."""
        await self.check(account_id, request)
        plan = await self.make(account_id, request)
        await accept(self._core, [self.inserted(account_id, plan)], plan)
        return plan

    async def get(self, account_id: str, plan_id: str) -> Plan:
        """One plan.

        Raises:
            RequestError: `NOT_FOUND`.
        """
        row = await self._core.store.get("plans", plan_id)
        if row is None or row["account_id"] != account_id:
            raise not_found("plan", plan_id)
        return Plan.model_validate_json(str(row["doc"]))

    async def list(self, account_id: str, limit: int, before: str | None) -> list[Plan]:
        """A page of plans, newest first."""
        rows = await self._core.store.page("plans", account_id, limit=limit, before=before)
        return [Plan.model_validate_json(str(row["doc"])) for row in rows]

    async def make(self, account_id: str, request: PlanCreate) -> Plan:
        """Plan an objective with what this account has connected."""
        registry = self._core.registry
        capabilities = self._usable(request.constraints)
        connections = await self._core.connections(account_id)
        view = PlannerView(
            capabilities=capabilities,
            connected=frozenset(connections),
            backends={
                c.id: frozenset(v.id for v in registry.backends(c))
                if c.needs_connection
                else frozenset()
                for c in capabilities
            },
        )
        draft = make_plan(request.objective, request.constraints, view)
        return Plan(
            id=new_id(Prefix.PLAN),
            objective=request.objective,
            nodes=draft.nodes,
            deliverables=list(draft.deliverables),
            missing_capabilities=list(draft.missing_capabilities),
            missing_connections=list(draft.missing_connections),
            missing=list(draft.missing),
            estimated_cost_usd=await self._price(account_id, request, draft.nodes),
            rationale=draft.rationale,
            created_at=now(),
        )

    def _usable(self, constraints: Constraints) -> Sequence[Capability]:
        """What may be planned with, in registry order.

        Raises:
            RequestError: `NOT_FOUND`, `CAPABILITY_UNAVAILABLE`.
        """
        registry = self._core.registry
        if constraints.capabilities is None:
            return registry.newest()
        wanted = {c.id: c for c in map(registry.require, constraints.capabilities)}
        return [wanted[c.id] for c in registry.newest() if c.id in wanted]

    async def _price(
        self, account_id: str, request: PlanCreate, nodes: Sequence[PlanNode]
    ) -> CostRange:
        """The least and the most the nodes may cost, over the backends the router would keep."""
        low, high = Decimal(0), Decimal(0)
        registry = self._core.registry
        by_id = {node.id: registry.require(node.capability) for node in nodes}
        options = Options(optimize_for=request.constraints.optimize_for)
        for node in nodes:
            capability = by_id[node.id]
            fillable = fillable_fields(capability, [by_id[up] for up in node.depends_on])
            given = dict(node.input)
            for field in fillable:
                if capability.takes[field].form == "text":
                    given.setdefault(field, "x" * ASSUMED_CHARACTERS)
            value = validate_input(capability, given, fillable, "input")
            operation = capability.estimate(value) if value is not None else None
            if operation is None:
                continue
            backends = await self._core.backends(account_id, capability)
            routing = route(capability, options, operation, backends)
            costs = [c.estimated_cost_usd for c in routing.candidates if not c.excluded]
            if not costs:
                continue
            if None in costs:
                return CostRange()
            known = [Decimal(str(cost)) for cost in costs if cost is not None]
            # A text may end long before the most tokens that it is allowed.
            share = Decimal("0.1") if isinstance(operation, TextRequest) else Decimal(1)
            low += min(known) * share
            high += max(known)
        return CostRange(low=float(low), high=float(high))

    @staticmethod
    def inserted(account_id: str, plan: Plan) -> Insert:
        """A plan as a row."""
        row: dict[str, object] = {
            "id": plan.id,
            "account_id": account_id,
            "created_at": rfc3339(plan.created_at),
            "doc": plan.model_dump_json(),
        }
        return Insert("plans", row)
