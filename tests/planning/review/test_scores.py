"""Scores of a review: a criterion is as good as the worst node, and issues of one node add up."""

import pytest

from toolkit.planning.review.issues import Criterion, ReviewIssue
from toolkit.planning.review.reviewer import judge_issues

NAMES: tuple[Criterion, ...] = ("objective_alignment", "technical_success", "output_completeness")


def score(*issues: tuple[str, Criterion, float]) -> dict[str, float]:
    """Return the criteria of a review with these issues, each of a node."""
    found = [ReviewIssue(node, name, weight, "It is bad.") for node, name, weight in issues]
    return judge_issues(found, [], attempt=1, retries_left=0).criteria.model_dump()


@pytest.mark.parametrize("name", NAMES)
def test_a_criterion_is_as_good_as_its_worst_node(name: Criterion) -> None:
    """Given issues at several nodes, then the criterion loses what the worst node loses."""
    criteria = score(("a", name, 0.2), ("b", name, 0.3), ("c", name, 0.25))
    assert criteria == {**dict.fromkeys(NAMES, 1.0), name: 0.7}


def test_issues_of_one_node_add_up() -> None:
    """Given two issues of one node, then the criterion loses both, and never more than all."""
    name: Criterion = "technical_success"
    assert score(("a", name, 0.2), ("a", name, 0.3))[name] == 0.5
    assert score(("a", name, 0.8), ("a", name, 0.9))[name] == 0.0
