"""The decision on the issues of a review: pass, fail, or retry, with the nodes and changes."""

from collections.abc import Sequence
from typing import NamedTuple

from toolkit.contract.choices import Decision
from toolkit.contract.tasks import RecommendedAction
from toolkit.planning.retry import REGENERATE, make_action
from toolkit.planning.review.evidence import Evidence
from toolkit.planning.review.issues import Remedy, ReviewIssue


class Verdict(NamedTuple):
    """A decision and its consequences.

    Attributes:
        actions: an action for each node that a retry runs again, dependencies before dependents.
        reasons: reasons why nodes to blame are not run again, each with the node's id.
    """

    decision: Decision
    actions: tuple[RecommendedAction, ...] = ()
    reasons: tuple[str, ...] = ()


def decide(
    score: float,
    issues: Sequence[ReviewIssue],
    evidence: Sequence[Evidence],
    *,
    attempt: int,
    retries_left: int,
    pass_score: float,
) -> Verdict:
    """Decide on a review; no other code decides.

    ===========================================  ==================================
    nothing blocks and the score is high enough  `pass`
    something that running again cannot remedy   `fail`
    no retries left                              `fail`
    nothing left to change at a node to blame    `fail`
    otherwise                                    `retry` of all nodes to blame
    ===========================================  ==================================

    If no issue is blocking and the score is below `pass_score`, all issues block. Nodes that only
    suffer from another node are not to blame.
    """
    blocking = [issue for issue in issues if issue.is_blocking]
    if not blocking and score >= pass_score:
        return Verdict("pass")
    to_remedy = [issue for issue in blocking or issues if issue.remedy is not Remedy.FIX_UPSTREAM]
    is_final = any(issue.remedy is Remedy.NONE for issue in to_remedy)
    if not to_remedy or is_final or retries_left <= 0:
        return Verdict("fail")
    blamed = {issue.node_id for issue in to_remedy}
    actions: dict[str, RecommendedAction] = {}
    reasons = []
    changed: set[str] = set()  # nodes whose result will differ: they or nodes before them change
    for item in evidence:
        if not changed.isdisjoint(item.node.depends_on):
            changed.add(item.node.id)
        if item.node.id not in blamed:
            continue
        node_issues = [issue for issue in to_remedy if issue.node_id == item.node.id]
        action = make_action(item, node_issues, attempt)
        if action is None and item.node.id in changed:
            action = RecommendedAction(node_id=item.node.id, action=REGENERATE)
        if action is None:
            reasons.append(
                f"{item.node.id}: It is not run again, because nothing is left to change."
            )
            continue
        changed.add(item.node.id)
        actions[item.node.id] = action
    if reasons or not actions:
        return Verdict("fail", reasons=tuple(reasons))
    return Verdict("retry", tuple(actions.values()))
