"""The part that plans and tasks share: an objective, its missing inputs, and a given plan."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Generic, TypeAlias, TypeVar

from toolkit.client._builder import ANNOTATIONS, Workflow
from toolkit.client._members import Member
from toolkit.client._wire.messages import drop_none
from toolkit.contract.choices import Decision
from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.contract.plans import Missing, Plan
from toolkit.contract.run_options import PLACEMENT_OPTIONS
from toolkit.contract.tasks import Task

P = TypeVar("P", Plan, Task)


class HasObjective(Generic[P]):
    """A handle of work or a plan that follows an objective."""

    record: P

    objective = Member[str]("The objective, as it was given.")
    question = Member[str | None]("The question that a person has to answer, if any.")
    missing = Member[list[Missing]]("The missing capabilities, with possible providers.")
    missing_capabilities = Member[list[str]]("The capabilities that are missing.")
    missing_connections = Member[list[str]]("The providers, any of which it needs a connection to.")
    created_at = Member[datetime]("The time at which it was asked for.")


PlanSource: TypeAlias = Plan | Workflow | Mapping[str, Any]


def make_task_body(
    objective: str | None, constraints: Mapping[str, object], plan: PlanSource | None = None
) -> dict[str, object]:
    """Make the body of `POST /v1/tasks`.

    Args:
        objective: the objective. Default: the objective of the plan, or the workflow's name.
        constraints: limits of the task.
        plan: plan to run unchanged, if given: a record, its JSON, or a workflow.

    Raises:
        RequestError: `INVALID_REQUEST` if neither the caller nor the plan gives an objective.
    """
    extras: dict[str, object] = {}
    if isinstance(plan, Workflow):
        body = _make_plan_of(plan)
        constraints = {**body.pop("constraints"), **constraints}
    else:
        body = plan.model_dump(mode="json") if isinstance(plan, Plan) else dict(plan or {})
    if plan is not None:
        nodes = [drop_none(**node) for node in body.get("nodes", ())]
        extras["plan"] = {"nodes": nodes, "deliverables": body.get("deliverables", [])}
    goal = objective or body.get("objective")
    if goal is None:
        raise RequestError(ErrorCode.INVALID_REQUEST, "Give an objective, or a plan with one.")
    if isinstance(plan, Workflow):
        extras |= {name: body[name] for name in ANNOTATIONS if name in body}
    return {"objective": goal, "constraints": dict(constraints), **extras}


def _make_plan_of(workflow: Workflow) -> dict[str, Any]:
    """Make a plan from a workflow, and constraints from its options."""
    body = workflow.to_dict()
    common = dict(body.get("options", {}))
    limits = {key: common.pop(key) for key in ("max_cost_usd", "optimize_for") if key in common}
    places = {place: body[place] for place in PLACEMENT_OPTIONS if place in body}
    nodes = [{**node, "options": {**common, **node.get("options", {})}} for node in body["nodes"]]
    annotated = {name: body[name] for name in ANNOTATIONS if name in body}
    return {
        "objective": body["name"],
        "nodes": nodes,
        "constraints": {**limits, **places},
        **annotated,
    }


def make_review_body(
    decision: Decision,
    issues: Sequence[str],
    score: float | None,
    criteria: Mapping[str, float] | None,
    node_id: str | None,
    constraints: Mapping[str, object] | None,
    attempt: int | None,
) -> dict[str, object]:
    """Make the body of `POST /v1/tasks/{id}/reviews`."""
    return drop_none(
        decision=decision,
        issues=list(issues),
        score=score,
        criteria=criteria and dict(criteria),
        node_id=node_id,
        constraints=constraints and dict(constraints),
        attempt=attempt,
    )
