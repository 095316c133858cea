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
    TranscribeRequest,
    count_searches,
)

# Tokens that a vendor itself writes around a schema in the prompt.
SCHEMA_OVERHEAD = 512
# Tokens that a vendor's template writes around each message of a conversation.
TURN_OVERHEAD = 32
# Some vendors count the stop token, and some servers check the cap only every few tokens.
OUTPUT_MARGIN = 16


@dataclass(frozen=True, slots=True)
class PictureRule:
    """The tokens of a picture by its size, as a vendor publishes them.

    A picture is scaled down to fit the limits, and then covered with square patches.

    Attributes:
        patch: side of a patch in pixels.
        longest: maximum length of a side in pixels.
        most: maximum number of patches.
        factor: tokens of a patch.

    >>> PictureRule(patch=32, longest=2_048, most=2_500, factor=1.2).count_tokens((1_024, 1_024))
    1229
    """

    patch: int
    longest: int
    most: int
    factor: float = 1.0

    def count_tokens(self, size: tuple[int, int] | None) -> int:
        """Return the most tokens of a picture of a width and height; of any picture, if None."""
        patches = self.most
        if size is not None:
            scale = min(1.0, self.longest / max(size))
            # A scaled side may be rounded up to a whole pixel.
            sides = [math.ceil(side * scale) for side in size]
            patches = min(patches, math.prod(math.ceil(side / self.patch) for side in sides))
        return math.ceil(patches * self.factor)


class ModelLimits(Protocol):
    """The facts of a model that a bound depends on."""

    @property
    def output_limit(self) -> int | None:
        """The model's maximum output tokens; None if unknown."""

    @property
    def reasons(self) -> bool:
        """True if the model may reason without being asked."""

    @property
    def pictures(self) -> PictureRule | None:
        """The tokens of a picture by its size; None if the vendor publishes no rule."""


@dataclass(frozen=True, slots=True)
class Bound(ABC):
    """An upper bound on the billed units of a request for an operation.

    Attributes:
        source: the vendor's page that says which units are billed.
    """

    source: str

    @abstractmethod
    def units(self, operation: Any, model: ModelLimits, /) -> Mapping[str, float] | None:
        """Return the most units that a call can be billed, by unit; None if there is no maximum."""

    def cap_holds(self, _model: ModelLimits, /) -> bool:
        """Check whether the request's own limit of the answer bounds the billed units.

        False by default, because most operations have no such limit.
        """
        return False


@dataclass(frozen=True, slots=True)
class TokenBound(Bound):
    """A bound on a text's tokens: input by its bytes, output by the cap or the model's limit.

    A token stands for at least one byte of the tokenizer's input, which is the text or its NFKC
    form. The longer of the two therefore bounds the tokens of any script.

    Attributes:
        capped: True if the cap bounds all billed output, reasoning included. Otherwise the bound
            is the model's own limit.
        unless_it_reasons: True if the cap holds only for models that never reason unasked.
        reasoning: function of a request that returns the reasoning tokens that it allows, on top
            of its cap, to a model that reasons unasked; None if requests do not limit them.
        overhead: tokens that the vendor's template may add to the input.
        tool_prompt: tokens of the instructions that tools add to the input.
        picture: the most tokens that a picture is billed by a model without a `PictureRule`; None
            if that is unknown.

    >>> from toolkit.plugins import Model
    >>> bound, model = TokenBound("its reference", overhead=10), Model("m", "text")
    >>> bound.units(TextRequest(prompt="tide", max_tokens=100), model)["output_tokens"]
    116.0
    """

    capped: bool = True
    unless_it_reasons: bool = False
    reasoning: Callable[[TextRequest], int] | None = None
    overhead: int = 256
    tool_prompt: int = 0
    picture: int | None = None

    def units(self, operation: TextRequest, model: ModelLimits, /) -> Mapping[str, float] | None:
        """Return the most input and output tokens, or None if either has no known maximum."""
        input_tokens = _count_input_bytes(operation) + self.overhead
        if operation.tools:
            input_tokens += self.tool_prompt
        for picture in operation.list_pictures():
            if model.pictures is not None:
                input_tokens += model.pictures.count_tokens(picture.size)
            elif self.picture is not None:
                input_tokens += self.picture
            else:
                return None
        output_tokens = model.output_limit
        if self.cap_holds(model):
            output_tokens = operation.output_cap + OUTPUT_MARGIN
        elif model.reasons and self.reasoning is not None:
            maximum = operation.max_tokens + self.reasoning(operation) + OUTPUT_MARGIN
            output_tokens = maximum if output_tokens is None else min(maximum, output_tokens)
        if output_tokens is None:
            return None
        return {"input_tokens": float(input_tokens), "output_tokens": float(output_tokens)}

    def cap_holds(self, model: ModelLimits, /) -> bool:
        """Check whether the request's cap bounds the billed output tokens of this model."""
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
    """A bound on the tokens of texts to embed: one for each byte, and an overhead for each text.

    Attributes:
        overhead: tokens that the vendor may add to each text.

    >>> bound = InputBound("its reference", overhead=2)
    >>> bound.units(EmbedRequest(texts=("tide", "mill")), None)
    {'input_tokens': 12.0}
    """

    overhead: int = 16

    def units(self, operation: EmbedRequest, _model: ModelLimits, /) -> Mapping[str, float] | None:
        """Return the most input tokens of all texts together."""
        tokens = sum(count_bytes(text) + self.overhead for text in operation.texts)
        return {"input_tokens": float(tokens)}


