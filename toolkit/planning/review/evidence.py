"""The evidence of a review: each node's request and its result."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from toolkit.contract.base import JsonObject
from toolkit.contract.plans import PlanNode
from toolkit.media.svg_measures import SVG, read_svg_size
from toolkit.planning.capability_kinds import find_instructed_field, is_planned
from toolkit.planning.review.issues import ReviewIssue
from toolkit.plugins import Blob, Capability, Upstream
from toolkit.review_thresholds import DEFAULT_THRESHOLDS, ReviewThresholds

if TYPE_CHECKING:
    from toolkit.media.picture_measures import PictureMeasures
    from toolkit.media.sound_measures import SoundMeasures


@dataclass(frozen=True)
class Evidence:
    """One node's request and its result.

    Attributes:
        node: the node as it ran, with the changes of earlier reviews to its input.
        output: the job's output, if it completed.
        blob: its artifact, loaded.
        error_code: the name of the error that it ended with.
        upstream_text: the text of the nodes before it, as it received it.
        planned_input: its input as planned, before any review; the node's input by default.
        instructions: sentences that earlier reviews added to its input.
        remarks: a person's remarks on its earlier results.
        other_providers: providers that could do it and were not asked yet, the best choice first.
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
    planned_input: JsonObject | None = None
    instructions: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    other_providers: tuple[str, ...] = ()
    has_failed_before: bool = False
    pictures: dict[str, Blob] = field(default_factory=dict)

    @property
    def brief(self) -> str:
        """The plan's instruction to write or paint by; empty if the node has no such field."""
        fields = self.node.input if self.planned_input is None else self.planned_input
        name = find_instructed_field(self.capability)
        return str(fields.get(name, "")) if name is not None else ""

    @cached_property
    def sound(self) -> "SoundMeasures | None":
        """The measures of its artifact as a sound, or None if it does not play."""
        from toolkit.media.sound_measures import measure_samples

        return measure_samples(self.blob.data) if self.blob is not None else None

    @cached_property
    def picture(self) -> "PictureMeasures | None":
        """The measures of its artifact as a picture, or None if it does not open."""
        from toolkit.media.picture_measures import measure_picture

        is_picture = self.blob is not None and self.blob.media_type.startswith("image/")
        return measure_picture(self.blob.data) if self.blob is not None and is_picture else None

    @property
    def size(self) -> tuple[int, int] | None:
        """The width and height of its artifact as a picture, or None if it does not open."""
        if self.blob is not None and self.blob.media_type == SVG:
            return read_svg_size(self.blob.data)
        return (self.picture.width, self.picture.height) if self.picture is not None else None

    @cached_property
    def text(self) -> str | None:
        """The text of its artifact, or None if the artifact is of another kind."""
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
        objective: the task's objective.
        attempt: number of earlier reviews; seeds follow from it.
        results: the evidence of all nodes of the task.
    """

    item: Evidence
    objective: str
    attempt: int = 0
    thresholds: ReviewThresholds = DEFAULT_THRESHOLDS
    results: tuple[Evidence, ...] = ()

    @property
    def dependents(self) -> tuple[Evidence, ...]:
        """The evidence of the nodes that received its result."""
        return tuple(later for later in self.results if self.item.node.id in later.node.depends_on)

    @property
    def sources(self) -> tuple[Evidence, ...]:
        """The evidence of the nodes whose results it received."""
        return tuple(up for up in self.results if up.node.id in self.item.node.depends_on)


NodeCheck: TypeAlias = Callable[[Inspection], Iterable[ReviewIssue]]


def block_result(
    item: Evidence, weight: float, message: str, changes: JsonObject | None = None
) -> ReviewIssue:
    """Make the blocking issue of a result that cannot be used."""
    return ReviewIssue(
        item.node.id, "technical_success", weight, message, is_blocking=True, changes=changes or {}
    )


def vary_seed(item: Evidence, attempt: int) -> JsonObject:
    """Return another seed, so that the request comes out differently; empty without a seed."""
    field = item.capability.input_model.model_fields.get("seed")
    seed = item.node.input.get("seed")
    if field is None or (seed is None and not is_planned(field)):
        return {}
    return {"seed": attempt + 1 if seed != attempt + 1 else attempt + 2}
