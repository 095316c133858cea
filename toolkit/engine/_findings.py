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
from toolkit.engine import _lexicon as lex
from toolkit.engine import checks
from toolkit.engine._chains import role_of
from toolkit.engine._tokens import words_asked
from toolkit.plugins import Blob, Capability, Upstream

Criterion: TypeAlias = Literal["objective_alignment", "technical_success", "output_completeness"]
LEAST_SHARE = 0.34
_CREATIVE = re.compile(r"\b(?:" + "|".join(map(re.escape, sorted(lex.CREATIVE))) + r")s?\b", re.I)


class Cure(Enum):
    """The effect that running a node again would have on a finding."""

    RERUN = "running it again may help"
    FOLLOWS = "it follows from what is wrong with an earlier node"
    NONE = "running it again gives the same"


@dataclass(frozen=True, slots=True)
class Finding:
    """An issue with a node's result.

    Attributes:
        weight: how much it lowers the criterion's score, of 1.
        blocks: whether it prevents the result from passing.
        changes: fields of the node's input to set before it runs again.
        instruction: a sentence to add to the node's objective before it runs again.
    """

    node_id: str
    criterion: Criterion
    weight: float
    message: str
    blocks: bool = False
    cure: Cure = Cure.RERUN
    changes: JsonObject = field(default_factory=dict)
    instruction: str = ""


class Result(Protocol):
    """The part of a reviewer's evidence that the checks read."""

    @property
    def node(self) -> PlanNode: ...
    @property
    def capability(self) -> Capability: ...
    @property
    def status(self) -> str: ...
    @property
    def output(self) -> JsonObject | None: ...
    @property
    def blob(self) -> Blob | None: ...
    @property
    def error_code(self) -> str | None: ...
    @property
    def upstream_text(self) -> str | None: ...


def inspect(item: Result, topic: str, attempt: int) -> list[Finding]:
    """Find everything that is wrong with a node's result.

    Args:
        item: the result.
        topic: what it should be about.
        attempt: how many reviews there were before; seeds follow from it.
    """
    if item.status != "completed":
        return [_unfinished(item)]
    found = [*_shape(item)]
    if item.blob is not None and item.blob.data:
        kind = item.blob.media_type
        if kind.startswith("image/"):
            found += _image(item, item.blob, attempt)
        elif kind == "audio/mpeg":
            found += _mp3(item, item.blob)
        elif (text := _text_of(item.blob)) is not None:
            found += _text(item, text, topic)
    return [_curable(item, finding) for finding in found]


def fits(capability: Capability, given: JsonObject, name: str) -> bool:
    """Tell whether an input field has a value that the capability's schema accepts."""
    if name not in capability.input_model.model_fields:
        return False
    try:
        capability.input_model.model_validate(given, strict=True)
    except ValidationError as error:
        return all(not e["loc"] or e["loc"][0] != name for e in error.errors(include_url=False))
    return True


def _unfinished(item: Result) -> Finding:
    code = item.error_code or ("CANCELLED" if item.status == "cancelled" else "INTERNAL")
    known = ErrorCode.__members__.get(code)
    cure = Cure.RERUN if known is not None and known.retryable else Cure.NONE
    if code == ErrorCode.UPSTREAM_FAILED.name:
        cure = Cure.FOLLOWS
    message = f"The node did not complete ({code})."
    criterion: Criterion = "output_completeness" if cure is Cure.FOLLOWS else "technical_success"
    return Finding(item.node.id, criterion, 1.0, message, blocks=True, cure=cure)


def _curable(item: Result, finding: Finding) -> Finding:
    """Drop the rerun remedy where a capability without a vendor would give the same again."""
    changed = any(item.node.input.get(name) != value for name, value in finding.changes.items())
    told = finding.instruction and role_of(item.capability, "objective") is not None
    if finding.cure is not Cure.RERUN or changed or told or item.capability.operation is not None:
        return finding
    return Finding(
        finding.node_id,
        finding.criterion,
        finding.weight,
        finding.message,
        blocks=finding.blocks,
        cure=Cure.NONE,
    )


