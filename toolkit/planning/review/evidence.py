"""The evidence that a review goes by: each node's request and its result."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from pydantic import ValidationError

from toolkit.contract.base import JsonObject
from toolkit.contract.plans import PlanNode
from toolkit.planning.capability_kinds import find_role_field
from toolkit.planning.review.issues import ReviewIssue
from toolkit.planning.review.svg_measures import SVG, read_svg_size
from toolkit.plugins import Blob, Capability, Upstream
from toolkit.review_thresholds import DEFAULT_THRESHOLDS, ReviewThresholds

if TYPE_CHECKING:
    from toolkit.planning.review.picture_measures import PictureMeasures
    from toolkit.planning.review.sound_measures import SoundMeasures


@dataclass(frozen=True)
class Evidence:
    """One node's request and its result.

    Attributes:
        node: as it ran, with what earlier reviews changed of its input.
        output: the job's output, if it completed.
        blob: its artifact, loaded.
        error_code: the name of the error it ended with.
        upstream_text: the text of the nodes before it, as it received it.
        error_message: what that error says.
        planned_input: its input as planned, before any review; that of the node where not given.
        instructions: what earlier reviews added to what it was asked.
        remarks: what a person said of earlier results of it.
        other_providers: who else could do it and has not been asked yet, the first choice first.
        has_failed_before: whether an earlier attempt at it ended with the very same error.
        pictures: the bytes of pictures that its input names, by the field.
    """

    node: PlanNode
    capability: Capability
    status: str
    output: JsonObject | None
    blob: Blob | None
    error_code: str | None
    upstream_text: str | None
    error_message: str | None = None
    planned_input: JsonObject | None = None
    instructions: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    other_providers: tuple[str, ...] = ()
    has_failed_before: bool = False
    pictures: dict[str, Blob] = field(default_factory=dict)

    @property
    def brief(self) -> str:
        """The instruction that the plan gave it to write or paint by; empty if it has none."""
        told = self.node.input if self.planned_input is None else self.planned_input
        name = find_instructed_field(self.capability)
        return str(told.get(name, "")) if name is not None else ""

    @cached_property
    def sound(self) -> "SoundMeasures | None":
        """The measures of its artifact as a sound; none where it does not play."""
        from toolkit.planning.review.sound_measures import measure_samples

        return measure_samples(self.blob.data) if self.blob is not None else None

    @cached_property
    def picture(self) -> "PictureMeasures | None":
        """The measures of its artifact as a picture; none where it does not open."""
        from toolkit.planning.review.picture_measures import measure_picture

        is_picture = self.blob is not None and self.blob.media_type.startswith("image/")
        return measure_picture(self.blob.data) if self.blob is not None and is_picture else None

    @property
    def size(self) -> tuple[int, int] | None:
        """The width and height of its artifact as a picture; none where it does not open."""
        if self.blob is not None and self.blob.media_type == SVG:
            return read_svg_size(self.blob.data)
        return (self.picture.width, self.picture.height) if self.picture is not None else None

    @cached_property
    def text(self) -> str | None:
        """The text of its artifact; none where it is of another kind."""
        if self.blob is None:
            return None
        try:
            return Upstream("", "", self.blob).text
        except (ValueError, RecursionError):
            return ""


@dataclass(frozen=True, slots=True)
class Inspection:
    """A node's evidence as a check takes it.

    Attributes:
        topic: what the result should be about.
        objective: that of the task.
        attempt: how many reviews there were before; seeds follow from it.
        results: the evidence of all nodes of the task.
    """

    item: Evidence
    topic: str
    objective: str
    attempt: int = 0
    thresholds: ReviewThresholds = DEFAULT_THRESHOLDS
    results: tuple[Evidence, ...] = ()

    @property
    def dependents(self) -> tuple[Evidence, ...]:
        """The nodes that its result was handed to."""
        return tuple(one for one in self.results if self.item.node.id in one.node.depends_on)

    @property
    def is_only_text(self) -> bool:
        """True if no other node of the task writes a text."""
        return not any(
            one.node.id != self.item.node.id and one.capability.produces.startswith("text/")
            for one in self.results
        )


NodeCheck: TypeAlias = Callable[[Inspection], Iterable[ReviewIssue]]


def block_result(
    item: Evidence, weight: float, message: str, changes: JsonObject | None = None
) -> ReviewIssue:
    """Block a result that cannot be used as what it is: make the issue that says so."""
    return ReviewIssue(
        item.node.id, "technical_success", weight, message, is_blocking=True, changes=changes or {}
    )


def find_instructed_field(capability: Capability) -> str | None:
    """Find the field that says what to make, to which words can be added."""
    return find_role_field(capability, "objective") or find_role_field(capability, "prompt")


def is_field_valid(capability: Capability, given: JsonObject, name: str) -> bool:
    """Tell whether an input field has a value that the capability's schema accepts."""
    if name not in capability.input_model.model_fields:
        return False
    try:
        capability.input_model.model_validate(given, strict=True)
    except ValidationError as error:
        return all(not e["loc"] or e["loc"][0] != name for e in error.errors(include_url=False))
    return True
