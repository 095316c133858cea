"""`voice.clone`: a voice made from reference audio; the registry loads it."""

import io
import json
import struct
import wave

from pydantic import Field

from toolkit.capabilities._mp3 import duration_ms
from toolkit.contract.base import Record, Request
from toolkit.contract.errors import ErrorCode
from toolkit.plugins import (
    Blob,
    Call,
    Capability,
    CloneRequest,
    Flow,
    Result,
    Take,
    VendorFault,
    compute,
    operate,
)

MOST_BYTES = 20_000_000
SHORTEST_MS, LONGEST_MS = 10_000, 300_000


class CloneInput(Request):
    """What `voice.clone` takes."""

    reference_audio: str = Field(
        pattern=r"^art_[0-7][0-9a-hjkmnp-tv-z]{25}$",
        description="id of an artifact with 10 s to 5 min of the voice: MP3, M4A or WAV, to 20 MB",
    )
    name: str = Field(
        min_length=1, max_length=64, pattern=r"\S", description="what you call the voice"
    )


class CloneOutput(Record):
    """What `voice.clone` answers."""

    voice: str = Field(min_length=1, description="its name in later speech at the same provider")
    name: str = Field(description="what you called it")
    model: str = Field(description="the model that cloned it")
    duration_ms: int | None = Field(
        default=None, description="how long the reference audio is, where it could be measured"
    )


def request(given: CloneInput) -> CloneRequest:
    """The operation that an input leads to, the audio still left out: its price needs none."""
    return CloneRequest(name=given.name, audio=b"", media_type="audio/mpeg")


def clone(call: Call[CloneInput]) -> Flow[Result]:
    """Check the reference audio, and have a voice made from it.

    Raises:
        VendorFault: `PROVIDER_REJECTED` for audio that no provider takes.
    """
    blob = call.blobs["reference_audio"]
    media_type, duration = yield from compute(lambda: measure(blob.data))
    name = call.input.name
    reply = yield from operate(CloneRequest(name=name, audio=blob.data, media_type=media_type))
    output: dict[str, object] = {
        "voice": reply.voice,
        "name": name,
        "model": reply.model,
        "duration_ms": duration,
    }
    data = json.dumps(output, ensure_ascii=False).encode()
    return Result(output, Blob(data, "application/json", {"voice": reply.voice}))


def measure(data: bytes) -> tuple[str, int | None]:
    """The media type of reference audio, by its bytes, and its length in milliseconds.

    Raises:
        VendorFault: `PROVIDER_REJECTED` when it is no audio, too large, too short or too long.
    """
    if len(data) > MOST_BYTES:
        raise _refused(f"is {len(data)} bytes, and at most {MOST_BYTES} are taken")
    try:
        media_type, duration = _kind(data)
    except (ValueError, EOFError, wave.Error, struct.error, ZeroDivisionError):
        raise _refused("does not read as MP3, M4A or WAV") from None
    if duration is not None and not SHORTEST_MS <= duration <= LONGEST_MS:
        raise _refused(f"lasts {duration / 1000:.1f} s, and 10 s to 5 min are taken")
    return media_type, duration


def _kind(data: bytes) -> tuple[str, int | None]:
    if data[:4] == b"RIFF" and data[8:12] == b"WAVE":
        with wave.open(io.BytesIO(data)) as sound:
            return "audio/wav", round(sound.getnframes() * 1000 / sound.getframerate())
    if data[4:8] == b"ftyp":
        return "audio/mp4", _m4a_duration_ms(data)
    return "audio/mpeg", duration_ms(data)


def _m4a_duration_ms(data: bytes) -> int | None:
    """What the movie header box says (ISO 14496-12, `mvhd`)."""
    place = data.find(b"mvhd")
    if place < 0:
        return None
    wide = data[place + 4 : place + 5] == b"\x01"  # the box's version decides the width of times
    scale: int
    length: int
    scale, length = struct.unpack_from(">IQ" if wide else ">II", data, place + (24 if wide else 16))
    return round(length * 1000 / scale)


def _refused(reason: str) -> VendorFault:
    return VendorFault(ErrorCode.PROVIDER_REJECTED, f"The reference audio {reason}.")


CAPABILITY = Capability(
    id="voice.clone",
    title="Clone a voice",
    description="Makes a voice for later speech from reference audio, uploaded as an artifact.",
    input_model=CloneInput,
    output_model=CloneOutput,
    flow=clone,
    operation=CloneRequest,
    default_provider="minimax",
    takes={"reference_audio": Take(("audio/*",), "artifact")},
    yields="application/json",
    estimate=request,
    keywords=("clone", "cloned voice", "clone voice", "voice clone", "custom voice", "my voice"),
)
