"""Checks of one node's result, each issue with its remedy; used by the reviewer."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal, Protocol, TypeAlias, get_args

from pydantic import ValidationError

from toolkit.contract.base import JsonObject
from toolkit.contract.errors import ErrorCode
from toolkit.contract.plans import PlanNode
from toolkit.media.sounds import measure_mp3_ms
from toolkit.planning import artifact_measures, lexicon
from toolkit.planning.capability_graph import find_role_field
from toolkit.planning.tokens import find_word_count
from toolkit.plugins import Blob, Capability, Upstream

Criterion: TypeAlias = Literal["objective_alignment", "technical_success", "output_completeness"]
MIN_TOPIC_SHARE = 0.34
_CREATIVE_FORM = re.compile(
    r"\b(?:" + "|".join(map(re.escape, sorted(lexicon.CREATIVE_FORMS))) + r")s?\b", re.I
)


class Remedy(Enum):
    """The effect that running a node again would have on an issue."""

    RERUN = "running it again may help"
    FIX_UPSTREAM = "it follows from what is wrong with an earlier node"
    NONE = "running it again gives the same"


@dataclass(frozen=True, slots=True)
class ReviewIssue:
    """An issue with a node's result.

    Attributes:
        weight: how much it lowers the criterion's score, of 1.
        is_blocking: whether it prevents the result from passing.
        changes: fields of the node's input to set before it runs again.
        instruction: a sentence to add to the node's objective before it runs again.
    """

    node_id: str
    criterion: Criterion
    weight: float
    message: str
    is_blocking: bool = False
    remedy: Remedy = Remedy.RERUN
    changes: JsonObject = field(default_factory=dict)
    instruction: str = ""


class NodeResult(Protocol):
    """The part of a reviewer's evidence that the checks read."""

    @property
    def node(self) -> PlanNode:
        """The node that the plan has."""
        ...

    @property
    def capability(self) -> Capability:
        """The capability that it asked for."""
        ...

    @property
    def status(self) -> str:
        """The state that its job ended in."""
        ...

    @property
    def output(self) -> JsonObject | None:
        """The job's output, if it completed."""
        ...

    @property
    def blob(self) -> Blob | None:
        """The artifact's bytes, if it has one."""
        ...

    @property
    def error_code(self) -> str | None:
        """The error that its job failed with, if it failed."""
        ...

    @property
    def upstream_text(self) -> str | None:
        """The text that it was made from, if it was made from one."""
        ...


def check_node(item: NodeResult, topic: str, attempt: int) -> list[ReviewIssue]:
    """Find everything that is wrong with a node's result.

    Args:
        item: the result.
        topic: what it should be about.
        attempt: how many reviews there were before; seeds follow from it.
    """
    if item.status != "completed":
        return [_report_incomplete(item)]
    found = [*_check_shape(item)]
    if item.blob is not None and item.blob.data:
        kind = item.blob.media_type
        if kind.startswith("image/"):
            found += _check_image(item, item.blob, attempt)
        elif kind == "audio/mpeg":
            found += _check_mp3(item, item.blob)
        elif (text := _read_text(item.blob)) is not None:
            found += _check_text(item, text, topic)
    return [_adjust_remedy(item, issue) for issue in found]


def is_field_valid(capability: Capability, given: JsonObject, name: str) -> bool:
    """Tell whether an input field has a value that the capability's schema accepts."""
    if name not in capability.input_model.model_fields:
        return False
    try:
        capability.input_model.model_validate(given, strict=True)
    except ValidationError as error:
        return all(not e["loc"] or e["loc"][0] != name for e in error.errors(include_url=False))
    return True


def _report_incomplete(item: NodeResult) -> ReviewIssue:
    code = item.error_code or ("CANCELLED" if item.status == "cancelled" else "INTERNAL")
    known = ErrorCode.__members__.get(code)
    remedy = Remedy.RERUN if known is not None and known.retryable else Remedy.NONE
    if code == ErrorCode.UPSTREAM_FAILED.name:
        remedy = Remedy.FIX_UPSTREAM
    message = f"The node did not complete ({code})."
    criterion: Criterion = (
        "output_completeness" if remedy is Remedy.FIX_UPSTREAM else "technical_success"
    )
    return ReviewIssue(item.node.id, criterion, 1.0, message, is_blocking=True, remedy=remedy)


def _adjust_remedy(item: NodeResult, issue: ReviewIssue) -> ReviewIssue:
    """Drop the rerun remedy where a capability without a vendor would give the same again."""
    changed = any(item.node.input.get(name) != value for name, value in issue.changes.items())
    is_instructed = issue.instruction and find_role_field(item.capability, "objective") is not None
    if (
        issue.remedy is not Remedy.RERUN
        or changed
        or is_instructed
        or item.capability.operation is not None
    ):
        return issue
    return ReviewIssue(
        issue.node_id,
        issue.criterion,
        issue.weight,
        issue.message,
        is_blocking=issue.is_blocking,
        remedy=Remedy.NONE,
    )


