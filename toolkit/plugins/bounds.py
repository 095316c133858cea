"""Upper bounds on the units that an operation is billed; each vendor's file declares its own.

Budgets reserve by these bounds, so they must hold for any input of a caller and any behaviour of a
model. `Operation.units()` is the *estimate*. Each bound names its source.
"""

import json
import math
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from toolkit.plugins.operations import (
    EmbedRequest,
    ImageRequest,
    Operation,
    RerankRequest,
    SpeechRequest,
    TextRequest,
    count_searches,
)

# Tokens that a vendor itself writes around a schema in the prompt.
SCHEMA_OVERHEAD = 512
# Tokens that a vendor's template writes around each message of a conversation.
TURN_OVERHEAD = 32
# Some vendors count the stop token, and some servers check the cap only every few tokens.
OUTPUT_MARGIN = 16


class ModelLimits(Protocol):
    """The facts of a model that a bound depends on."""

    @property
    def output_limit(self) -> int | None:
        """The model's maximum output tokens; None if unknown."""

    @property
    def reasons(self) -> bool:
        """True if the model may reason without being asked."""


@dataclass(frozen=True, slots=True)
class Bound(ABC):
    """An upper bound on the billed units of a request for an operation.

    Attributes:
        source: the vendor's page that says which units are billed.
    """

    source: str

    @abstractmethod
    def units(self, operation: Any, model: ModelLimits, /) -> Mapping[str, float] | None:
        """Return the units by name, or None if they are unknown."""

    def cap_holds(self, _model: ModelLimits, /) -> bool:
        """Check whether the operation's own cap on the answer bounds the billed units.

        Most operations have no cap.
        """
        return False


@dataclass(frozen=True, slots=True)
class TokenBound(Bound):
    """A text's tokens: the input has at most as many as bytes, and the output at most the cap.

    A token stands for at least one byte of the tokenizer's input, which is the text or its NFKC
    form. The longer of the two therefore bounds the tokens of any script.

    Attributes:
        capped: True if the cap bounds all billed output, reasoning included. Otherwise the bound
            is the model's own limit.
        unless_it_reasons: True if the cap holds only for models that never reason unasked.
        reasoning: function of the cap that returns the maximum reasoning tokens of a model that
            reasons unasked; None if its requests do not limit them.
        overhead: tokens that the vendor's template may add to the input.
        picture: the most tokens that a picture is billed, at any size; None if the vendor's models
            take no pictures.

    >>> from toolkit.plugins import Model
    >>> bound, model = TokenBound("its reference", overhead=10), Model("m", "text")
    >>> bound.units(TextRequest(prompt="tide", max_tokens=100), model)["output_tokens"]
    116.0
    """

    capped: bool = True
    unless_it_reasons: bool = False
    reasoning: Callable[[int], int] | None = None
    overhead: int = 256
    picture: int | None = None

    def units(self, operation: TextRequest, model: ModelLimits, /) -> Mapping[str, float] | None:
        """Return the input and output tokens, or None if either is unbounded."""
        input_tokens = _count_input_bytes(operation) + self.overhead
        if pictures := operation.count_pictures():
            if self.picture is None:
                return None
            input_tokens += pictures * self.picture
        output_tokens = model.output_limit
        if self.cap_holds(model):
            output_tokens = operation.output_cap + OUTPUT_MARGIN
        elif model.reasons and self.reasoning is not None:
            thoughts = self.reasoning(operation.max_tokens)
            if operation.reasoning is not None:
                thoughts = operation.reasoning_tokens
            maximum = operation.max_tokens + thoughts + OUTPUT_MARGIN
            output_tokens = maximum if output_tokens is None else min(maximum, output_tokens)
        if output_tokens is None:
            return None
        return {"input_tokens": float(input_tokens), "output_tokens": float(output_tokens)}

    def cap_holds(self, model: ModelLimits, /) -> bool:
        """Check whether a lower cap lowers the billed tokens."""
        return self.capped and not (self.unless_it_reasons and model.reasons)


