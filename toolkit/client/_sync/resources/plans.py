# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""`client.plans`: objectives planned and not done."""

from toolkit.client._sync.handle import Handle
from toolkit.client._sync.resource import Resource
from toolkit.client._wire.messages import drop_none
from toolkit.client._work_views import PlanView
from toolkit.contract import plans
from toolkit.contract.choices import OptimizeFor, PlannerChoice

# What the service waits for a model at most: three answers.
MODEL_PLANNING_S = 180.0


class Plan(PlanView, Handle[plans.Plan]):
    """A plan."""

    noun, resource, record_type = "Plan", "plans", plans.Plan


class Plans(Resource[Plan]):
    """`client.plans`."""

    handle = Plan

    def create(
        self,
        objective: str,
        *,
        max_cost_usd: float | None = None,
        optimize_for: OptimizeFor | None = None,
        planner: PlannerChoice | None = None,
    ) -> Plan:
        """Plan an objective without doing it: `tasks.create(plan=…)` runs the plan as it is.

        Args:
            objective: what is wanted, in plain words.
            max_cost_usd: what all of it may cost, the planning included; without it, planning
                alone may cost 0.05 USD.
            optimize_for: what the router favours.
            planner: `llm`, a language model, whose tokens are paid for; `rules`, which plan by
                keywords and spend nothing; `auto` (the service's default), the model where one is
                connected outside the sandbox.
        """
        constraints = drop_none(
            max_cost_usd=max_cost_usd, optimize_for=optimize_for, planner=planner
        )
        hold_s = 0.0 if planner == "rules" else MODEL_PLANNING_S
        return self._create({"objective": objective, "constraints": constraints}, hold_s)
