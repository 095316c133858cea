"""The service of `/v1/plans`; `Planning` plans both dry runs and tasks."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from toolkit.contract.base import now
from toolkit.contract.errors import Detail, ErrorCode, RequestError
from toolkit.contract.ids import Prefix, new_id
from toolkit.contract.jobs import Options
from toolkit.contract.money import from_wire_usd
from toolkit.contract.plans import Constraints, CostRange, Plan, PlanCreate, PlanNode
from toolkit.contract.tasks import PlanGiven, TaskCreate
from toolkit.contract.workflows import NodeCreate, WorkflowCreate
from toolkit.engine.context import EngineContext
from toolkit.engine.execution.admission import check_place
from toolkit.engine.execution.workflow_graph import merge_node_options
from toolkit.engine.money.affordability import BudgetLeft
from toolkit.engine.orchestration.planning_steps import PlanningSteps
from toolkit.engine.orchestration.reviewing.task_attempts import find_sinks
from toolkit.engine.routing.estimates import (
    Estimate,
    estimate_node,
    explain_unaffordable,
    sum_estimates,
)
from toolkit.engine.services.record_reader import RecordReader
from toolkit.planning.capability_kinds import CapabilityIndex
from toolkit.planning.graph_faults import find_fillable_fields
from toolkit.planning.plan_draft import PlanDraft, PlannerView
from toolkit.planning.plan_validator import PlanRules
from toolkit.plugins import Capability
from toolkit.store import AccountScope

MAX_NODE_RETRIES = 2
Planner = Literal["rules", "llm"]
RoomMode = Literal["left", "any"]  # whether a call must fit the budget, or must only have a bound


class Plans(RecordReader[Plan]):
    """The stored plans of `/v1/plans`, and planning by keywords, which tasks use too."""

    def __init__(self, core: EngineContext, steps: PlanningSteps) -> None:
        super().__init__(core, core.records.plans)
        self._steps = steps

    async def check(self, account_id: str, request: PlanCreate) -> None:
        """Refuse constraints, and options of a given plan's nodes, that name unknown resources.

        Raises:
            RequestError: `NOT_FOUND`, `CAPABILITY_UNAVAILABLE`, `INVALID_REQUEST` for an objective
                of white space.
        """
        if not request.objective.strip():
            raise RequestError(ErrorCode.INVALID_REQUEST, "The objective is empty.")
        self._find_capabilities(request.constraints)
        places: list[Constraints | Options] = [request.constraints]
        if isinstance(request, TaskCreate) and request.plan is not None:
            places += [node.options for node in request.plan.nodes]
        for place in places:
            await check_place(
                self._core, AccountScope(account_id), place.endpoint_id, place.compute_id
            )

    async def make(self, account_id: str, request: PlanCreate) -> Plan:
        """Plan an objective by keywords, or adopt the plan that a task provides; spend nothing.

        Raises:
            RequestError: `INVALID_WORKFLOW` with every fault of a plan that the caller provides.
        """
        view = await self.find_view(account_id, request.constraints)
        if isinstance(request, TaskCreate) and request.plan is not None:
            draft = await self._adopt(account_id, request.plan, request.constraints, view)
        else:
            draft = await self._steps.plan_objective(account_id, request, view)
        plan, _ = await self.complete(account_id, request, draft)
        return plan

    async def find_view(self, account_id: str, constraints: Constraints) -> PlannerView:
        """Find the capabilities and providers that an account may plan with."""
        registry = self._core.registry
        capabilities = self._find_capabilities(constraints)
        return PlannerView(
            capabilities=capabilities,
            connected=frozenset(
                await self._core.directory.list_connections(AccountScope(account_id))
            ),
            providers={
                c.id: frozenset(v.id for v in registry.find_vendors(c))
                if c.needs_connection
                else frozenset()
                for c in capabilities
            },
        )

    async def complete(
        self, account_id: str, request: PlanCreate, draft: PlanDraft, planner: Planner = "rules"
    ) -> tuple[Plan, str | None]:
        """Make the plan of a draft, with an id and a price.

        Returns:
            the plan, and the reason why its budget excludes it, or None.
        """
        cost, refusal = await self._estimate_cost(account_id, request, draft)
        plan = Plan(
            id=new_id(Prefix.PLAN),
            objective=request.objective,
            nodes=draft.nodes,
            deliverables=list(draft.deliverables),
            missing_capabilities=list(draft.missing_capabilities),
            missing_connections=list(draft.missing_connections),
            missing=list(draft.missing),
            reading=draft.reading,
            question=draft.question,
            estimated_cost_usd=cost,
            planner=planner,
            rationale=" ".join([draft.rationale, *([refusal] if refusal else [])]),
            created_at=now(),
        )
        return plan, refusal

    async def _adopt(
        self, account_id: str, plan: PlanGiven, constraints: Constraints, view: PlannerView
    ) -> PlanDraft:
        """Make a draft of a plan that the caller provides, and find its missing connections.

        Raises:
            RequestError: `INVALID_WORKFLOW`, with every fault.
        """
        by_name = self._core.registry.by_name
        nodes = [PlanNode(**dict(node)) for node in plan.nodes]
        for node in nodes:
            node.options = None if node.options == Options() else node.options
        deliverables = plan.deliverables or find_sinks(nodes)
        allowed = None
        if constraints.capabilities is not None:
            allowed = frozenset(capability.id for capability in view.capabilities)
        rules = PlanRules(by_name, allowed)
        faults = await self._steps.find_faults(account_id, nodes, deliverables, rules)
        if faults:
            raise RequestError(
                ErrorCode.INVALID_WORKFLOW,
                "The plan is invalid.",
                details=[Detail(f"plan.{fault.path}", fault.message) for fault in faults],
            )
        graph = CapabilityIndex(view.capabilities, view.connected, view.providers)
        return PlanDraft(
            nodes=nodes,
            missing=tuple(graph.find_missing(by_name[node.capability] for node in nodes)),
            rationale="The caller provided the plan.",
            deliverables=tuple(deliverables),
        )

    def _find_capabilities(self, constraints: Constraints) -> Sequence[Capability]:
        """Return the capabilities that may be planned with, in registry order.

        Raises:
            RequestError: `NOT_FOUND`, `CAPABILITY_UNAVAILABLE`.
        """
        registry = self._core.registry
        if constraints.capabilities is None:
            return registry.list_newest()
        by_id = {c.id: c for c in map(registry.require, constraints.capabilities)}
        return [by_id[c.id] for c in registry.list_newest() if c.id in by_id]

    async def _estimate_cost(
        self, account_id: str, request: PlanCreate, draft: PlanDraft
    ) -> tuple[CostRange, str | None]:
        """Estimate the cost of a plan; also return why its budget excludes it, or None."""
        if not draft.nodes or draft.missing_capabilities:
            return CostRange(), None
        # Regardless of the budget: a budget that is too small must be raised to this amount.
        estimates = await self._estimate_nodes(account_id, request, draft.nodes, "any")
        cost = sum_estimates(estimates.values())
        limit = request.constraints.max_cost_usd
        if limit is None or draft.missing:
            return cost, None
        estimates = await self._estimate_nodes(account_id, request, draft.nodes, "left")
        refusal = explain_unaffordable(estimates, from_wire_usd(limit))
        if refusal is None:  # the budget caps the cost of any call
            cost.expected = None if cost.expected is None else min(cost.expected, limit)
            cost.high = None if cost.high is None else min(cost.high, limit)
        return cost, refusal

    async def _estimate_nodes(
        self, account_id: str, request: PlanCreate, nodes: Sequence[PlanNode], room: RoomMode
    ) -> dict[str, Estimate]:
        """Estimate the cost of each node, as for the workflow that the plan becomes."""
        registry = self._core.registry
        by_id = {node.id: registry.require(node.capability) for node in nodes}
        options = merge_node_options(
            make_workflow_request(request.objective, request.constraints, nodes)
        )
        budget_left = BudgetLeft().restrict(from_wire_usd(request.constraints.max_cost_usd))
        if room == "any":
            budget_left = replace(budget_left, available=None)
        return {
            node.id: estimate_node(
                by_id[node.id],
                node.input,
                find_fillable_fields(by_id[node.id], [by_id[up] for up in node.depends_on]),
                options[node.id],
                await self._core.directory.find_providers(
                    AccountScope(account_id), by_id[node.id], options[node.id]
                ),
                budget_left,
            )
            for node in nodes
        }


def make_workflow_request(
    objective: str, constraints: Constraints, nodes: Sequence[PlanNode]
) -> WorkflowCreate:
    """Make the request for the workflow that a plan becomes."""
    return WorkflowCreate(
        name=objective.strip()[:200],
        endpoint_id=constraints.endpoint_id,
        compute_id=constraints.compute_id,
        max_retries=MAX_NODE_RETRIES,
        options=Options(optimize_for=constraints.optimize_for),
        nodes=[
            NodeCreate(
                id=node.id,
                capability=node.capability,
                input=node.input,
                depends_on=node.depends_on,
                options=node.options or Options(),
                optional=node.optional,
            )
            for node in nodes
        ],
    )