def _count_input_bytes(operation: TextRequest) -> float:
    size = operation.measured.get("bytes")
    if size is None:
        size = float(sum(map(count_bytes, operation.list_texts())))
        size += TURN_OVERHEAD * len(operation.turns)
        for schema in operation.list_schemas():
            # Vendors format schemas differently, so count the usual form with most white space.
            schema_text = json.dumps(schema, ensure_ascii=False, indent=2)
            size += SCHEMA_OVERHEAD + count_bytes(schema_text)
        operation.measured["bytes"] = size
    return size


@dataclass(frozen=True, slots=True)
class InputBound(Bound):
    """The tokens of texts that are only read: at most as many as bytes.

    Attributes:
        overhead: tokens that the vendor may add to each text.

    >>> bound = InputBound("its reference", overhead=2)
    >>> bound.units(EmbedRequest(texts=("tide", "mill")), None)
    {'input_tokens': 12.0}
    """

    overhead: int = 16

    def units(self, operation: EmbedRequest, _model: ModelLimits, /) -> Mapping[str, float] | None:
        """Return the input tokens."""
        tokens = sum(count_bytes(text) + self.overhead for text in operation.texts)
        return {"input_tokens": float(tokens)}


@dataclass(frozen=True, slots=True)
class RerankBound(Bound):
    """The searches and tokens of ranked documents: at most as many tokens as bytes.

    >>> bound = RerankBound("its reference")
    >>> bound.units(RerankRequest(query="tide", documents=("mill",)), None)
    {'searches': 1.0, 'input_tokens': 24.0}
    """

    def units(self, operation: RerankRequest, _model: ModelLimits, /) -> Mapping[str, float] | None:
        """Return the searches and the input tokens."""
        query = count_bytes(operation.query) + 16
        tokens = [float(query + count_bytes(document)) for document in operation.documents]
        return {"searches": float(count_searches(tokens)), "input_tokens": sum(tokens)}


@dataclass(frozen=True, slots=True)
class CharacterBound(Bound):
    """A spoken text's characters, for any way in which vendors count them.

    Counts by code points, by UTF-16 units, and with two for an ideograph are all within the bytes.

    Attributes:
        minimum: number of characters that is billed for any shorter text.
    """

    minimum: int = 100

    def units(self, operation: SpeechRequest, _model: ModelLimits, /) -> Mapping[str, float] | None:
        """Return the billed characters.

        >>> CharacterBound("its reference", minimum=1).units(SpeechRequest(text="潮"), None)
        {'characters': 3.0}
        """
        return {"characters": float(max(count_bytes(operation.text), self.minimum))}


@dataclass(frozen=True, slots=True)
class ExactBound(Bound):
    """Units that are known before the call, such as an image's megapixels or a cloned voice."""

    def units(
        self, operation: Operation[Any], _model: ModelLimits, /
    ) -> Mapping[str, float] | None:
        """Return the estimated units, which are exact.

        >>> ExactBound("its reference").units(ImageRequest(prompt="a mill"), None)["images"]
        1.0
        """
        return operation.units()


@dataclass(frozen=True, slots=True)
class PixelBound(Bound):
    """An image's megapixels, rounded up."""

    def units(self, operation: ImageRequest, _model: ModelLimits, /) -> Mapping[str, float] | None:
        """Return the image, and its megapixels rounded up.

        >>> bound = PixelBound("its reference")
        >>> bound.units(ImageRequest(prompt="a mill", width=1024, height=1024), None)
        {'images': 1.0, 'megapixels': 2.0}
        """
        units = operation.units()
        return units | {"megapixels": float(math.ceil(units["megapixels"]))}


def count_bytes(text: str) -> int:
    """Return the larger of a text's UTF-8 sizes before and after NFKC, in bytes.

    >>> count_bytes("tide"), count_bytes("\ufdfa")
    (4, 33)
    """
    if text.isascii():
        return len(text)
    compatibility_text = unicodedata.normalize("NFKC", text)
    return max(len(form.encode("utf-8", "replace")) for form in (text, compatibility_text))
