"""The check-based reviewer: inspects the artifacts themselves; the manager calls it."""

from collections.abc import Sequence
from dataclasses import replace

from toolkit.contract.tasks import Criteria, Review
from toolkit.planning.capability_kinds import find_role_field
from toolkit.planning.review.decision import decide
from toolkit.planning.review.evidence import Evidence, Inspection
from toolkit.planning.review.issues import Criterion, ReviewIssue
from toolkit.review_thresholds import DEFAULT_THRESHOLDS, ReviewThresholds

CRITERION_WEIGHTS: dict[Criterion, float] = {
    "objective_alignment": 0.4,
    "technical_success": 0.35,
    "output_completeness": 0.25,
}


def review_results(
    objective: str,
    evidence: Sequence[Evidence],
    deliverables: Sequence[str],
    *,
    attempt: int,
    retries_left: int,
    thresholds: ReviewThresholds = DEFAULT_THRESHOLDS,
) -> Review:
    """Review the results of a task's workflow.

    Text in artifacts is compared and counted and never read as a verdict, whatever it says.

    Args:
        objective: the task's objective.
        evidence: every node, dependencies before dependents.
        deliverables: the nodes whose results were requested.
        attempt: how many reviews the task has had before this one.
        retries_left: how many times it may still be run again.
        thresholds: of the checks.
    """
    issues = find_issues(objective, evidence, deliverables, attempt=attempt, thresholds=thresholds)
    return judge_issues(
        issues, evidence, attempt=attempt, retries_left=retries_left, thresholds=thresholds
    )


def find_issues(
    objective: str,
    evidence: Sequence[Evidence],
    deliverables: Sequence[str],
    *,
    attempt: int,
    thresholds: ReviewThresholds = DEFAULT_THRESHOLDS,
) -> list[ReviewIssue]:
    """Find everything that is wrong with the results of a task's workflow."""
    # Slow to import, as their patterns have the words of nine languages.
    from toolkit.planning.review.node_checks import check_node
    from toolkit.planning.review.objective_checks import check_deliverables, check_text_variety
    from toolkit.planning.review.picture_checks import check_variety

    topic = _read_topic(objective)
    issues: list[ReviewIssue] = []
    results = tuple(evidence)
    for item in evidence:
        if item.node.optional and item.status == "failed" and item.node.id not in deliverables:
            continue  # the workflow went on without it, and warns of it
        look = Inspection(item, _choose_topic(item, topic), objective, attempt, thresholds, results)
        issues += check_node(look)
    same_bits = thresholds.picture.max_same_bits
    issues += check_variety(evidence, attempt=attempt, max_bits=same_bits)
    issues += [replace(issue, check="text_variety") for issue in check_text_variety(evidence)]
    absent = check_deliverables(evidence, deliverables)
    return issues + [replace(issue, check="deliverables") for issue in absent]


def judge_issues(
    issues: Sequence[ReviewIssue],
    evidence: Sequence[Evidence],
    *,
    attempt: int,
    retries_left: int,
    thresholds: ReviewThresholds = DEFAULT_THRESHOLDS,
) -> Review:
    """Score results by what is wrong with them, and decide on them."""
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


def _read_topic(objective: str) -> str:
    from toolkit.planning.reading.capability_names import CapabilityNames
    from toolkit.planning.reading.reader import read_objective

    return read_objective(objective, CapabilityNames()).topic


def _choose_topic(item: Evidence, topic: str) -> str:
    """Choose the topic of a node's result: that of its own input, or the task's."""
    given = item.node.input if item.planned_input is None else item.planned_input
    for role in ("topic", "objective"):
        field = find_role_field(item.capability, role)
        told = given.get(field) if field is not None else None
        if isinstance(told, str):
            return told if role == "topic" else _read_topic(told) or topic
    return topic
