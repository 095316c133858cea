"""The check-based reviewer: inspects the artifacts themselves; the manager calls it."""

from collections.abc import Sequence
from dataclasses import dataclass

from toolkit.contract.base import JsonObject
from toolkit.contract.choices import Decision
from toolkit.contract.plans import PlanNode
from toolkit.contract.tasks import Criteria, RecommendedAction, Review
from toolkit.planning.capability_graph import CapabilityGraph, find_role_field
from toolkit.planning.node_checks import Criterion, Remedy, ReviewIssue, check_node, is_field_valid
from toolkit.planning.objective import parse_objective
from toolkit.plugins import Blob, Capability

CRITERION_WEIGHTS: dict[Criterion, float] = {
    "objective_alignment": 0.4,
    "technical_success": 0.35,
    "output_completeness": 0.25,
}
PASS_SCORE = 0.6


@dataclass(frozen=True)
class Evidence:
    """One node's request and its result.

    Attributes:
        output: the job's output, if it completed.
        blob: its artifact, loaded.
        error_code: the name of the error it ended with.
        upstream_text: the text of the nodes before it, as it received it.
    """

    node: PlanNode
    capability: Capability
    status: str
    output: JsonObject | None
    blob: Blob | None
    error_code: str | None
    upstream_text: str | None


def review_results(
    objective: str,
    evidence: Sequence[Evidence],
    deliverables: Sequence[str],
    *,
    attempt: int,
    retries_left: int,
) -> Review:
    """Review the results of a task's workflow.

    Text in artifacts is compared and counted and never read as a verdict, whatever it says.

    Args:
        objective: the task's objective.
        evidence: every node, dependencies before dependents.
        deliverables: the nodes whose results were requested.
        attempt: how many reviews the task has had before this one.
        retries_left: how many times it may still be run again.
    """
    topic = _read_topic(objective, [item.capability for item in evidence])
    issues: list[ReviewIssue] = []
    for item in evidence:
        if item.node.optional and item.status == "failed" and item.node.id not in deliverables:
            continue  # the workflow went on without it, and warns of it
        issues += check_node(item, _choose_topic(item, topic), attempt)
    issues += _find_absent(evidence, deliverables)
    criteria = Criteria(**{name: _score_criterion(name, issues) for name in CRITERION_WEIGHTS})
    score = round(
        sum(getattr(criteria, name) * weight for name, weight in CRITERION_WEIGHTS.items()), 3
    )
    decision, action = _decide(score, issues, evidence, retries_left)
    return Review(
        decision=decision,
        score=score,
        criteria=criteria,
        issues=[f"{issue.node_id}: {issue.message}" for issue in issues],
        recommended_action=action,
    )


def _score_criterion(name: Criterion, issues: Sequence[ReviewIssue]) -> float:
    """Score a criterion: 1 less the issues at the worst node, as the weakest part decides."""
    lost: dict[str, float] = {}
    for issue in issues:
        if issue.criterion == name:
            lost[issue.node_id] = lost.get(issue.node_id, 0.0) + issue.weight
    return round(max(0.0, 1.0 - max(lost.values(), default=0.0)), 3)


def _decide(
    score: float, issues: Sequence[ReviewIssue], evidence: Sequence[Evidence], retries_left: int
) -> tuple[Decision, RecommendedAction | None]:
    """Decide on a review; no decision is made anywhere else.

    ===========================================  ==================================
    nothing blocks and the score is high enough  `pass`
    something that running again cannot remedy   `fail`
    no retries left                              `fail`
    otherwise                                    `retry`, from the earliest node on
    ===========================================  ==================================

    What blocks are the issues that say so, or all of them where none does and yet the score is
    below `PASS_SCORE`. Nodes that only suffer from another one are not to blame.
    """
    blocking = [issue for issue in issues if issue.is_blocking]
    if not blocking and score >= PASS_SCORE:
        return "pass", None
    to_remedy = [one for one in blocking or issues if one.remedy is not Remedy.FIX_UPSTREAM]
    is_final = any(issue.remedy is Remedy.NONE for issue in to_remedy)
    if not to_remedy or is_final or retries_left <= 0:
        return "fail", None
    blamed = {issue.node_id for issue in to_remedy}
    first = next(item for item in evidence if item.node.id in blamed)
    constraints = _merge_constraints(
        first, [one for one in to_remedy if one.node_id == first.node.id]
    )
    action = RecommendedAction(node_id=first.node.id, action="regenerate", constraints=constraints)
    return "retry", action


def _merge_constraints(item: Evidence, issues: Sequence[ReviewIssue]) -> JsonObject:
    """Merge the changes to a node's input, as far as its schema accepts them."""
    changes: JsonObject = {}
    field = find_role_field(item.capability, "objective")
    for issue in issues:
        changes.update(issue.changes)
        if issue.instruction and field is not None:
            objective = str(changes.get(field, item.node.input.get(field, "")))
            if issue.instruction not in objective:
                changes[field] = f"{objective.rstrip()} {issue.instruction}"
    return {
        name: value
        for name, value in changes.items()
        if is_field_valid(item.capability, {**item.node.input, name: value}, name)
    }


def _find_absent(evidence: Sequence[Evidence], deliverables: Sequence[str]) -> list[ReviewIssue]:
    """Find deliverables for which no node was run."""
    there = {item.node.id for item in evidence}
    return [
        ReviewIssue(name, "output_completeness", 1.0, "It was to be delivered and is not there.",
                is_blocking=True, remedy=Remedy.NONE)
        for name in deliverables
        if name not in there
    ]  # fmt: skip


def _read_topic(objective: str, capabilities: Sequence[Capability]) -> str:
    unique = list({capability.id: capability for capability in capabilities}.values())
    graph = CapabilityGraph(unique, frozenset(), {})
    return parse_objective(objective, graph.vocabulary, graph.can_fill, graph.requires).topic


def _choose_topic(item: Evidence, topic: str) -> str:
    """Choose the topic of a node's result: that of its own input, or the task's."""
    for role in ("topic", "objective"):
        field = find_role_field(item.capability, role)
        told = item.node.input.get(field) if field is not None else None
        if isinstance(told, str):
            return told if role == "topic" else _read_topic(told, [item.capability]) or topic
    return topic
