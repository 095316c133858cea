"""The evidence of a review, each node's request and result, and the issues that checks find."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from toolkit.contract.base import JsonObject
from toolkit.contract.plans import PlanNode
from toolkit.media.svg_measures import SVG, read_svg_size
from toolkit.planning.capability_kinds import find_instructed_field, find_role_field, is_planned
from toolkit.plugins import Blob, Capability, Upstream

if TYPE_CHECKING:
    from toolkit.media.picture_measures import PictureMeasures
    from toolkit.media.sound_measures import SoundMeasures

from enum import Enum
from typing import Literal

Criterion: TypeAlias = Literal["objective_alignment", "technical_success", "output_completeness"]


class Remedy(Enum):
    """The effect that running a node again would have on an issue."""

    RERUN = "running it again may help"
    FIX_UPSTREAM = "it follows from an issue of an earlier node"
    NONE = "running it again gives the same"


@dataclass(frozen=True, slots=True)
class ReviewIssue:
    """An issue with a node's result.

    Attributes:
        weight: deduction from the criterion's score, from 0 to 1.
        is_blocking: whether it prevents the result from passing.
        changes: fields of the node's input to set before it runs again.
        instruction: a sentence to add to the node's objective before it runs again.
        check: the name of the check that found it, such as `language`.
        is_hint: whether a judge may overrule it, as programs see too little of it.
    """

    node_id: str
    criterion: Criterion
    weight: float
    message: str
    is_blocking: bool = False
    remedy: Remedy = Remedy.RERUN
    changes: JsonObject = field(default_factory=dict)
    instruction: str = ""
    check: str = ""
    is_hint: bool = False


@dataclass(frozen=True)
class Evidence:
    """One node's request and its result, as the checks of a review need them.

    Attributes:
        node: the node as it ran, with the changes of earlier reviews to its input.
        blob: the bytes of its artifact; None without one.
        error_code: the name of the error that it ended with.
        upstream_text: the text of the nodes before it, as it received it.
        planned_input: its input as planned, before any review; the node's input by default.
        instructions: sentences that earlier reviews added to its input.
        remarks: a person's remarks on its earlier results.
        other_providers: providers that could do it and were not asked yet, the best choice first.
        has_failed_before: whether an earlier attempt at it ended with the very same error.
        pictures: the bytes of pictures that its input names, by the field.
        heard_text: words that a transcriber heard in its sound; None if no transcriber was asked.
    """

    node: PlanNode
    capability: Capability
    status: str
    output: JsonObject | None
    blob: Blob | None
    error_code: str | None
    upstream_text: str | None
    planned_input: JsonObject | None = None
    instructions: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    other_providers: tuple[str, ...] = ()
    has_failed_before: bool = False
    pictures: dict[str, Blob] = field(default_factory=dict)
    artifact_id: str = ""
    heard_text: str | None = None

    @property
    def is_narration(self) -> bool:
        """True if its result is a sound that speaks a text."""
        is_sound = self.blob is not None and self.blob.media_type.startswith("audio/")
        return is_sound and find_role_field(self.capability, "text") is not None

    @property
    def brief(self) -> str:
        """The plan's instruction to write or paint by; empty if the node has no such field."""
        fields = self.node.input if self.planned_input is None else self.planned_input
        name = find_instructed_field(self.capability)
        return str(fields.get(name, "")) if name is not None else ""

    @cached_property
    def sound(self) -> "SoundMeasures | None":
        """The measures of the artifact as a sound, or None if it cannot be decoded as one."""
        from toolkit.media.sound_measures import measure_samples

        return measure_samples(self.blob.data) if self.blob is not None else None

    @cached_property
    def picture(self) -> "PictureMeasures | None":
        """The measures of the artifact as a picture, or None if it cannot be decoded as one."""
        from toolkit.media.picture_measures import measure_picture

        is_picture = self.blob is not None and self.blob.media_type.startswith("image/")
        return measure_picture(self.blob.data) if self.blob is not None and is_picture else None

    @property
    def size(self) -> tuple[int, int] | None:
        """The width and height of the artifact, or None if it cannot be decoded as a picture."""
        if self.blob is not None and self.blob.media_type == SVG:
            return read_svg_size(self.blob.data)
        return (self.picture.width, self.picture.height) if self.picture is not None else None

    @cached_property
    def text(self) -> str | None:
        """The text of the artifact; None if there is no text, or "" if it cannot be read."""
        if self.blob is None:
            return None
        try:
            return Upstream("", "", self.blob).text
        except (ValueError, RecursionError):
            return ""


@dataclass(frozen=True, slots=True)
class Inspection:
    """The argument of a check: the request and the result of one node, with those of the others.

    Attributes:
        attempt: number of earlier reviews; seeds follow from it.
    """

    item: Evidence
    objective: str
    attempt: int = 0
    results: tuple[Evidence, ...] = ()

    @property
    def dependents(self) -> tuple[Evidence, ...]:
        """The evidence of the nodes that depend on this node."""
        return tuple(later for later in self.results if self.item.node.id in later.node.depends_on)

    @property
    def sources(self) -> tuple[Evidence, ...]:
        """The evidence of the nodes that this node depends on."""
        return tuple(up for up in self.results if up.node.id in self.item.node.depends_on)


NodeCheck: TypeAlias = Callable[[Inspection], Iterable[ReviewIssue]]


def block_result(
    item: Evidence, weight: float, message: str, changes: JsonObject | None = None
) -> ReviewIssue:
    """Make a blocking issue for a result that cannot be used: no review passes with the issue."""
    return ReviewIssue(
        item.node.id, "technical_success", weight, message, is_blocking=True, changes=changes or {}
    )


def vary_seed(item: Evidence, attempt: int) -> JsonObject:
    """Return another seed as a change of the input, or {} if the node can be given no seed."""
    field = item.capability.input_model.model_fields.get("seed")
    seed = item.node.input.get("seed")
    if field is None or (seed is None and not is_planned(field)):
        return {}
    return {"seed": attempt + 1 if seed != attempt + 1 else attempt + 2}
