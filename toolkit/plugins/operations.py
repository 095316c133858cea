"""The kinds of work that vendors do, independent of any vendor's terms."""

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import ClassVar, Generic, Literal, TypeVar

from pydantic import ConfigDict

from toolkit.plugins.conversation import REASONING_TOKENS, Picture, Tool, ToolCall, Turn
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
CHUNK_TOKENS, SEARCH_CHUNKS = 500, 100
AUDIO_TOKENS_PER_SECOND = 32
# The words of a fast speaker, with the times of sentences as JSON.
TRANSCRIPT_TOKENS_PER_SECOND = 8
# The longest vectors of known models.
MAX_DIMENSIONS = 4_096

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
    """The base of vendors' replies to operations.

    Attributes:
        model: the model that answered.
        vendor_request_id: the vendor's id of the request.
        tier: our name of the service tier that was billed; None if the vendor names no tier.
        upstream: the host that served the answer, if the vendor passes requests on and names it.
        cost: the billed units, and the price if the vendor reports it.
    """

    __pydantic_config__ = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")

    model: str
    vendor_request_id: str | None = None
    tier: str | None = None
    upstream: str | None = None
    cost: Cost = field(default_factory=Cost)


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation(Generic[R]):
    """The base of steps that ask a vendor for work; `kind` names the work in prices and models."""

    kind: ClassVar[str]
    # True if the operation may be repeated after a call with an unknown outcome, although the
    # vendor may bill both calls (decisions, "Unknown outcome").
    repeatable: ClassVar[bool] = False
    # True if equal requests have equal replies: a job that is resumed or tried again does not pay
    # for the replies that it has.
    kept: ClassVar[bool] = False

    def units(self) -> dict[str, float]:
        """Return the units that are expected to be billed, for an estimate before the call."""
        raise NotImplementedError

    def least_units(self) -> dict[str, float]:
        """Return the fewest units that can be billed; by default the expected units."""
        return self.units()

    @property
    def abilities(self) -> frozenset[str]:
        """The abilities that the request needs, as named in `Model.abilities`; none by default."""
        return frozenset()

    def result_bytes(self) -> int:
        """Return the disk space to reserve for the result, in bytes; 1 MiB by default."""
        return DEFAULT_RESULT_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class TextReply(Reply):
    """Generated text, or requests to call tools.

    Attributes:
        text: the words; empty if the model only asks for tools.
        finish: `stop`, `length`, `filtered` or `tool_calls`.
        tool_calls: the tools that the model asks for.
        reasoning: the vendor's summary of the model's reasoning; "" if it returns none.
        confidence: probability of the text, the product over its tokens; None if not reported.
    """

    text: str
    finish: str = "stop"
    tool_calls: tuple[ToolCall, ...] = ()
    reasoning: str = ""
    confidence: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TextRequest(Operation[TextReply]):
    """Ask an LLM for text.

    Attributes:
        prompt: the user's message, if it is the only message.
        turns: the messages of a conversation, which replace `prompt`.
        system: the system prompt.
        max_tokens: maximum tokens of the answer, without reasoning that `reasoning` asks for.
        cap_may_fall: True if `max_tokens` is only a default, which may be lowered to fit a budget.
        temperature, top_p: sampling; sent only if given, because some models refuse the fields.
        schema: the JSON schema that the answer must match; None for free text.
        tools: the functions that the model may ask for.
        tool_choice: `auto`, `none` or `required`; a named tool is required, too.
        named_tool: the only tool that it may ask for; "" for any.
        reasoning: `none`, `low`, `medium`, `high` or a number of tokens; None for the model's own
            choice.
        stop: texts that end the answer.
        seed: number for a repeatable choice of words.
        confidence: True to ask for the log-probabilities of the answer's tokens.
        may_stream: True if the text may be shown while it is written.
        stream: True if a client watches such a text: the vendor then streams its answer if it can.
        measured: cache of token and byte counts by name: routing asks again for each candidate.
    """

    kind = "text"
    repeatable = True

    prompt: str = ""
    turns: tuple[Turn, ...] = ()
    system: str = ""
    max_tokens: int = 1024
    temperature: float | None = None
    top_p: float | None = None
    schema: dict[str, object] | None = None
    tools: tuple[Tool, ...] = ()
    tool_choice: Literal["auto", "none", "required"] = "auto"
    named_tool: str = ""
    reasoning: str | int | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    confidence: bool = False
    cap_may_fall: bool = False
    may_stream: bool = False
    stream: bool = False
    measured: dict[str, float] = field(default_factory=dict, init=False, repr=False, compare=False)

    def list_turns(self, note: str = "") -> tuple[Turn, ...]:
        """Return the messages, with a note, if any, at the end of the user's last message.

        If the user wrote no message, the note becomes the last message.
        """
        turns = self.turns or (Turn("user", self.prompt),)
        if not note:
            return turns
        last = max((place for place, turn in enumerate(turns) if turn.role == "user"), default=None)
        if last is None:
            return (*turns, Turn("user", note))
        noted = replace(turns[last], text=f"{turns[last].text}\n\n{note}".strip())
        return (*turns[:last], noted, *turns[last + 1 :])

    def list_texts(self) -> list[str]:
        """Return every text that is sent, without the schemas of answer and tools."""
        texts = [self.system]
        for turn in self.list_turns():
            texts.append(turn.text)
            for call in turn.tool_calls:
                texts.append(f"{call.name} {call.spelled_arguments} {call.reasoning}".rstrip())
        return texts

    def list_schemas(self) -> list[object]:
        """Return the answer's schema, if any, and each tool as `[name, description, schema]`."""
        tools: list[object] = [
            [tool.name, tool.description, tool.parameters] for tool in self.tools
        ]
        return tools if self.schema is None else [self.schema, *tools]

    def list_pictures(self) -> list[Picture]:
        """Return the pictures in the conversation."""
        return [picture for turn in self.turns for picture in turn.pictures] if self.turns else []

    @property
    def reasoning_tokens(self) -> int:
        """The most tokens of reasoning that the request asks for; 0 if it does not ask.

        >>> [TextRequest(reasoning=asked).reasoning_tokens for asked in ("low", 2_000, None)]
        [1024, 2000, 0]
        """
        if isinstance(self.reasoning, str):
            return REASONING_TOKENS[self.reasoning]
        return self.reasoning or 0

    @property
    def output_cap(self) -> int:
        """The most tokens of reasoning and answer together, which most vendors' caps count."""
        return self.max_tokens + self.reasoning_tokens

    @property
    def abilities(self) -> frozenset[str]:
        """The abilities that a model needs for this request, by the names of `Model.abilities`."""
        needs = []
        if self.list_pictures():
            needs.append("images")
        if self.tools:
            needs.append("tools")
        if self.reasoning and self.reasoning_tokens > 0:
            needs += ["reasoning", "reasoning_with_tools"] if self.tools else ["reasoning"]
        if self.stop:
            needs.append("stop")
        if self.seed is not None:
            needs.append("seed")
        if self.top_p is not None:
            needs.append("top_p")
        if self.confidence:
            needs.append("confidence")
        return frozenset(needs)

    def units(self) -> dict[str, float]:
        """Return the input tokens, estimated by writing system, and those of a usual answer.

        Half of the tokens of reasoning that the request asks for count as part of the answer.
        """
        expected = self.measured.get("expected")
        if expected is None:
            schemas = (json.dumps(schema, ensure_ascii=False) for schema in self.list_schemas())
            tokens = sum(map(estimate_tokens, (*self.list_texts(), *schemas)))
            overhead = USUAL_OVERHEAD_TOKENS * max(1, len(self.turns))
            expected = tokens + overhead + sum(p.usual_tokens for p in self.list_pictures())
            self.measured["expected"] = expected
        answer = min(self.max_tokens, USUAL_ANSWER_TOKENS) + self.reasoning_tokens // 2
        return {"input_tokens": float(round(expected)), "output_tokens": float(answer)}

    def least_units(self) -> dict[str, float]:
        """Return half the expected input tokens, and a single output token."""
        return {"input_tokens": self.units()["input_tokens"] / 2, "output_tokens": 1.0}

    def result_bytes(self) -> int:
        """Return the size in bytes of an answer of `max_tokens`, at eight bytes a token."""
        return self.max_tokens * BYTES_PER_TOKEN


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechReply(Reply):
    """The audio of a spoken text, usually MP3."""

    audio: bytes
    media_type: str = "audio/mpeg"
    duration_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechRequest(Operation[SpeechReply]):
    """Ask for `text` to be spoken; without a `voice`, by the vendor's default voice."""

    kind = "speech"

    text: str
    voice: str | None = None
    speed: float = 1.0

    def units(self) -> dict[str, float]:
        """Return the number of characters, by which speech is billed."""
        return {"characters": float(len(self.text))}

    def result_bytes(self) -> int:
        """Return the size in bytes of the audio if the text is spoken slowly."""
        return round(len(self.text) * AUDIO_BYTES_PER_CHARACTER / min(1.0, self.speed))


