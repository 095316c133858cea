"""The format and length of a recording, read from its header: WAV, MP3 and M4A."""

import io
import struct
import wave
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Recording:
    """The format and length of a recording."""

    file_format: str
    seconds: float


def measure_recording(data: bytes) -> Recording | None:
    """Read a file's format and length; return None if it is no recording that the vendor takes."""
    if data[:4] == b"RIFF" and data[8:12] == b"WAVE":
        return _measure_wav(data)
    if data[4:8] == b"ftyp":
        return _measure_m4a(data)
    return _measure_mp3(data)


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


def _measure_mp3(data: bytes) -> Recording | None:
    import miniaudio  # imported only when it is needed

    try:
        seconds = miniaudio.mp3_get_info(data).duration
    except miniaudio.MiniaudioError:
        return None
    return Recording("mp3", seconds) if seconds else None
