"""Checks of all deliverables together: complete, in the requested media, without duplicates."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from toolkit.planning.review.evidence import Evidence
from toolkit.planning.review.issues import Remedy, ReviewIssue

# The medium of each kind that objectives name. A card may be a picture or a text.
_MEDIA = {"image": "image", "speech": "audio"}
_NAMES = {"image": "picture", "audio": "sound"}


def find_delivery_issues(
    objective: str, evidence: Sequence[Evidence], deliverables: Sequence[str]
) -> list[ReviewIssue]:
    """Find the issues with the deliverables of a task as a whole."""
    by_check = {
        "deliverables": check_deliverables(evidence, deliverables),
        "media": check_media(objective, evidence, deliverables),
        "text_variety": check_text_variety(evidence),
    }
    return [replace(issue, check=name) for name, issues in by_check.items() for issue in issues]


def check_deliverables(
    evidence: Sequence[Evidence], deliverables: Sequence[str]
) -> Iterator[ReviewIssue]:
    """Check that a node was run for each deliverable."""
    node_ids = {item.node.id for item in evidence}
    for name in deliverables:
        if name not in node_ids:
            yield _report_absence(name, "The deliverable is missing.")


def check_media(
    objective: str, evidence: Sequence[Evidence], deliverables: Sequence[str]
) -> Iterator[ReviewIssue]:
    """Check that the deliverables include each medium of the objective, also without a plan for it.

    Keywords find the media, if they understand the whole objective and it names no text.
    """
    from toolkit.planning.keywords.clauses import Reading

    reading = Reading(objective)
    things = {term["thing"] for term in reading.terms.terms}
    if reading.unplaced or reading.missing or reading.banned or "text" in things:
        return
    delivered = [item for item in evidence if item.node.id in deliverables]
    media = {item.capability.produces.partition("/")[0] for item in delivered}
    requested = sorted({_MEDIA[kind] for kind in things & reading.kinds if kind in _MEDIA})
    for medium in requested:
        if delivered and medium not in media:
            message = f"The objective asks for a {_NAMES[medium]}, and none is delivered."
            yield _report_absence(delivered[0].node.id, message)


def check_text_variety(evidence: Sequence[Evidence]) -> Iterator[ReviewIssue]:
    """Check that no two texts are the same; the issue names the later text."""
    first: dict[str, str] = {}
    for item in evidence:
        if not item.capability.produces.startswith("text/") or item.status != "completed":
            continue
        key = " ".join((item.text or "").casefold().split())
        if key and key in first:
            yield ReviewIssue(
                item.node.id,
                "objective_alignment",
                0.7,
                f"The text is the same as that of `{first[key]}`.",
                is_blocking=True,
                instruction="Write another text than before, in other words.",
            )
        first.setdefault(key, item.node.id)


def _report_absence(node_id: str, message: str) -> ReviewIssue:
    return ReviewIssue(
        node_id, "output_completeness", 1.0, message, is_blocking=True, remedy=Remedy.NONE
    )
