"""Kinds and lengths of media files."""

import random
import struct

import lameenc
import pytest

from tests.capabilities.conftest import mp3, picture
from tests.support.recordings import make_silent_wav
from toolkit.media.signatures import SIGNATURE_BYTES, is_picture, match_signature
from toolkit.media.sounds import measure_mp3_ms


def encode_noise(seconds: float, rate: int, channels: int = 1, vbr: bool = False) -> bytes:
    """Encode noise by the LAME encoder."""
    encoder = lameenc.Encoder()
    encoder.set_bit_rate(64)
    encoder.set_in_sample_rate(rate)
    encoder.set_channels(channels)
    encoder.set_quality(7)
    encoder.silence()
    if vbr:
        encoder.set_vbr(4)
        encoder.set_vbr_quality(6)
    noise = random.Random(7).randbytes(round(seconds * rate) * 2 * channels)
    return bytes(encoder.encode(noise) + encoder.flush())


@pytest.mark.parametrize("rate", [8_000, 22_050, 44_100, 48_000])
def test_measures_encoded_audio(rate: int) -> None:
    """Given encoded noise, then its duration is right within three frames of padding."""
    assert measure_mp3_ms(encode_noise(1.0, rate)) == pytest.approx(1000, abs=3 * 1152_000 / rate)


def test_measures_stereo_with_variable_bitrate() -> None:
    """Given stereo frames of varying size, then each counts for its playing time."""
    assert measure_mp3_ms(encode_noise(1.0, 44_100, 2, vbr=True)) == pytest.approx(1000, abs=80)


def test_skips_tags_and_junk() -> None:
    """Given tags before and after and junk between frames, then only the frames count."""
    audio = mp3(1.0)
    plain = measure_mp3_ms(audio)
    id3 = b"ID3\x04\x00\x00\x00\x00\x01\x00" + b"\xff\xfb\x90\xc4" * 32
    assert measure_mp3_ms(id3 + audio + b"TAG" + bytes(125)) == plain
    assert measure_mp3_ms(b"RUBBISH" * 9 + audio) == plain
    half = 417 * (len(audio) // 834)
    broken = measure_mp3_ms(audio[:half] + b"\xffjunk\xff\xfb" + audio[half:])
    assert broken == pytest.approx(plain, abs=27)  # one frame is lost to the junk


def test_ignores_a_frame_that_is_cut_off() -> None:
    """Given a last frame that is cut off, then it does not count."""
    audio = mp3(1.0)
    assert measure_mp3_ms(audio + audio[:300]) == measure_mp3_ms(audio)


@pytest.mark.parametrize("kind", [b"Xing", b"Info"])
def test_ignores_the_index_frame(kind: bytes) -> None:
    """Given an index frame that promises 10,000 frames before 77, then only the 77 count."""
    audio = mp3(2.0)
    index = bytes([0xFF, 0xFB, 0x90, 0xC4]) + bytes(17) + kind
    index += struct.pack(">III", 3, 10_000, 4_170_000)
    index += bytes(417 - len(index))
    assert measure_mp3_ms(index + audio) == measure_mp3_ms(audio)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff\xfb",
        b"<html>not audio</html>",
        b"\xff" * 5000,
        bytes([0xFF, 0xFB, 0x00, 0xC4]) + bytes(500),  # free format, which no decoder supports
        b"RIFF\x00\x00\x00\x00WAVEfmt " + bytes(4000),
        b"ID3\x04\x00\x00\x7f\x7f\x7f\x7f",
    ],
)
def test_rejects_data_without_frames(data: bytes) -> None:
    """Given bytes without layer III frames, then the error says so."""
    with pytest.raises(ValueError, match="no MPEG"):
        measure_mp3_ms(data)


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
