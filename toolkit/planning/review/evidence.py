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
from toolkit.plugins import Blob, Capability, Upstream
from toolkit.review_thresholds import DEFAULT_THRESHOLDS, ReviewThresholds

if TYPE_CHECKING:
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
        planned_input: its input as planned, before any review; that of the node where not given.
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
    pictures: dict[str, Blob] = field(default_factory=dict)

    @property
    def brief(self) -> str:
        """The instruction that the plan gave it to write or paint by; empty if it has none."""
        told = self.node.input if self.planned_input is None else self.planned_input
        name = find_role_field(self.capability, "objective")
        return str(told.get(name, "")) if name is not None else ""

    @cached_property
    def sound(self) -> "SoundMeasures | None":
        """The measures of its artifact as a sound; none where it does not play."""
        from toolkit.planning.review.sound_measures import measure_samples

        return measure_samples(self.blob.data) if self.blob is not None else None

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
    """

    item: Evidence
    topic: str
    objective: str
    attempt: int = 0
    thresholds: ReviewThresholds = DEFAULT_THRESHOLDS


NodeCheck: TypeAlias = Callable[[Inspection], Iterable[ReviewIssue]]


def is_field_valid(capability: Capability, given: JsonObject, name: str) -> bool:
    """Tell whether an input field has a value that the capability's schema accepts."""
    if name not in capability.input_model.model_fields:
        return False
    try:
        capability.input_model.model_validate(given, strict=True)
    except ValidationError as error:
        return all(not e["loc"] or e["loc"][0] != name for e in error.errors(include_url=False))
    return True
