"""Scores of a review: the worst node limits a criterion, and issues of a node add up."""

import pytest

from toolkit.planning.review.evidence import Criterion, ReviewIssue
from toolkit.planning.review.reviewer import judge_issues

NAMES: tuple[Criterion, ...] = ("objective_alignment", "technical_success", "output_completeness")


def score(*issues: tuple[str, Criterion, float]) -> dict[str, float]:
    """Return the criteria of a review with issues: node, criterion and weight."""
    scored = [ReviewIssue(node, name, weight, "It is bad.") for node, name, weight in issues]
    return judge_issues(scored, [], attempt=1, retries_left=0).criteria.model_dump()


@pytest.mark.parametrize("name", NAMES)
def test_the_worst_node_limits_a_criterion(name: Criterion) -> None:
    """Given issues at several nodes, then the criterion loses what the worst node loses."""
    criteria = score(("a", name, 0.2), ("b", name, 0.3), ("c", name, 0.25))
    assert criteria == {**dict.fromkeys(NAMES, 1.0), name: 0.7}


def test_issues_of_a_node_add_up() -> None:
    """Given two issues of a node, then the criterion loses both weights, and is never negative."""
    name: Criterion = "technical_success"
    assert score(("a", name, 0.2), ("a", name, 0.3))[name] == 0.5
    assert score(("a", name, 0.8), ("a", name, 0.9))[name] == 0.0