def _shape(item: Result) -> Iterator[Finding]:
    """Check that the output matches its schema, and the artifact the capability's media type."""
    name, capability = item.node.id, item.capability
    if item.output is None:
        yield Finding(name, "output_completeness", 1.0, "There is no output.", blocks=True)
    else:
        try:
            capability.output_model.model_validate(item.output)
        except ValidationError as error:
            where = ".".join(map(str, error.errors(include_url=False)[0]["loc"])) or "output"
            message = f"The output does not match its schema at `{where}`."
            yield Finding(name, "technical_success", 0.8, message, blocks=True)
    if item.blob is None or not item.blob.data:
        yield Finding(name, "output_completeness", 1.0, "The artifact is empty.", blocks=True)
    elif item.blob.media_type.partition("/")[0] != capability.yields.partition("/")[0]:
        message = f"The artifact is {item.blob.media_type}, not {capability.yields}."
        yield Finding(name, "technical_success", 0.8, message, blocks=True)


def _image(item: Result, blob: Blob, attempt: int) -> Iterator[Finding]:
    name = item.node.id
    if blob.media_type == "image/svg+xml":
        size = checks.svg_size(blob.data)
        blank = False
    else:
        measured = checks.picture(blob.data)
        size = (measured.width, measured.height) if measured else None
        blank = measured is not None and measured.blank
    if size is None:
        yield Finding(name, "technical_success", 1.0, "The image does not open.", blocks=True)
        return
    wanted = _wanted_size(item)
    if wanted is not None and size != wanted:
        message = f"The image is {size[0]} × {size[1]}, not {wanted[0]} × {wanted[1]}."
        changes: JsonObject = {"width": wanted[0], "height": wanted[1]}
        yield Finding(name, "technical_success", 0.7, message, blocks=True, changes=changes)
    if blank:
        changes = _another(item, attempt)
        message = "The image is blank."
        yield Finding(name, "technical_success", 0.9, message, blocks=True, changes=changes)
    yield from _layout(item)


def _wanted_size(item: Result) -> tuple[int, int] | None:
    """Return the requested image size, or the capability's default one."""
    fields = item.capability.input_model.model_fields
    sides = [
        item.node.input.get(side, fields[side].default if side in fields else None)
        for side in ("width", "height")
    ]
    width, height = sides
    return (width, height) if isinstance(width, int) and isinstance(height, int) else None


def _another(item: Result, attempt: int) -> JsonObject:
    """Return an input change that makes the same request come out differently."""
    fields = item.capability.input_model.model_fields
    if "seed" in fields:
        seed = item.node.input.get("seed")
        return {"seed": attempt + 1 if seed != attempt + 1 else attempt + 2}
    if "template" in fields:
        choices = _choices(fields["template"].annotation)
        now = item.node.input.get("template", fields["template"].default)
        others = [choice for choice in choices if choice != now]
        if others:
            return {"template": others[attempt % len(others)]}
    return {}


def _choices(annotation: object) -> list[str]:
    found: list[str] = []
    for part in get_args(annotation):
        found += [part] if isinstance(part, str) else _choices(part)
    return found


def _layout(item: Result) -> Iterator[Finding]:
    """Check a layout's own report: its text boxes, its warnings, its missing glyphs."""
    output = item.output or {}
    if "text_boxes" not in item.capability.output_model.model_fields:
        return
    name = item.node.id
    if not output.get("text_boxes"):
        message = "The layout has no text on it."
        yield Finding(name, "output_completeness", 0.9, message, blocks=True)
    warned, lacked = output.get("warnings"), output.get("missing_glyphs")
    if isinstance(warned, list) and warned:
        message = f"The layout gave {len(warned)} warning(s)."
        yield Finding(name, "technical_success", min(0.3, 0.1 * len(warned)), message)
    if isinstance(lacked, list) and lacked:
        message = f"{len(lacked)} character(s) have no glyph here."
        yield Finding(name, "technical_success", min(0.4, 0.05 * len(lacked)), message)


