"""`voice.clone`: a voice made from reference audio; the registry loads it."""

import json

from pydantic import Field

from toolkit.contract.base import Record, Request
from toolkit.contract.errors import ErrorCode
from toolkit.contract.ids import Prefix, build_id_pattern
from toolkit.media.sounds import measure_sound
from toolkit.plugins import (
    Blob,
    Call,
    Capability,
    CloneRequest,
    Flow,
    InputBinding,
    ProviderError,
    Result,
    request_operation,
    run_in_process,
)

MAX_REFERENCE_BYTES = 20_000_000
MIN_REFERENCE_MS, MAX_REFERENCE_MS = 10_000, 300_000


def measure_reference(data: bytes) -> tuple[str, int | None]:
    """Return the media type of reference audio, and its length in milliseconds, None if unknown.

    Raises:
        ValueError: the data is no audio, too large, too short or too long; the text says which.
    """
    if len(data) > MAX_REFERENCE_BYTES:
        raise ValueError(f"is {len(data)} bytes; at most {MAX_REFERENCE_BYTES} are accepted")
    try:
        media_type, duration = measure_sound(data)
    except ValueError:
        raise ValueError("is not a readable MP3, M4A or WAV file") from None
    if duration is not None and not MIN_REFERENCE_MS <= duration <= MAX_REFERENCE_MS:
        raise ValueError(f"lasts {duration / 1000:.1f} s, and 10 s to 5 min are taken")
    return media_type, duration


class CloneInput(Request):
    """The input of `voice.clone`."""

    reference_audio: str = Field(
        pattern=build_id_pattern(Prefix.ARTIFACT),
        description="id of an artifact with 10 s to 5 min of the voice: MP3, M4A or WAV, to 20 MB",
    )
    name: str = Field(
        min_length=1, max_length=64, pattern=r"\S", description="what you call the voice"
    )


class CloneOutput(Record):
    """The output of `voice.clone`."""

    voice: str = Field(min_length=1, description="its name in later speech at the same provider")
    name: str = Field(description="what you called it")
    model: str = Field(description="the model that cloned it")
    duration_ms: int | None = Field(
        default=None, description="how long the reference audio is, where it could be measured"
    )


def build_request(fields: CloneInput) -> CloneRequest:
    """Build the request for a voice without its audio, to price it; the audio has no influence."""
    return CloneRequest(name=fields.name, audio=b"", media_type="audio/mpeg")


def clone_voice(call: Call[CloneInput]) -> Flow[Result]:
    """Check the reference audio, and request a voice from it.

    Raises:
        ProviderError: `PROVIDER_REJECTED` for audio that no provider accepts.
    """
    blob = call.blobs["reference_audio"]
    try:
        media_type, duration = yield from run_in_process(measure_reference, blob.data)
    except ValueError as error:
        message = f"The reference audio {error}."
        raise ProviderError(ErrorCode.PROVIDER_REJECTED, message) from None
    name = call.input.name
    reply = yield from request_operation(
        CloneRequest(name=name, audio=blob.data, media_type=media_type)
    )
    output: dict[str, object] = {
        "voice": reply.voice,
        "name": name,
        "model": reply.model,
        "duration_ms": duration,
    }
    data = json.dumps(output, ensure_ascii=False).encode()
    return Result(output, Blob(data, "application/json", {"voice": reply.voice}))


CAPABILITY = Capability(
    id="voice.clone",
    title="Clone a voice",
    description="Makes a voice for later speech from reference audio, uploaded as an artifact.",
    input_model=CloneInput,
    output_model=CloneOutput,
    flow=clone_voice,
    operation=CloneRequest,
    default_provider="minimax",
    accepts={"reference_audio": InputBinding(("audio/*",), "artifact")},
    produces="application/json",
    estimate=build_request,
    keywords=("clone", "cloned voice", "clone voice", "voice clone", "custom voice", "my voice"),
)
