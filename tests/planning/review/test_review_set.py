"""The written set of artifacts: the checks block spoiled artifacts, and pass good artifacts."""

import pytest

from benchmarks import review

# At most how many spoiled artifacts pass, and how many good artifacts fail.
MAX_WRONG = {"work": (2, 0), "report": (2, 0)}


@pytest.mark.parametrize("split", MAX_WRONG)
def test_hard_checks_judge_the_written_set(split: str) -> None:
    """Given pairs of good and spoiled artifacts, then hard checks tell them apart."""
    outcomes = review.review_lines(review.read_lines(split))
    judged = [o for o in outcomes if o.is_hard or not o.damage]
    assert {o.kind for o in judged} == set(review.KINDS)
    wrong = [o for o in judged if o.is_wrong(review.HARD)]
    max_passed, max_failed = MAX_WRONG[split]
    assert sum(bool(o.damage) for o in wrong) <= max_passed
    assert sum(not o.damage for o in wrong) <= max_failed
