"""`speech.generate`: text spoken as MP3; the registry loads it."""

from pydantic import Field

from toolkit.contract.base import Record, Request
from toolkit.contract.errors import ErrorCode
from toolkit.media.sounds import measure_mp3_ms
from toolkit.plugins import (
    Blob,
    Call,
    Capability,
    Flow,
    InputBinding,
    ProviderError,
    Result,
    SpeechRequest,
    request_operation,
    run_in_process,
)

MEDIA_TYPE = "audio/mpeg"


class SpeechInput(Request):
    """The input of `speech.generate`."""

    text: str = Field(
        min_length=1,
        max_length=9_999,
        pattern=r"\S",
        description="what to say; upstream fills it",
        json_schema_extra={"x-role": "text"},
    )
    voice: str | None = Field(
        default=None,
        min_length=1,
        max_length=256,
        pattern=r"\S",
        description="the provider's name of a voice; upstream, such as `voice.clone`, fills it",
    )
    speed: float = Field(default=1.0, ge=0.5, le=2, description="1 is the voice's own pace")


class SpeechOutput(Record):
    """The output of `speech.generate`."""

    artifact_id: str = Field(description="the artifact that holds the MP3")
    media_type: str = Field(description="`audio/mpeg`")
    size_bytes: int = Field(gt=0, description="how large the MP3 is")
    duration_ms: int | None = Field(
        default=None, ge=0, description="how long it plays; null where the stream does not say"
    )
    characters: int = Field(gt=0, description="how many characters were spoken")
    voice: str | None = Field(
        default=None, description="the voice asked for; null for the provider's default one"
    )
    model: str = Field(description="the model that spoke")


def build_request(fields: SpeechInput) -> SpeechRequest:
    """Build the request for speech from an input, to price it and to send it."""
    return SpeechRequest(text=fields.text, voice=fields.voice, speed=fields.speed)


def generate_speech(call: Call[SpeechInput]) -> Flow[Result]:
    """Request spoken text, and check that the reply is an MP3 that plays.

    Raises:
        ProviderError: `INVALID_OUTPUT` if the reply is no playable MP3.
    """
    fields = call.input
    reply = yield from request_operation(build_request(fields))
    try:
        measured = yield from run_in_process(measure_mp3_ms, reply.audio)
    except ValueError:
        raise ProviderError(
            ErrorCode.INVALID_OUTPUT,
            "The provider's file is not a playable MP3.",
            vendor_request_id=reply.vendor_request_id,
        ) from None
    duration = reply.duration_ms if reply.duration_ms is not None else measured
    facts: dict[str, object] = {
        "media_type": MEDIA_TYPE,
        "size_bytes": len(reply.audio),
        "duration_ms": duration,
        "characters": len(fields.text),
        "voice": fields.voice,
        "model": reply.model,
    }
    metadata = {name: facts[name] for name in ("duration_ms", "voice", "model")}
    return Result(facts, Blob(reply.audio, MEDIA_TYPE, metadata))


CAPABILITY = Capability(
    id="speech.generate",
    title="Speak text",
    description="Speaks text as MP3, in the provider's default voice or a named one.",
    input_model=SpeechInput,
    output_model=SpeechOutput,
    flow=generate_speech,
    operation=SpeechRequest,
    default_provider="minimax",
    accepts={
        "text": InputBinding(("text/*",), "text"),
        "voice": InputBinding(("application/json",), "member"),
    },
    cpu_steps=(measure_mp3_ms,),
    produces=MEDIA_TYPE,
    estimate=build_request,
    keywords=(
        "spoken", "speech", "speak", "narration", "narrated", "narrate", "voice-over",
        "voiceover", "voice over", "audio", "mp3", "podcast", "read aloud", "read out", "aloud",
        "audiobook",
    ),
)  # fmt: skip
