"""The checks of one node's result, by its kind of artifact, and of all deliverables together."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pydantic import ValidationError

from toolkit.contract.errors import ErrorCode
from toolkit.planning.capability_kinds import find_role_field
from toolkit.planning.review.card_checks import CARD_CHECKS
from toolkit.planning.review.evidence import (
    Criterion,
    Evidence,
    Inspection,
    NodeCheck,
    Remedy,
    ReviewIssue,
)
from toolkit.planning.review.expectation_checks import EXPECTATION_CHECKS
from toolkit.planning.review.picture_checks import PICTURE_CHECKS
from toolkit.planning.review.research_checks import RESEARCH_CHECKS
from toolkit.planning.review.sound_checks import SOUND_CHECKS
from toolkit.planning.review.text_case import TextCase, TextCheck
from toolkit.planning.review.text_checks import TEXT_CHECKS
from toolkit.planning.review.text_hints import TEXT_HINTS

# The medium of each kind that objectives name. A card may be a picture or a text.
_MEDIA = {"image": "image", "speech": "audio"}
_NAMES = {"image": "picture", "audio": "sound"}


def check_node(look: Inspection) -> list[ReviewIssue]:
    """Find every issue with a node's result; for a node that did not complete, only that."""
    item = look.item
    if item.status != "completed":
        return [replace(_report_incomplete(item), check="completion")]
    return [replace(_adjust_remedy(item, issue), check=name) for name, issue in _run_checks(look)]


def _run_checks(look: Inspection) -> Iterator[tuple[str, ReviewIssue]]:
    """Run the checks for a kind of artifact; yield each issue with the name of its check."""
    for check in (check_shape, *_choose_checks(look.item), *EXPECTATION_CHECKS):
        for issue in check(look):
            yield _name_check(check), issue
    blob = look.item.blob
    if blob is None or not blob.data or not blob.media_type.startswith("text/"):
        return
    case = TextCase(look.item.text or "", look)
    for text_check in TEXT_CHECKS:
        for issue in text_check(case):
            yield _name_check(text_check), issue
    for hint in TEXT_HINTS:
        for issue in hint(case):
            yield _name_check(hint), replace(issue, is_hint=True)


def _name_check(check: NodeCheck | TextCheck) -> str:
    return check.__name__.removeprefix("check_")


def _choose_checks(item: Evidence) -> tuple[NodeCheck, ...]:
    if item.blob is None or not item.blob.data:
        return ()
    kind = item.blob.media_type.partition("/")[0]
    if kind == "image":
        return (*PICTURE_CHECKS, *CARD_CHECKS)
    if kind == "audio":
        return SOUND_CHECKS
    is_research = find_role_field(item.capability, "topic") is not None
    return RESEARCH_CHECKS if is_research else ()


def _report_incomplete(item: Evidence) -> ReviewIssue:
    code = item.error_code or ("CANCELLED" if item.status == "cancelled" else "INTERNAL")
    member = ErrorCode.__members__.get(code)
    remedy = Remedy.RERUN if member is not None and member.retryable else Remedy.NONE
    if code == ErrorCode.UPSTREAM_FAILED.name:
        remedy = Remedy.FIX_UPSTREAM
    message = f"The node did not complete ({code})."
    criterion: Criterion = (
        "output_completeness" if remedy is Remedy.FIX_UPSTREAM else "technical_success"
    )
    return ReviewIssue(item.node.id, criterion, 1.0, message, is_blocking=True, remedy=remedy)


def _adjust_remedy(item: Evidence, issue: ReviewIssue) -> ReviewIssue:
    """Return an issue, with the remedy `NONE` if running its node again would give the same.

    That is so without a vendor, unless the issue changes the input or adds an instruction to it.
    """
    changed = any(item.node.input.get(name) != value for name, value in issue.changes.items())
    is_instructed = issue.instruction and find_role_field(item.capability, "objective") is not None
    if (
        issue.remedy is not Remedy.RERUN
        or changed
        or is_instructed
        or item.capability.operation is not None
    ):
        return issue
    return replace(issue, remedy=Remedy.NONE, changes={}, instruction="")


def check_shape(look: Inspection) -> Iterator[ReviewIssue]:
    """Check that the output matches its schema, and that the artifact has the right media type."""
    item = look.item
    name, capability = item.node.id, item.capability
    if item.output is None:
        yield ReviewIssue(name, "output_completeness", 1.0, "There is no output.", is_blocking=True)
    else:
        try:
            capability.output_model.model_validate(item.output)
        except ValidationError as error:
            path = ".".join(map(str, error.errors(include_url=False)[0]["loc"])) or "output"
            message = f"The output does not match its schema at `{path}`."
            yield ReviewIssue(name, "technical_success", 0.8, message, is_blocking=True)
    if item.blob is None or not item.blob.data:
        yield ReviewIssue(
            name, "output_completeness", 1.0, "The artifact is empty.", is_blocking=True
        )
    elif item.blob.media_type.partition("/")[0] != capability.produces.partition("/")[0]:
        message = f"The artifact is {item.blob.media_type}, not {capability.produces}."
        yield ReviewIssue(name, "technical_success", 0.8, message, is_blocking=True)


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
    """Check that the workflow has a node for each deliverable."""
    node_ids = {item.node.id for item in evidence}
    for name in deliverables:
        if name not in node_ids:
            yield _report_absence(name, "The deliverable is missing.")


def check_media(
    objective: str, evidence: Sequence[Evidence], deliverables: Sequence[str]
) -> Iterator[ReviewIssue]:
    """Check that a picture or sound that the objective asks for is delivered, even if not planned.

    Keywords name the media. Nothing is checked if they do not explain the whole objective, or if
    it asks for a text.
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
    """Check that no two texts are the same, apart from case and spaces; blame the later text."""
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
