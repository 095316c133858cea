"""The media types of files, recognised by their first bytes."""

import lameenc
import pytest

from tests.capabilities.conftest import picture
from tests.support.recordings import make_silent_wav
from toolkit.media.signatures import SIGNATURE_BYTES, is_picture, match_signature


def encode_mp3(rate: int) -> bytes:
    """Silence as LAME encodes it: MPEG 1, 2 or 2.5, by its rate."""
    encoder = lameenc.Encoder()
    encoder.silence()
    encoder.set_in_sample_rate(rate)
    encoder.set_out_sample_rate(rate)
    encoder.set_channels(1)
    return bytes(encoder.encode(bytes(2 * rate)) + encoder.flush())


@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        (picture("PNG"), "image/png"),
        (picture("JPEG"), "image/jpeg"),
        (picture("WEBP"), "image/webp"),
        (make_silent_wav(1), "audio/wav"),
        (encode_mp3(44_100), "audio/mpeg"),
        (encode_mp3(24_000), "audio/mpeg"),
        (encode_mp3(11_025), "audio/mpeg"),
        (b"\x00\x00\x00\x20ftypM4A \x00\x00\x00\x00", "audio/mp4"),
    ],
)
def test_recognises_a_file_by_its_first_bytes(data: bytes, media_type: str) -> None:
    """Given a file or only its head, then its media type is returned."""
    assert match_signature(data) == match_signature(data[:SIGNATURE_BYTES]) == media_type
    assert is_picture(data) is media_type.startswith("image/")


@pytest.mark.parametrize(
    "data",
    [b"", b"\xff", b"RIFF of a guitar", picture("GIF"), "text".encode("utf-16"), b"%PDF-1.7"],
)
def test_returns_none_for_other_files(data: bytes) -> None:
    """Given any other file, then there is no media type."""
    assert match_signature(data) is None
    assert not is_picture(data)
