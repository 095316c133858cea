"""The media types of files that other programs wrote, by their first bytes."""

import io
import wave

import lameenc
import pytest
from PIL import Image

from toolkit.media.signatures import SIGNATURE_BYTES, is_picture, match_signature


def draw_picture(form: str) -> bytes:
    """A picture as Pillow writes it."""
    file = io.BytesIO()
    Image.new("RGB", (8, 8)).save(file, form)
    return file.getvalue()


def encode_mp3(rate: int) -> bytes:
    """Silence as LAME encodes it: MPEG 1, 2 or 2.5, by its rate."""
    encoder = lameenc.Encoder()
    encoder.silence()
    encoder.set_in_sample_rate(rate)
    encoder.set_out_sample_rate(rate)
    encoder.set_channels(1)
    return bytes(encoder.encode(bytes(2 * rate)) + encoder.flush())


def write_wav() -> bytes:
    """Silence as the standard library writes it."""
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8_000)
        sound.writeframes(bytes(800))
    return file.getvalue()


@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        (draw_picture("PNG"), "image/png"),
        (draw_picture("JPEG"), "image/jpeg"),
        (draw_picture("WEBP"), "image/webp"),
        (write_wav(), "audio/wav"),
        (encode_mp3(44_100), "audio/mpeg"),
        (encode_mp3(24_000), "audio/mpeg"),
        (encode_mp3(11_025), "audio/mpeg"),
        (b"\x00\x00\x00\x20ftypM4A \x00\x00\x00\x00", "audio/mp4"),
    ],
)
def test_a_file_is_known_by_its_first_bytes(data: bytes, media_type: str) -> None:
    """Given a file, or its head alone, its type is told."""
    assert match_signature(data) == match_signature(data[:SIGNATURE_BYTES]) == media_type
    assert is_picture(data) is media_type.startswith("image/")


@pytest.mark.parametrize(
    "data",
    [b"", b"\xff", b"RIFF of a guitar", draw_picture("GIF"), "text".encode("utf-16"), b"%PDF-1.7"],
)
def test_any_other_is_not(data: bytes) -> None:
    """Given anything else, a text in UTF-16 too, there is no type."""
    assert match_signature(data) is None
    assert not is_picture(data)
