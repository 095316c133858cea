"""The check-based reviewer, which inspects the artifacts themselves; the manager calls it."""

from collections.abc import Sequence

from toolkit.contract.tasks import Criteria, Review
from toolkit.planning.review.decision import decide
from toolkit.planning.review.evidence import Evidence, Inspection
from toolkit.planning.review.issues import Criterion, ReviewIssue
from toolkit.review_thresholds import DEFAULT_THRESHOLDS, ReviewThresholds

CRITERION_WEIGHTS: dict[Criterion, float] = {
    "objective_alignment": 0.4,
    "technical_success": 0.35,
    "output_completeness": 0.25,
}


def find_issues(
    objective: str,
    evidence: Sequence[Evidence],
    deliverables: Sequence[str],
    *,
    attempt: int,
    thresholds: ReviewThresholds = DEFAULT_THRESHOLDS,
) -> list[ReviewIssue]:
    """Find every issue with the results of a task's workflow."""
    # Slow to import, as their patterns are long and measures need numpy.
    from toolkit.planning.review.deliverable_checks import find_delivery_issues
    from toolkit.planning.review.node_checks import check_node
    from toolkit.planning.review.picture_checks import check_variety

    issues: list[ReviewIssue] = []
    results = tuple(evidence)
    for item in evidence:
        if item.node.optional and item.status == "failed" and item.node.id not in deliverables:
            continue  # the workflow went on without it, and warns of it
        issues += check_node(Inspection(item, objective, attempt, thresholds, results))
    same_bits = thresholds.picture.max_same_bits
    issues += check_variety(evidence, attempt=attempt, max_bits=same_bits)
    return issues + find_delivery_issues(objective, evidence, deliverables)


def judge_issues(
    issues: Sequence[ReviewIssue],
    evidence: Sequence[Evidence],
    *,
    attempt: int,
    retries_left: int,
    thresholds: ReviewThresholds = DEFAULT_THRESHOLDS,
) -> Review:
    """Score results by their issues, and decide on them."""
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
        pass_score=thresholds.pass_score,
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
    """Score a criterion: 1 less the issues at the worst node, as the weakest part decides."""
    lost: dict[str, float] = {}
    for issue in issues:
        if issue.criterion == name:
            lost[issue.node_id] = lost.get(issue.node_id, 0.0) + issue.weight
    return round(max(0.0, 1.0 - max(lost.values(), default=0.0)), 3)
