"""speech.generate, image.generate and voice.clone: requests, and accepted media."""

import json
import random
import struct

import pytest

from tests.capabilities.conftest import ARTIFACT, CapabilityDrive, mp3, picture
from tests.support.recordings import make_silent_wav
from toolkit.capabilities import image_generate, speech_generate, voice_clone
from toolkit.contract.errors import ErrorCode
from toolkit.plugins import (
    Blob,
    CloneReply,
    CloneRequest,
    ImageReply,
    ImageRequest,
    ProviderError,
    SpeechReply,
    SpeechRequest,
)


@pytest.mark.parametrize(("reported", "duration"), [(2_100, 2_100), (None, 2_011)])
def test_measures_the_length_of_speech(
    drive: CapabilityDrive, reported: int | None, duration: int
) -> None:
    """Given an MP3, then its length is the provider's figure, or else that of its frames."""
    audio = mp3(2.0)
    drive.replies = [SpeechReply(model="voices", audio=audio, duration_ms=reported)]
    result = drive(speech_generate.CAPABILITY, {"text": "Tides turn.", "speed": 1})
    assert result.output == {
        "media_type": "audio/mpeg",
        "size_bytes": len(audio),
        "duration_ms": duration,
        "characters": 11,
        "voice": None,
        "model": "voices",
    }
    assert result.artifact is not None
    assert (result.artifact.data, result.artifact.media_type) == (audio, "audio/mpeg")
    assert drive.operations == [SpeechRequest(text="Tides turn.", voice=None, speed=1)]


@pytest.mark.parametrize(
    ("form", "media_type"), [("PNG", "image/png"), ("JPEG", "image/jpeg"), ("WEBP", "image/webp")]
)
def test_reads_type_and_size_from_the_image(
    drive: CapabilityDrive, form: str, media_type: str
) -> None:
    """Given an image, then its type and size come from its bytes and not from its label."""
    data = picture(form)
    drive.replies = [ImageReply(model="painter", image=data, media_type="image/gif", seed=7)]
    fields = {"prompt": "a tide mill", "steps": 4, "width": 512, "height": 256}
    result = drive(image_generate.CAPABILITY, fields)
    assert result.output == {
        "media_type": media_type,
        "width": 64,
        "height": 32,
        "size_bytes": len(data),
        "seed": 7,
        "model": "painter",
    }
    assert result.artifact is not None
    assert (result.artifact.data, result.artifact.media_type) == (data, media_type)
    assert drive.operations == [ImageRequest(prompt="a tide mill", steps=4, width=512, height=256)]


def test_records_the_requested_seed(drive: CapabilityDrive) -> None:
    """Given a provider that returns no seed, then the requested seed is recorded."""
    drive.replies = [ImageReply(model="painter", image=picture(), media_type="image/png")]
    assert drive(image_generate.CAPABILITY, {"prompt": "x", "seed": 3}).output["seed"] == 3


BOMB = (  # the header of a PNG of 60,000 × 60,000 pixels
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
)


@pytest.mark.parametrize(
    "data",
    [b"", b"<svg onload='x()'/>", picture()[:90], picture("GIF"), BOMB + b"\0" * 40],
    ids=["empty", "svg", "cut off", "gif", "bomb"],
)
def test_rejects_an_invalid_image(drive: CapabilityDrive, data: bytes) -> None:
    """Given bytes that are no image of an allowed type and size, then the job fails."""
    drive.replies = [ImageReply(model="painter", image=data, media_type="image/png")]
    with pytest.raises(ProviderError) as failure:
        drive(image_generate.CAPABILITY, {"prompt": "a tide mill"})
    assert failure.value.code is ErrorCode.INVALID_OUTPUT


@pytest.mark.parametrize("audio", [b"", b'{"error": "no"}', mp3(0.03)[:200]])
def test_rejects_invalid_audio(drive: CapabilityDrive, audio: bytes) -> None:
    """Given bytes that are no MP3, then the job fails."""
    drive.replies = [SpeechReply(model="voices", audio=audio, duration_ms=900)]
    with pytest.raises(ProviderError) as failure:
        drive(speech_generate.CAPABILITY, {"text": "Tides turn."})
    assert failure.value.code is ErrorCode.INVALID_OUTPUT


def m4a(seconds: int, version: int = 0) -> bytes:
    """Return the boxes of an M4A file that hold its length."""
    times = bytes(16 if version else 8)
    lasts = struct.pack(">IQ" if version else ">II", 1000, seconds * 1000)
    head = b"\x00\x00\x00\x18ftypM4A \x00\x00\x00\x00M4A mp42"
    return head + b"\x00\x00\x00\x6cmvhd" + bytes([version, 0, 0, 0]) + times + lasts


# The input that names a reference recording.
VOICE = {"reference_audio": ARTIFACT, "name": "Narrator"}


@pytest.mark.parametrize(
    ("audio", "media_type", "duration"),
    [
        (make_silent_wav(12), "audio/wav", 12_000),
        (mp3(12.0), "audio/mpeg", 11_990),
        (m4a(12), "audio/mp4", 12_000),
        (m4a(12, version=1), "audio/mp4", 12_000),
        (b"\x00\x00\x00\x18ftypM4A " + bytes(40), "audio/mp4", None),
    ],
)
def test_clones_a_voice_from_any_format(
    drive: CapabilityDrive, audio: bytes, media_type: str, duration: int | None
) -> None:
    """Given reference audio, then it is sent under its true type and the voice comes back."""
    drive.replies = [CloneReply(model="cloner", voice="narrator-1")]
    blobs = {"reference_audio": Blob(audio, "application/octet-stream")}
    result = drive(voice_clone.CAPABILITY, VOICE, blobs=blobs)
    assert result.output == {
        "voice": "narrator-1",
        "name": "Narrator",
        "model": "cloner",
        "duration_ms": duration,
    }
    assert result.artifact is not None
    assert json.loads(result.artifact.data) == result.output
    assert drive.operations == [CloneRequest(name="Narrator", audio=audio, media_type=media_type)]


@pytest.mark.parametrize(
    ("audio", "message"),
    [
        (make_silent_wav(9.9), r"lasts 9\.9 s"),
        (mp3(301.0), r"lasts 30"),
        (bytes(20_000_001), "20000001 bytes"),
        (b"", "is not a readable"),
        (random.Random(3).randbytes(900), "is not a readable"),
        (b"RIFF\x00\x00\x00\x00WAVEjunk", "is not a readable"),
        (b"\x00\x00\x00\x18ftypM4A mvhd\x00", "is not a readable"),
    ],
)
def test_rejects_unusable_reference_audio(
    drive: CapabilityDrive, audio: bytes, message: str
) -> None:
    """Given audio that no provider accepts, then it is refused before it is sent."""
    blobs = {"reference_audio": Blob(audio, "audio/mpeg")}
    with pytest.raises(ProviderError, match=message) as refusal:
        drive(voice_clone.CAPABILITY, VOICE, blobs=blobs)
    assert refusal.value.code is ErrorCode.PROVIDER_REJECTED
    assert drive.operations == []