def _check_shape(item: NodeResult) -> Iterator[ReviewIssue]:
    """Check that the output matches its schema, and the artifact the capability's media type."""
    name, capability = item.node.id, item.capability
    if item.output is None:
        yield ReviewIssue(name, "output_completeness", 1.0, "There is no output.", is_blocking=True)
    else:
        try:
            capability.output_model.model_validate(item.output)
        except ValidationError as error:
            where = ".".join(map(str, error.errors(include_url=False)[0]["loc"])) or "output"
            message = f"The output does not match its schema at `{where}`."
            yield ReviewIssue(name, "technical_success", 0.8, message, is_blocking=True)
    if item.blob is None or not item.blob.data:
        yield ReviewIssue(
            name, "output_completeness", 1.0, "The artifact is empty.", is_blocking=True
        )
    elif item.blob.media_type.partition("/")[0] != capability.produces.partition("/")[0]:
        message = f"The artifact is {item.blob.media_type}, not {capability.produces}."
        yield ReviewIssue(name, "technical_success", 0.8, message, is_blocking=True)


def _check_image(item: NodeResult, blob: Blob, attempt: int) -> Iterator[ReviewIssue]:
    name = item.node.id
    if blob.media_type == "image/svg+xml":
        size = artifact_measures.read_svg_size(blob.data)
        blank = False
    else:
        measured = artifact_measures.measure_image(blob.data)
        size = (measured.width, measured.height) if measured else None
        blank = measured is not None and measured.is_blank
    if size is None:
        yield ReviewIssue(
            name, "technical_success", 1.0, "The image does not open.", is_blocking=True
        )
        return
    wanted = _find_expected_size(item)
    if wanted is not None and size != wanted:
        message = f"The image is {size[0]} × {size[1]}, not {wanted[0]} × {wanted[1]}."
        changes: JsonObject = {"width": wanted[0], "height": wanted[1]}
        yield ReviewIssue(
            name, "technical_success", 0.7, message, is_blocking=True, changes=changes
        )
    if blank:
        changes = _vary_input(item, attempt)
        message = "The image is blank."
        yield ReviewIssue(
            name, "technical_success", 0.9, message, is_blocking=True, changes=changes
        )
    yield from _check_layout(item)


def _find_expected_size(item: NodeResult) -> tuple[int, int] | None:
    """Return the requested image size, or the capability's default one."""
    fields = item.capability.input_model.model_fields
    sides = [
        item.node.input.get(side, fields[side].default if side in fields else None)
        for side in ("width", "height")
    ]
    width, height = sides
    return (width, height) if isinstance(width, int) and isinstance(height, int) else None


def _vary_input(item: NodeResult, attempt: int) -> JsonObject:
    """Return an input change that makes the same request come out differently."""
    fields = item.capability.input_model.model_fields
    if "seed" in fields:
        seed = item.node.input.get("seed")
        return {"seed": attempt + 1 if seed != attempt + 1 else attempt + 2}
    if "template" in fields:
        choices = _list_choices(fields["template"].annotation)
        now = item.node.input.get("template", fields["template"].default)
        others = [choice for choice in choices if choice != now]
        if others:
            return {"template": others[attempt % len(others)]}
    return {}


def _list_choices(annotation: object) -> list[str]:
    found: list[str] = []
    for part in get_args(annotation):
        found += [part] if isinstance(part, str) else _list_choices(part)
    return found


def _check_layout(item: NodeResult) -> Iterator[ReviewIssue]:
    """Check a layout's own report: its text boxes, its warnings, its missing glyphs."""
    output = item.output or {}
    if "text_boxes" not in item.capability.output_model.model_fields:
        return
    name = item.node.id
    if not output.get("text_boxes"):
        message = "The layout has no text on it."
        yield ReviewIssue(name, "output_completeness", 0.9, message, is_blocking=True)
    warned, lacked = output.get("warnings"), output.get("missing_glyphs")
    if isinstance(warned, list) and warned:
        message = f"The layout gave {len(warned)} warning(s)."
        yield ReviewIssue(name, "technical_success", min(0.3, 0.1 * len(warned)), message)
    if isinstance(lacked, list) and lacked:
        message = f"{len(lacked)} character(s) have no glyph here."
        yield ReviewIssue(name, "technical_success", min(0.4, 0.05 * len(lacked)), message)


