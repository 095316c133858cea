# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""`client.plans`: objectives planned and not done."""

from html import escape
from typing import Any, Literal

from toolkit.client._graph_view import GraphView, make_planned_nodes
from toolkit.client._members import Member
from toolkit.client._objective import HasObjective
from toolkit.client._sync.handle import Handle
from toolkit.client._sync.resource import Resource
from toolkit.client._wire.messages import drop_none
from toolkit.contract import plans, workflows
from toolkit.contract.choices import OptimizeFor, PlannerChoice
from toolkit.display.records.objective import describe_reading, render_reading
from toolkit.display.text import format_missing

# What the service waits for a model at most: three answers.
MODEL_PLANNING_S = 180.0


class Plan(GraphView, Handle[plans.Plan], HasObjective[plans.Plan]):
    """A plan."""

    noun, resource, record_type = "Plan", "plans", plans.Plan
    planned = True

    nodes = Member[list[plans.PlanNode]](
        "The nodes that it would run, each with the reason for it."
    )
    deliverables = Member[list[str]]("The nodes whose results were asked for.")
    planner = Member[Literal["rules", "llm"]](
        "What planned it: `llm` for a language model, or `rules` for the keyword planner."
    )
    executable = Member[bool]("True if it can be run as it stands.")
    estimated_cost_usd = Member[plans.CostRange](
        "The least, the expected and the most US dollars; none where a price is unknown."
    )
    reading = Member[plans.PlanReading](
        "How much of the objective was understood, and the words that were not."
    )
    planner_reason = Member[str]("Why it was planned by this planner.")
    cost_incurred_usd = Member[float](
        "The US dollars that planning it cost: a language model's tokens."
    )
    llm_job_ids = Member[list[str]]("The jobs by which a language model was asked for it.")
    rationale = Member[str]("The reasons for it, in a few sentences.")

    def __repr__(self) -> str:
        told = super().__repr__().removesuffix(">")
        read = "" if self.reading.understood >= 1 else f", {describe_reading(self.reading)}"
        return f"{told}{read}{f', asks: {self.question}' if self.question else ''}>"

    def _list_rows(self) -> list[plans.PlanNode]:
        return self.record.nodes

    def _make_title(self) -> str:
        return self.record.objective

    def _list_nodes(self) -> list[workflows.Node]:
        return make_planned_nodes([node.model_dump() for node in self.record.nodes])

    def preview(self) -> str:
        """Render it as HTML: how the objective was understood, its graph, and what it lacks."""
        read = render_reading(self.objective, self.reading, self.question)
        graph = self.picture() if self.nodes else ""
        lacks = f"<p>{escape(format_missing(self.missing))}</p>" if self.missing else ""
        reason = f"<p>{escape(self.planner_reason)}</p>" if self.planner_reason else ""
        return f"{read}{reason}{lacks}{graph}"

    def _repr_mimebundle_(self, **_: object) -> Any:
        if self.executable and self.reading.understood >= 1:
            return super()._repr_mimebundle_()
        # The graph alone would look as if it could be run, and was all that is wanted.
        facts = "" if self.executable else self._render_html()
        return {"text/plain": repr(self), "text/html": f"{self.preview()}{facts}"}


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