def _mp3(item: Result, blob: Blob) -> Iterator[Finding]:
    name = item.node.id
    lasts = checks.mp3_ms(blob.data)
    if lasts == 0:
        yield Finding(name, "technical_success", 1.0, "The MP3 does not play.", blocks=True)
        return
    if lasts is None:
        return
    said = (item.output or {}).get("duration_ms")
    if isinstance(said, int) and lasts < said * 0.93 - 250:
        message = f"The MP3 ends after {lasts / 1000:.1f} s of {said / 1000:.1f} s."
        yield Finding(name, "technical_success", 0.9, message, blocks=True)
        return
    text = _spoken_text(item)
    if text is None:
        return
    speed = item.node.input.get("speed", 1.0)
    pace = float(speed) if isinstance(speed, int | float) and speed > 0 else 1.0
    least, most = checks.speaking_ms(text, pace)
    if lasts < least:
        message = f"The MP3 lasts {lasts / 1000:.1f} s; its text needs {least / 1000:.1f} s."
        yield Finding(name, "technical_success", 0.8, message, blocks=True)
    elif lasts > most:
        message = f"The MP3 lasts {lasts / 1000:.1f} s; its text needs {most / 1000:.1f} s at most."
        far = lasts > 2 * most
        yield Finding(name, "technical_success", 0.8 if far else 0.3, message, blocks=far)


def _spoken_text(item: Result) -> str | None:
    """Return the text to be spoken: the input's or upstream's, cut to the field's limit."""
    spoken = role_of(item.capability, "text")
    if spoken is None:
        return None
    given = item.node.input.get(spoken)
    if isinstance(given, str):
        return given
    rules = item.capability.input_model.model_fields[spoken].metadata
    limits = (getattr(rule, "max_length", None) for rule in rules)
    longest = next((limit for limit in limits if isinstance(limit, int)), None)
    return item.upstream_text[:longest] if item.upstream_text else None


def _text_of(blob: Blob) -> str | None:
    try:
        return Upstream("", "", blob).text
    except (ValueError, RecursionError):
        return ""


def _text(item: Result, text: str, topic: str) -> Iterator[Finding]:
    name = item.node.id
    if not text.strip():
        yield Finding(name, "output_completeness", 1.0, "The text is empty.", blocks=True)
        return
    yield from _cut_off(item)
    yield from _length(item, text)
    yield from _alignment(item, text, topic)


def _cut_off(item: Result) -> Iterator[Finding]:
    if (item.output or {}).get("finish_reason") != "length":
        return
    changes: JsonObject = {}
    fields = item.capability.input_model.model_fields
    if "max_tokens" in fields:
        now = item.node.input.get("max_tokens", fields["max_tokens"].default)
        doubled = now * 2 if isinstance(now, int) else 0
        if fits(item.capability, {**item.node.input, "max_tokens": doubled}, "max_tokens"):
            changes = {"max_tokens": doubled}
    yield Finding(
        item.node.id,
        "output_completeness",
        0.7,
        "The text is cut off.",
        blocks=True,
        cure=Cure.RERUN if changes else Cure.NONE,
        changes=changes,
    )


def _length(item: Result, text: str) -> Iterator[Finding]:
    asked, has = words_asked(_told(item)), checks.word_count(text)
    if not asked or has is None:
        return
    slack = max(5.0, 0.5 * asked)
    if abs(has - asked) <= slack:
        return
    far = has > 3 * asked + 10 or has < asked / 3 - 2
    yield Finding(
        item.node.id,
        "objective_alignment",
        0.6 if far else 0.2,
        f"The text has {has} words, not about {asked}.",
        blocks=far,
        instruction=f"Keep to about {asked} words.",
    )


def _alignment(item: Result, text: str, topic: str) -> Iterator[Finding]:
    share = checks.share_named(topic, text)
    if share is None or share >= LEAST_SHARE:
        return
    name, message = item.node.id, f"The text hardly speaks of `{topic}`."
    written = role_of(item.capability, "objective") is not None
    source = item.upstream_text or ""
    related = checks.shares_terms(text, source) if source else False
    if share > 0 or related or not written or _CREATIVE.search(_told(item)):
        yield Finding(name, "objective_alignment", 0.3, message)
        return
    told = f"Mention {topic} by name."
    if told in _told(item):
        told = f"Write of nothing but {topic}."
    message = f"The text does not speak of `{topic}`."
    yield Finding(name, "objective_alignment", 0.9, message, blocks=True, instruction=told)


def _told(item: Result) -> str:
    """Return the instruction that a node was given to write."""
    told = role_of(item.capability, "objective")
    return str(item.node.input.get(told, "")) if told is not None else ""