@dataclass(frozen=True, slots=True, kw_only=True)
class CloneReply(Reply):
    """The name of a cloned voice, for later requests for speech at the same vendor."""

    voice: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CloneRequest(Operation[CloneReply]):
    """Ask a vendor to clone a voice from reference audio."""

    kind = "clone"

    name: str
    audio: bytes
    media_type: str

    def units(self) -> dict[str, float]:
        """Return one voice, by which cloning is billed."""
        return {"voices": 1.0}

    def result_bytes(self) -> int:
        """Return 0: the voice stays at the vendor, and its name is short."""
        return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageReply(Reply):
    """A generated image, with the seed that it was made with, if the vendor reports it."""

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
        """Return one image and its megapixels; some vendors bill GPU seconds instead."""
        return {"images": 1.0, "megapixels": self.width * self.height / 1e6}

    def result_bytes(self) -> int:
        """Return the size of the uncompressed image in bytes."""
        return self.width * self.height * IMAGE_BYTES_PER_PIXEL


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedReply(Reply):
    """The vectors of the first texts of a request: of at least one text, and not always of all.

    Attributes:
        vectors: the vectors in order, each number a 32-bit float in little-endian order.
        dimensions: length of each vector.
    """

    vectors: bytes
    dimensions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedRequest(Operation[EmbedReply]):
    """Ask for the vectors of texts; a vendor may answer only the first of them.

    Attributes:
        texts: the texts.
        purpose: `document` for texts to be found, `query` for texts to find them by.
        dimensions: length of the vectors; None for the model's own.
    """

    kind = "embedding"
    repeatable = True
    kept = True

    texts: tuple[str, ...]
    purpose: Literal["document", "query"] = "document"
    dimensions: int | None = None

    def units(self) -> dict[str, float]:
        """Return the input tokens, estimated by writing system."""
        return {"input_tokens": float(round(sum(map(estimate_tokens, self.texts)) + 1))}

    @property
    def abilities(self) -> frozenset[str]:
        """The ability `dimensions` if the request asks for a length of vectors, otherwise none."""
        return frozenset() if self.dimensions is None else frozenset(("dimensions",))

    def result_bytes(self) -> int:
        """Return the size in bytes if each vector has the greatest length of known models."""
        return len(self.texts) * MAX_DIMENSIONS * 4


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankReply(Reply):
    """The relevance of documents, from 0 to 1, in the order of the request's documents."""

    scores: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankRequest(Operation[RerankReply]):
    """Ask how well each of some documents answers a query."""

    kind = "rerank"
    repeatable = True

    query: str
    documents: tuple[str, ...]

    def units(self) -> dict[str, float]:
        """Return the searches (see `count_searches`) and the tokens: a vendor bills either."""
        query = estimate_tokens(self.query)
        tokens = [query + estimate_tokens(document) for document in self.documents]
        return {
            "searches": float(count_searches(tokens)),
            "input_tokens": float(round(sum(tokens))),
        }

    def result_bytes(self) -> int:
        """Return the size of the scores in bytes, at 32 bytes a document."""
        return len(self.documents) * 32


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a transcript; times are in seconds from the start of the audio."""

    start_s: float
    end_s: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscribeReply(Reply):
    """The words of an audio file.

    Attributes:
        segments: the parts, in order; a model that reports no times answers with one segment.
        language: ISO 639-1 code of the spoken language; None if the vendor names none.
    """

    text: str
    segments: tuple[Segment, ...]
    language: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscribeRequest(Operation[TranscribeReply]):
    """Ask for the words of an audio file.

    Attributes:
        audio: the bytes; empty in an operation that is only priced.
        duration_s: playing time in seconds.
        language: ISO 639-1 code of the spoken language; None if it is to be detected.
        prompt: names and terms that may occur, or the text before the audio.
    """

    kind = "transcription"
    repeatable = True

    audio: bytes = field(default=b"", repr=False)
    media_type: str = "audio/mpeg"
    duration_s: float
    language: str | None = None
    prompt: str = ""

    def units(self) -> dict[str, float]:
        """Return the seconds of audio and the estimated tokens: a vendor bills either."""
        tokens = USUAL_OVERHEAD_TOKENS + self.duration_s * AUDIO_TOKENS_PER_SECOND
        return {
            "seconds": self.duration_s,
            "input_tokens": float(round(tokens + estimate_tokens(self.prompt))),
            "output_tokens": float(round(self.duration_s * TRANSCRIPT_TOKENS_PER_SECOND)),
        }

    @property
    def abilities(self) -> frozenset[str]:
        """The ability `prompt` if the request has a prompt, otherwise none."""
        return frozenset(("prompt",)) if self.prompt else frozenset()


def count_searches(tokens: Iterable[float]) -> int:
    """Count the billed searches for documents of these tokens, which include the query's.

    A document is one chunk for every 500 tokens begun, and a search has up to 100 chunks.
    Source: Cohere's price list, "search unit".

    >>> count_searches([400.0] * 90), count_searches([900.0] * 90)
    (1, 2)
    """
    chunks = sum(max(1, math.ceil(count / CHUNK_TOKENS)) for count in tokens)
    return math.ceil(chunks / SEARCH_CHUNKS)
