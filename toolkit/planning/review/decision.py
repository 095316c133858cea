"""The decision on what the checks found: pass, fail, or run which nodes again, and how."""

from collections.abc import Sequence

from toolkit.contract.base import JsonObject
from toolkit.contract.choices import Decision
from toolkit.contract.tasks import RecommendedAction
from toolkit.planning.capability_kinds import find_role_field
from toolkit.planning.review.evidence import Evidence, is_field_valid
from toolkit.planning.review.issues import Remedy, ReviewIssue


def decide(
    score: float,
    issues: Sequence[ReviewIssue],
    evidence: Sequence[Evidence],
    retries_left: int,
    pass_score: float,
) -> tuple[Decision, RecommendedAction | None]:
    """Decide on a review; no decision is made anywhere else.

    ===========================================  ==================================
    nothing blocks and the score is high enough  `pass`
    something that running again cannot remedy   `fail`
    no retries left                              `fail`
    otherwise                                    `retry`, from the earliest node on
    ===========================================  ==================================

    What blocks are the issues that say so, or all of them where none does and yet the score is
    below `pass_score`. Nodes that only suffer from another one are not to blame.
    """
    blocking = [issue for issue in issues if issue.is_blocking]
    if not blocking and score >= pass_score:
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
