"""The most that an operation can be billed, by unit: each vendor's file declares it for its wire.

Budgets reserve by these bounds, so they have to hold for whatever a caller sends and a model does;
what is *expected* is `Operation.units()`. Each bound names the source it rests on.
"""

import json
import math
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from toolkit.plugins.operations import ImageRequest, Operation, SpeechRequest, TextRequest

# The tokens around a schema that a vendor writes into the prompt by itself.
SCHEMA_OVERHEAD = 512
# A stop token that is counted, and the last step of a server that looks after each few.
OUTPUT_MARGIN = 16


class ModelLimits(Protocol):
    """The facts of a model that a bound goes by."""

    @property
    def output_limit(self) -> int | None:
        """The most tokens that it can answer with."""

    @property
    def reasons(self) -> bool:
        """True if it may reason unasked."""


@dataclass(frozen=True, slots=True)
class Bound(ABC):
    """The most units that one request for an operation can be billed.

    Attributes:
        source: where the vendor says what is billed.
    """

    source: str

    @abstractmethod
    def units(self, operation: Any, model: ModelLimits, /) -> Mapping[str, float] | None:
        """Return the units, by name; none where they are unknown."""

    def cap_holds(self, _model: ModelLimits, /) -> bool:
        """Tell whether the operation's own cap on the answer bounds what is billed for it.

        Most operations have no cap.
        """
        return False


@dataclass(frozen=True, slots=True)
class TokenBound(Bound):
    """A text's tokens: no more of them go in than bytes, and no more come out than the cap.

    A token stands for at least one byte of what the tokenizer reads, which is the text or its
    NFKC form: so the longer of the two bounds it, however rare the script.

    Attributes:
        capped: whether that is all that is billed, reasoning included; the model's own limit
            counts otherwise.
        unless_it_reasons: whether that is so only for models that do not reason unasked.
        reasoning: the most tokens that a model which reasons unasked may reason, by the cap on the
            answer, as its requests allow it; None if they do not limit it.
        overhead: tokens that the vendor's template may put around what is sent.

    >>> from toolkit.plugins import Model
    >>> bound, model = TokenBound("its reference", overhead=10), Model("m", "text")
    >>> bound.units(TextRequest(prompt="tide", max_tokens=100), model)["output_tokens"]
    116.0
    """

    capped: bool = True
    unless_it_reasons: bool = False
    reasoning: Callable[[int], int] | None = None
    overhead: int = 256

    def units(self, operation: TextRequest, model: ModelLimits, /) -> Mapping[str, float] | None:
        """Return the tokens in and out."""
        given = _count_input_bytes(operation) + self.overhead
        made = model.output_limit
        if self.cap_holds(model):
            made = operation.max_tokens + OUTPUT_MARGIN
        elif model.reasons and self.reasoning is not None:
            most = operation.max_tokens + self.reasoning(operation.max_tokens) + OUTPUT_MARGIN
            made = most if made is None else min(most, made)
        if made is None:
            return None
        return {"input_tokens": float(given), "output_tokens": float(made)}

    def cap_holds(self, model: ModelLimits, /) -> bool:
        """Tell whether less is billed where less is allowed."""
        return self.capped and not (self.unless_it_reasons and model.reasons)


def _count_input_bytes(operation: TextRequest) -> float:
    given = operation.measured.get("bytes")
    if given is None:
        given = float(count_bytes(operation.prompt) + count_bytes(operation.system))
        if operation.schema is not None:
            # However the vendor spells it: with the most white space that is usual.
            spelled = json.dumps(operation.schema, ensure_ascii=False, indent=2)
            given += SCHEMA_OVERHEAD + count_bytes(spelled)
        operation.measured["bytes"] = given
    return given


@dataclass(frozen=True, slots=True)
class CharacterBound(Bound):
    """A spoken text's characters, however the vendor counts them.

    Counts by code points, by UTF-16 units, and with two for an ideograph are all within the bytes.

    Attributes:
        minimum: the characters that are billed for a text that is shorter.
    """

    minimum: int = 100

    def units(self, operation: SpeechRequest, _model: ModelLimits, /) -> Mapping[str, float] | None:
        """Return the characters.

        >>> CharacterBound("its reference", minimum=1).units(SpeechRequest(text="潮"), None)
        {'characters': 3.0}
        """
        return {"characters": float(max(count_bytes(operation.text), self.minimum))}


@dataclass(frozen=True, slots=True)
class ExactBound(Bound):
    """Units that are known before the call: an image's megapixels, one voice."""

    def units(
        self, operation: Operation[Any], _model: ModelLimits, /
    ) -> Mapping[str, float] | None:
        """Return the units as they are expected.

        >>> ExactBound("its reference").units(ImageRequest(prompt="a mill"), None)["images"]
        1.0
        """
        return operation.units()


@dataclass(frozen=True, slots=True)
class PixelBound(Bound):
    """An image's pixels, by the megapixel that was begun."""

    def units(self, operation: ImageRequest, _model: ModelLimits, /) -> Mapping[str, float] | None:
        """Return the image, and its megapixels rounded up.

        >>> bound = PixelBound("its reference")
        >>> bound.units(ImageRequest(prompt="a mill", width=1024, height=1024), None)
        {'images': 1.0, 'megapixels': 2.0}
        """
        units = operation.units()
        return units | {"megapixels": float(math.ceil(units["megapixels"]))}


def count_bytes(text: str) -> int:
    """Return the bytes of a text in UTF-8, before or after NFKC, whichever are more.

    >>> count_bytes("tide"), count_bytes("\ufdfa")
    (4, 33)
    """
    if text.isascii():
        return len(text)
    spelled = unicodedata.normalize("NFKC", text)
    return max(len(each.encode("utf-8", "replace")) for each in (text, spelled))
