"""Checks of the objective as a whole: what was to be delivered, and how many different ones."""

from collections.abc import Iterator, Sequence

from toolkit.planning.review.evidence import Evidence
from toolkit.planning.review.issues import Remedy, ReviewIssue


def check_deliverables(
    evidence: Sequence[Evidence], deliverables: Sequence[str]
) -> Iterator[ReviewIssue]:
    """Check that a node was run for all that was to be delivered."""
    there = {item.node.id for item in evidence}
    for name in deliverables:
        if name not in there:
            message = "It was to be delivered and is not there."
            yield ReviewIssue(
                name, "output_completeness", 1.0, message, is_blocking=True, remedy=Remedy.NONE
            )


def check_text_variety(evidence: Sequence[Evidence]) -> Iterator[ReviewIssue]:
    """Check that no two texts are the same, where several were asked for; the later is to blame."""
    first: dict[str, str] = {}
    for item in evidence:
        if not item.capability.produces.startswith("text/") or item.status != "completed":
            continue
        key = " ".join((item.text or "").casefold().split())
        if not key:
            continue
        if key in first:
            message = f"The text is the same as that of `{first[key]}`."
            yield ReviewIssue(
                item.node.id, "objective_alignment", 0.7, message, is_blocking=True,
                instruction="Write another one than before, in other words.",
            )  # fmt: skip
        first.setdefault(key, item.node.id)
