"""The reviewer that checks the artifacts by programs, its score of the issues, and its decision."""

from collections.abc import Sequence
from typing import NamedTuple

from toolkit.contract.choices import Decision
from toolkit.contract.tasks import Criteria, RecommendedAction, Review
from toolkit.planning.retry import REGENERATE, make_action
from toolkit.planning.review.evidence import Criterion, Evidence, Inspection, Remedy, ReviewIssue
from toolkit.settings import ReviewSettings

PASS_SCORE = ReviewSettings().pass_score
CRITERION_WEIGHTS: dict[Criterion, float] = {
    "objective_alignment": 0.4,
    "technical_success": 0.35,
    "output_completeness": 0.25,
}


class Verdict(NamedTuple):
    """The decision of a review, with the actions of a retry and the reasons against actions.

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


def find_issues(
    objective: str,
    evidence: Sequence[Evidence],
    deliverables: Sequence[str],
    *,
    attempt: int,
) -> list[ReviewIssue]:
    """Find every issue with the results of a task's workflow.

    An optional node that failed is not checked unless it is a deliverable.
    """
    # Slow to import, as their patterns are long and measures need numpy.
    from toolkit.planning.review.node_checks import check_node, find_delivery_issues
    from toolkit.planning.review.picture_checks import check_variety

    issues: list[ReviewIssue] = []
    results = tuple(evidence)
    for item in evidence:
        if item.node.optional and item.status == "failed" and item.node.id not in deliverables:
            continue  # the workflow went on without it, and warns of it
        issues += check_node(Inspection(item, objective, attempt, results))
    issues += check_variety(evidence, attempt=attempt)
    return issues + find_delivery_issues(objective, evidence, deliverables)


def judge_issues(
    issues: Sequence[ReviewIssue],
    evidence: Sequence[Evidence],
    *,
    attempt: int,
    retries_left: int,
    pass_score: float = PASS_SCORE,
) -> Review:
    """Score results by their issues; decide whether they pass, run again or fail."""
    criteria = Criteria(**{name: _score_criterion(name, issues) for name in CRITERION_WEIGHTS})
    score = round(
        sum(getattr(criteria, name) * weight for name, weight in CRITERION_WEIGHTS.items()), 3
    )
    verdict = decide(
        score,
        issues,
        evidence,
        attempt=attempt,
        retries_left=retries_left,
        pass_score=pass_score,
    )
    return Review(
        decision=verdict.decision,
        score=score,
        criteria=criteria,
        issues=[*(f"{issue.node_id}: {issue.message}" for issue in issues), *verdict.reasons],
        recommended_action=next(iter(verdict.actions), None),
        recommended_actions=list(verdict.actions),
    )


def _score_criterion(name: Criterion, issues: Sequence[ReviewIssue]) -> float:
    """Score a criterion: 1 minus the weights of the issues at the worst node, but at least 0."""
    lost: dict[str, float] = {}
    for issue in issues:
        if issue.criterion == name:
            lost[issue.node_id] = lost.get(issue.node_id, 0.0) + issue.weight
    return round(max(0.0, 1.0 - max(lost.values(), default=0.0)), 3)
