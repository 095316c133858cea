"""The kinds of work that vendors do, independent of any vendor's terms."""

import json
from dataclasses import dataclass, field
from decimal import Decimal
from typing import ClassVar, Generic, TypeVar

from toolkit.plugins.tokens import estimate_tokens

# As a rule, a token of any script stands for fewer bytes.
BYTES_PER_TOKEN = 8
# Speaking a character takes less than a tenth of a second, which is 1.6 kB of MP3.
AUDIO_BYTES_PER_CHARACTER = 1_600
# Without any compression: red, green, blue and opacity.
IMAGE_BYTES_PER_PIXEL = 4
DEFAULT_RESULT_BYTES = 1024 * 1024
# The usual length of an answer, because few answers reach their cap.
USUAL_ANSWER_TOKENS = 256
# Tokens that most vendors add around a message.
USUAL_OVERHEAD_TOKENS = 12

R = TypeVar("R", bound="Reply")


@dataclass(frozen=True, slots=True)
class Cost:
    """The units that a call was billed, and the vendor's own figure if it gives any.

    Attributes:
        units: counts by unit, such as `{"input_tokens": 120, "output_tokens": 30}` or
            `{"images": 1, "megapixels": 1.05}`; the price table prices each unit.
        reported_usd: cost in US dollars as the vendor reports it; None if it reports none.
    """

    units: dict[str, float] = field(default_factory=dict)
    reported_usd: Decimal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The base of all replies.

    Attributes:
        model: the model that answered.
        vendor_request_id: the vendor's id of the request.
        tier: our name of the service tier that was billed; None if the vendor names no tier.
        cost: the billed units, and the price if the vendor reports it.
    """

    model: str
    vendor_request_id: str | None = None
    tier: str | None = None
    cost: Cost = field(default_factory=Cost)


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation(Generic[R]):
    """A step that asks a routed vendor for work; `kind` names it in prices and catalogues."""

    kind: ClassVar[str]
    # True if the operation may be repeated after a call with an unknown outcome, although the
    # vendor may bill both calls (decisions, "Unknown outcome").
    repeatable: ClassVar[bool] = False

    def units(self) -> dict[str, float]:
        """Return the expected billed units, for an estimate before the call."""
        raise NotImplementedError

    def least_units(self) -> dict[str, float]:
        """Return the fewest units that can be billed; by default the expected units."""
        return self.units()

    def result_bytes(self) -> int:
        """Return the bytes of disk space to hold for its result."""
        return DEFAULT_RESULT_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class TextReply(Reply):
    """Generated text; `finish` is `stop`, `length` or `filtered`."""

    text: str
    finish: str = "stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class TextRequest(Operation[TextReply]):
    """Ask an LLM for text.

    Attributes:
        prompt: the user's message.
        system: the system prompt.
        max_tokens: maximum output tokens.
        cap_may_fall: True if `max_tokens` is only a default, which may be lowered to fit a budget.
        temperature: sampling temperature; sent only if given, because some models refuse the field.
        schema: the JSON schema that the answer must match; None for free text.
        stream: True if the text may be shown while it is written. It is passed on to the vendor
            only if a client watches; the vendor then streams its answer if it can.
        measured: cache of token and byte counts by name: routing asks again for each candidate.
    """

    kind = "text"
    repeatable = True

    prompt: str
    system: str = ""
    max_tokens: int = 1024
    temperature: float | None = None
    schema: dict[str, object] | None = None
    cap_may_fall: bool = False
    stream: bool = False
    measured: dict[str, float] = field(default_factory=dict, init=False, repr=False, compare=False)

    def units(self) -> dict[str, float]:
        """Return the tokens estimated from the text's scripts, and an answer of usual length."""
        input_tokens = self.measured.get("expected")
        if input_tokens is None:
            input_tokens = (
                estimate_tokens(self.prompt) + estimate_tokens(self.system) + USUAL_OVERHEAD_TOKENS
            )
            if self.schema is not None:
                input_tokens += estimate_tokens(json.dumps(self.schema, ensure_ascii=False))
            self.measured["expected"] = input_tokens
        output_tokens = min(self.max_tokens, USUAL_ANSWER_TOKENS)
        return {"input_tokens": float(round(input_tokens)), "output_tokens": float(output_tokens)}

    def least_units(self) -> dict[str, float]:
        """Return half the expected input tokens, and a single output token."""
        return {"input_tokens": self.units()["input_tokens"] / 2, "output_tokens": 1.0}

    def result_bytes(self) -> int:
        """Return the size of the longest answer in bytes."""
        return self.max_tokens * BYTES_PER_TOKEN


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechReply(Reply):
    """Spoken text as MP3."""

    audio: bytes
    media_type: str = "audio/mpeg"
    duration_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechRequest(Operation[SpeechReply]):
    """Ask for `text` to be spoken; no `voice` means the vendor's default one."""

    kind = "speech"

    text: str
    voice: str | None = None
    speed: float = 1.0

    def units(self) -> dict[str, float]:
        """Return the characters, by which speech is billed."""
        return {"characters": float(len(self.text))}

    def result_bytes(self) -> int:
        """Return the size in bytes of the text, spoken slowly."""
        return round(len(self.text) * AUDIO_BYTES_PER_CHARACTER / min(1.0, self.speed))


@dataclass(frozen=True, slots=True, kw_only=True)
class CloneReply(Reply):
    """A cloned voice, to be named in later speech at the same vendor."""

    voice: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CloneRequest(Operation[CloneReply]):
    """Ask for a voice cloned from reference audio."""

    kind = "clone"

    name: str
    audio: bytes
    media_type: str

    def units(self) -> dict[str, float]:
        """Return one voice, by which cloning is billed."""
        return {"voices": 1.0}

    def result_bytes(self) -> int:
        """Return no bytes: the voice stays at the vendor, and its name is short."""
        return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageReply(Reply):
    """A generated image."""

    image: bytes
    media_type: str
    seed: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageRequest(Operation[ImageReply]):
    """Ask for an image of `width` × `height` pixels in `steps` denoising steps."""

    kind = "image"

    prompt: str
    negative_prompt: str = ""
    width: int = 1024
    height: int = 1024
    steps: int = 25
    seed: int | None = None

    def units(self) -> dict[str, float]:
        """Return the image and its megapixels; some vendors bill GPU seconds instead."""
        return {"images": 1.0, "megapixels": self.width * self.height / 1e6}

    def result_bytes(self) -> int:
        """Return the size of the uncompressed image in bytes."""
        return self.width * self.height * IMAGE_BYTES_PER_PIXEL
