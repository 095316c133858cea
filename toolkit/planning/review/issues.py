"""The issues that checks find, each with its criterion, weight and remedy."""

from dataclasses import dataclass, field
from enum import Enum
from typing import Literal, TypeAlias

from toolkit.contract.base import JsonObject

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
