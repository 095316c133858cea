"""The format and length of a recording, read from its header: WAV, MP3 and M4A."""

import io
import struct
import wave
from collections.abc import Iterator
from dataclasses import dataclass

_BITRATES = {
    1: (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
    2: (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
}
_RATES = {3: (44100, 48000, 32000), 2: (22050, 24000, 16000), 0: (11025, 12000, 8000)}


@dataclass(frozen=True, slots=True)
class Recording:
    """The format and length of a recording."""

    file_format: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Mp3Frame:
    """One MPEG layer III frame."""

    offset: int
    size: int
    sample_rate: int
    bitrate: int
    samples: int
    channels: int


def measure_recording(data: bytes) -> Recording | None:
    """Read a file's format and length; return None if it is no recording that the vendor takes."""
    if data[:4] == b"RIFF" and data[8:12] == b"WAVE":
        return _measure_wav(data)
    if data[4:8] == b"ftyp":
        return _measure_m4a(data)
    seconds = sum(frame.samples / frame.sample_rate for frame in iter_mp3_frames(data))
    return Recording("mp3", seconds) if seconds else None


def _measure_wav(data: bytes) -> Recording | None:
    try:
        with wave.open(io.BytesIO(data)) as file:
            return Recording("wav", file.getnframes() / file.getframerate())
    except (wave.Error, EOFError, ZeroDivisionError):
        return None


def _measure_m4a(data: bytes) -> Recording | None:
    place = data.find(b"mvhd")
    if place < 0 or len(data) < place + 32:
        return None
    if data[place + 4] == 1:  # the box's version decides the width of its times
        scale, length = struct.unpack_from(">IQ", data, place + 24)
    else:
        scale, length = struct.unpack_from(">II", data, place + 16)
    return Recording("m4a", length / scale) if scale else None


def iter_mp3_frames(data: bytes) -> Iterator[Mp3Frame]:
    """Yield the frames of an MP3 file, skipping an ID3 tag before them."""
    place = 0
    if data[:3] == b"ID3" and len(data) >= 10:
        place = 10 + sum((data[6 + i] & 0x7F) << (7 * (3 - i)) for i in range(4))
    while place + 4 <= len(data):
        frame = _parse_mp3_frame(data, place)
        if frame is None:
            return
        yield frame
        place += frame.size


def _parse_mp3_frame(data: bytes, place: int) -> Mp3Frame | None:
    head = int.from_bytes(data[place : place + 4], "big")
    version, layer = (head >> 19) & 3, (head >> 17) & 3
    bit_index, rate_index = (head >> 12) & 15, (head >> 10) & 3
    if head >> 21 != 0x7FF or version == 1 or layer != 1:
        return None
    if bit_index in (0, 15) or rate_index == 3:
        return None
    mpeg1 = version == 3
    bitrate = _BITRATES[1 if mpeg1 else 2][bit_index] * 1000
    sample_rate = _RATES[version][rate_index]
    samples = 1152 if mpeg1 else 576
    size = samples // 8 * bitrate // sample_rate + ((head >> 9) & 1)
    channels = 1 if (head >> 6) & 3 == 3 else 2
    return Mp3Frame(place, size, sample_rate, bitrate, samples, channels)
