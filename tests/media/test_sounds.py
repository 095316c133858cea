"""The duration of an MP3, by decoding it."""

import random
import struct

import lameenc
import pytest

from tests.capabilities.conftest import mp3
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
