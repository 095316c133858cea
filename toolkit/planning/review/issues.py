"""The issues that checks find, each with its criterion, weight and remedy."""

from dataclasses import dataclass, field
from enum import Enum
from typing import Literal, TypeAlias

from toolkit.contract.base import JsonObject

Criterion: TypeAlias = Literal["objective_alignment", "technical_success", "output_completeness"]


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
        check: the name of the check that found it, such as `language`.
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