def _check_mp3(item: NodeResult, blob: Blob) -> Iterator[ReviewIssue]:
    name = item.node.id
    try:
        lasts = measure_mp3_ms(blob.data)
    except ValueError:
        yield ReviewIssue(
            name, "technical_success", 1.0, "The MP3 does not play.", is_blocking=True
        )
        return
    claimed_ms = (item.output or {}).get("duration_ms")
    if isinstance(claimed_ms, int) and lasts < claimed_ms * 0.93 - 250:
        message = f"The MP3 ends after {lasts / 1000:.1f} s of {claimed_ms / 1000:.1f} s."
        yield ReviewIssue(name, "technical_success", 0.9, message, is_blocking=True)
        return
    text = _find_spoken_text(item)
    if text is None:
        return
    speed = item.node.input.get("speed", 1.0)
    pace = float(speed) if isinstance(speed, int | float) and speed > 0 else 1.0
    least, most = artifact_measures.estimate_speaking_ms(text, pace)
    if lasts < least:
        message = f"The MP3 lasts {lasts / 1000:.1f} s; its text needs {least / 1000:.1f} s."
        yield ReviewIssue(name, "technical_success", 0.8, message, is_blocking=True)
    elif lasts > most:
        message = f"The MP3 lasts {lasts / 1000:.1f} s; its text needs {most / 1000:.1f} s at most."
        far = lasts > 2 * most
        yield ReviewIssue(name, "technical_success", 0.8 if far else 0.3, message, is_blocking=far)


def _find_spoken_text(item: NodeResult) -> str | None:
    """Return the text to be spoken: the input's or upstream's, cut to the field's limit."""
    spoken = find_role_field(item.capability, "text")
    if spoken is None:
        return None
    given = item.node.input.get(spoken)
    if isinstance(given, str):
        return given
    rules = item.capability.input_model.model_fields[spoken].metadata
    limits = (getattr(rule, "max_length", None) for rule in rules)
    longest = next((limit for limit in limits if isinstance(limit, int)), None)
    return item.upstream_text[:longest] if item.upstream_text else None


def _read_text(blob: Blob) -> str | None:
    try:
        return Upstream("", "", blob).text
    except (ValueError, RecursionError):
        return ""


def _check_text(item: NodeResult, text: str, topic: str) -> Iterator[ReviewIssue]:
    name = item.node.id
    if not text.strip():
        yield ReviewIssue(name, "output_completeness", 1.0, "The text is empty.", is_blocking=True)
        return
    yield from _check_truncation(item)
    yield from _check_length(item, text)
    yield from _check_alignment(item, text, topic)


def _check_truncation(item: NodeResult) -> Iterator[ReviewIssue]:
    if (item.output or {}).get("finish_reason") != "length":
        return
    changes: JsonObject = {}
    fields = item.capability.input_model.model_fields
    if "max_tokens" in fields:
        now = item.node.input.get("max_tokens", fields["max_tokens"].default)
        doubled = now * 2 if isinstance(now, int) else 0
        if is_field_valid(
            item.capability, {**item.node.input, "max_tokens": doubled}, "max_tokens"
        ):
            changes = {"max_tokens": doubled}
    yield ReviewIssue(
        item.node.id,
        "output_completeness",
        0.7,
        "The text is cut off.",
        is_blocking=True,
        remedy=Remedy.RERUN if changes else Remedy.NONE,
        changes=changes,
    )


def _check_length(item: NodeResult, text: str) -> Iterator[ReviewIssue]:
    asked, has = find_word_count(_read_instruction(item)), artifact_measures.count_words(text)
    if not asked or has is None:
        return
    slack = max(5.0, 0.5 * asked)
    if abs(has - asked) <= slack:
        return
    far = has > 3 * asked + 10 or has < asked / 3 - 2
    yield ReviewIssue(
        item.node.id,
        "objective_alignment",
        0.6 if far else 0.2,
        f"The text has {has} words, not about {asked}.",
        is_blocking=far,
        instruction=f"Keep to about {asked} words.",
    )


def _check_alignment(item: NodeResult, text: str, topic: str) -> Iterator[ReviewIssue]:
    share = artifact_measures.measure_topic_share(topic, text)
    if share is None or share >= MIN_TOPIC_SHARE:
        return
    name, message = item.node.id, f"The text hardly speaks of `{topic}`."
    written = find_role_field(item.capability, "objective") is not None
    source = item.upstream_text or ""
    related = artifact_measures.shares_terms(text, source) if source else False
    if share > 0 or related or not written or _CREATIVE_FORM.search(_read_instruction(item)):
        yield ReviewIssue(name, "objective_alignment", 0.3, message)
        return
    instruction = f"Mention {topic} by name."
    if instruction in _read_instruction(item):
        instruction = f"Write of nothing but {topic}."
    message = f"The text does not speak of `{topic}`."
    yield ReviewIssue(
        name, "objective_alignment", 0.9, message, is_blocking=True, instruction=instruction
    )


def _read_instruction(item: NodeResult) -> str:
    """Return the instruction that a node was given to write."""
    field = find_role_field(item.capability, "objective")
    return str(item.node.input.get(field, "")) if field is not None else ""
