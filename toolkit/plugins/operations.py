"""The kinds of work a vendor can be asked for, in no vendor's words."""

import json
from dataclasses import dataclass, field
from decimal import Decimal
from typing import ClassVar, Generic, TypeVar

from toolkit.plugins.tokens import estimate_tokens

# More bytes than a token of any script stands for, as a rule.
BYTES_PER_TOKEN = 8
# A character is spoken in less than a tenth of a second, of which an MP3 keeps 1.6 kB.
AUDIO_BYTES_PER_CHARACTER = 1_600
# Without any compression: red, green, blue and opacity.
IMAGE_BYTES_PER_PIXEL = 4
DEFAULT_RESULT_BYTES = 1024 * 1024
# The usual length of an answer: it is rarely as long as it may be.
USUAL_ANSWER_TOKENS = 256
# The tokens that most vendors put around a message.
USUAL_OVERHEAD_TOKENS = 12

R = TypeVar("R", bound="Reply")


@dataclass(frozen=True, slots=True)
class Cost:
    """The units that a call was billed in, and the vendor's own figure where it gives one.

    Attributes:
        units: such as `{"input_tokens": 120, "output_tokens": 30}`, `{"characters": 80}` or
            `{"images": 1, "megapixels": 1.05}`; the price table prices each.
        reported_usd: what the vendor says the call cost.
    """

    units: dict[str, float] = field(default_factory=dict)
    reported_usd: Decimal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The base of all replies.

    Attributes:
        model: the model that answered.
        vendor_request_id: the vendor's id of the request.
        tier: the service tier that the vendor says it billed, by our name; None if it names none.
        cost: the units, and the price if the vendor reports it.
    """

    model: str
    vendor_request_id: str | None = None
    tier: str | None = None
    cost: Cost = field(default_factory=Cost)


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation(Generic[R]):
    """A step that asks a routed vendor for work; `kind` names it in prices and catalogues."""

    kind: ClassVar[str]
    # Whether carrying it out twice could be billed twice without anyone noticing
    # (decisions, "Unknown outcome").
    repeatable: ClassVar[bool] = False

    def units(self) -> dict[str, float]:
        """Return the units this is expected to be billed in, for an estimate before the call."""
        raise NotImplementedError

    def least_units(self) -> dict[str, float]:
        """Return the fewest units that it can be billed in; what is expected, unless it may be
        less.
        """
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
        prompt: what the user says.
        system: instructions that stand above it.
        max_tokens: the most it may answer with.
        cap_may_fall: whether `max_tokens` is only a default, so that less may be allowed where a
            budget would not cover as much.
        temperature: only sent where given, as some models refuse any.
        schema: the JSON schema that the answer must match; none for text of any form.
        stream: whether the text may be shown as it is written; a vendor sees it only where
            somebody watches, and then streams its answer if it can.
        measured: a cache of its measures, by name: routing asks again for each candidate.
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
        """Return the tokens to expect of its scripts, and an answer of usual length."""
        given = self.measured.get("expected")
        if given is None:
            given = (
                estimate_tokens(self.prompt) + estimate_tokens(self.system) + USUAL_OVERHEAD_TOKENS
            )
            if self.schema is not None:
                given += estimate_tokens(json.dumps(self.schema, ensure_ascii=False))
            self.measured["expected"] = given
        made = min(self.max_tokens, USUAL_ANSWER_TOKENS)
        return {"input_tokens": float(round(given)), "output_tokens": float(made)}

    def least_units(self) -> dict[str, float]:
        """Return half the tokens that are expected, and a single one out."""
        return {"input_tokens": self.units()["input_tokens"] / 2, "output_tokens": 1.0}

    def result_bytes(self) -> int:
        """Return the bytes of the longest answer."""
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
        """Return the bytes of the text, spoken slowly."""
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
        """Return the image and its megapixels, by which vendors bill where not by the seconds of a
        GPU.
        """
        return {"images": 1.0, "megapixels": self.width * self.height / 1e6}

    def result_bytes(self) -> int:
        """Return the bytes of the image, uncompressed."""
        return self.width * self.height * IMAGE_BYTES_PER_PIXEL