@dataclass(frozen=True, slots=True)
class RerankBound(Bound):
    """A bound on the searches and tokens of ranking documents: one token for each byte.

    >>> bound = RerankBound("its reference")
    >>> bound.units(RerankRequest(query="tide", documents=("mill",)), None)
    {'searches': 1.0, 'input_tokens': 24.0}
    """

    def units(self, operation: RerankRequest, _model: ModelLimits, /) -> Mapping[str, float] | None:
        """Return the most searches and input tokens; each document counts with the query."""
        query = count_bytes(operation.query) + 16
        tokens = [float(query + count_bytes(document)) for document in operation.documents]
        return {"searches": float(count_searches(tokens)), "input_tokens": sum(tokens)}


@dataclass(frozen=True, slots=True)
class CharacterBound(Bound):
    """A bound on the characters of a text to speak, in any way that vendors count them: its bytes.

    Code points, UTF-16 units, and two characters for an ideograph are never more than the bytes.

    Attributes:
        minimum: number of characters that is billed for any shorter text.
    """

    minimum: int = 100

    def units(self, operation: SpeechRequest, _model: ModelLimits, /) -> Mapping[str, float] | None:
        """Return the most billed characters: the bytes of the text, or the minimum if greater.

        >>> CharacterBound("its reference", minimum=1).units(SpeechRequest(text="潮"), None)
        {'characters': 3.0}
        """
        return {"characters": float(max(count_bytes(operation.text), self.minimum))}


@dataclass(frozen=True, slots=True)
class DurationBound(Bound):
    """A bound on the billed seconds of an audio file: its duration rounded up, or the minimum.

    Attributes:
        minimum: seconds that are billed for any shorter file.
    """

    minimum: int = 10

    def units(
        self, operation: TranscribeRequest, _model: ModelLimits, /
    ) -> Mapping[str, float] | None:
        """Return the most seconds that can be billed: the duration rounded up, at least `minimum`.

        >>> DurationBound("its reference").units(TranscribeRequest(duration_s=12.3), None)
        {'seconds': 13.0}
        """
        return {"seconds": float(max(math.ceil(operation.duration_s), self.minimum))}


@dataclass(frozen=True, slots=True)
class ExactBound(Bound):
    """A bound equal to the estimate: for units known before the call, such as a cloned voice."""

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
    """A bound on the billed megapixels of an image: rounded up to a whole number."""

    def units(self, operation: ImageRequest, _model: ModelLimits, /) -> Mapping[str, float] | None:
        """Return the image, and its megapixels rounded up.

        >>> bound = PixelBound("its reference")
        >>> bound.units(ImageRequest(prompt="a mill", width=1024, height=1024), None)
        {'images': 1.0, 'megapixels': 2.0}
        """
        units = operation.units()
        return units | {"megapixels": float(math.ceil(units["megapixels"]))}


def count_bytes(text: str) -> int:
    """Return the larger of a text's UTF-8 sizes before and after NFKC normalization, in bytes.

    >>> count_bytes("tide"), count_bytes("\ufdfa")
    (4, 33)
    """
    if text.isascii():
        return len(text)
    compatibility_text = unicodedata.normalize("NFKC", text)
    return max(len(form.encode("utf-8", "replace")) for form in (text, compatibility_text))
