"""`speech.transcribe`: the words of an audio file, with times; the registry loads it."""

from dataclasses import asdict

from pydantic import Field

from toolkit.capabilities._conversation import ArtifactId
from toolkit.contract.base import Record, Request
from toolkit.contract.capabilities import TimedText
from toolkit.contract.errors import ErrorCode
from toolkit.media.sounds import measure_sound
from toolkit.plugins import (
    Call,
    Capability,
    Flow,
    InputBinding,
    ProviderError,
    Result,
    TranscribeRequest,
    request_operation,
    run_in_process,
)

# The usual audio, to price it before it is there.
USUAL_SECONDS = 30.0


class TranscribeInput(Request):
    """The input of `speech.transcribe`."""

    audio: ArtifactId = Field(
        description="id of an artifact with speech: MP3, M4A or WAV; upstream fills it"
    )
    language: str | None = Field(
        default=None,
        pattern=r"^[a-z]{2}$",
        description="ISO 639-1 code of the spoken language; detected by default",
        json_schema_extra={"x-planned": False},
    )
    prompt: str = Field(
        default="",
        max_length=800,
        description="names and terms that may occur, for models that take them",
        json_schema_extra={"x-planned": False},
    )


class TranscribeOutput(Record):
    """The output of `speech.transcribe`."""

    text: str = Field(description="all words; empty if nobody speaks")
    segments: list[TimedText] = Field(
        description="the parts in order; a model without times gives one for the whole audio"
    )
    language: str | None = Field(
        default=None, description="ISO 639-1 code of the spoken language, where it is known"
    )
    duration_s: float = Field(description="playing time of the audio in seconds")
    model: str = Field(description="the model that transcribed it")


def build_request(fields: TranscribeInput) -> TranscribeRequest:
    """Build the request for an input as if its audio had the usual length, to price it."""
    return TranscribeRequest(
        duration_s=USUAL_SECONDS, language=fields.language, prompt=fields.prompt
    )


def transcribe_audio(call: Call[TranscribeInput]) -> Flow[Result]:
    """Measure the audio, and request its words.

    Raises:
        ProviderError: `PROVIDER_REJECTED` for a file that is no audio, or that does not state its
            length, by which its price is bounded.
    """
    data = call.blobs["audio"].data
    try:
        media_type, duration_ms = yield from run_in_process(measure_sound, data)
    except ValueError:
        media_type, duration_ms = "", None
    if not duration_ms:
        message = "The audio is not an MP3, M4A or WAV file of known length."
        raise ProviderError(ErrorCode.PROVIDER_REJECTED, message)
    seconds = duration_ms / 1_000
    reply = yield from request_operation(
        TranscribeRequest(
            audio=data,
            media_type=media_type,
            duration_s=seconds,
            language=call.input.language,
            prompt=call.input.prompt,
        )
    )
    output: dict[str, object] = {
        "text": reply.text,
        "segments": [asdict(segment) for segment in reply.segments],
        "language": reply.language,
        "duration_s": seconds,
        "model": reply.model,
    }
    return Result(output)


CAPABILITY = Capability(
    id="speech.transcribe",
    title="Transcribe speech",
    description="Writes down what is said in an audio file, with the times of its sentences.",
    input_model=TranscribeInput,
    output_model=TranscribeOutput,
    flow=transcribe_audio,
    operation=TranscribeRequest,
    default_provider="openai",
    accepts={"audio": InputBinding(("audio/*",), "artifact")},
    estimate=build_request,
    cpu_steps=(measure_sound,),
    keywords=("transcribe", "transcript", "transcription"),
    job_type="transcription",
)
