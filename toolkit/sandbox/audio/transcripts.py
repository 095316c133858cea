"""Recordings: their formats, and their transcripts.

The sandbox's own speech carries its text, as players show lyrics: in an ID3 tag in front of the
MP3, in the frame for transcribed text (ID3v2.4, `USLT`).
"""

import io
import struct
import wave
from dataclasses import dataclass
from itertools import pairwise

from toolkit.sandbox.text.languages import ENGLISH, detect_written_language, load_languages
from toolkit.sandbox.text.sentences import split_sentences

_TAG, _FRAME = b"ID3\x04\x00\x00", b"USLT"
_HEAD_BYTES = 10  # of a tag and of a frame: name, size and flags
_UTF8_ENGLISH = b"\x03eng\x00"  # the encoding, a language, and an empty description


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


@dataclass(frozen=True, slots=True)
class SpokenPart:
    """A part of a recording; times are in seconds from its start."""

    start: float
    end: float
    text: str


@dataclass(frozen=True, slots=True)
class HeardRecording:
    """A recording as the simulated models hear it."""

    text: str
    seconds: float

    @property
    def language(self) -> str:
        """The ISO 639-1 code of the language."""
        return detect_written_language(self.text) or ENGLISH

    @property
    def language_name(self) -> str:
        """The English name of the language."""
        return str(load_languages()[self.language]["names"][0])

    @property
    def sentences(self) -> list[SpokenPart]:
        """The sentences, each with a share of the time by its length."""
        return self.time_parts(split_sentences(self.text))

    def time_parts(self, parts: list[str]) -> list[SpokenPart]:
        """Give each part of the text a share of the time by its length."""
        ends = [0]
        for part in parts:
            ends.append(ends[-1] + len(part))
        times = [round(self.seconds * end / max(1, ends[-1]), 3) for end in ends]
        return [
            SpokenPart(start, end, part)
            for (start, end), part in zip(pairwise(times), parts, strict=True)
        ]


def tag_speech(audio: bytes, text: str) -> bytes:
    """Return an MP3 that carries the text that it speaks."""
    content = _UTF8_ENGLISH + text.encode()
    frame = _FRAME + _pack_size(len(content)) + b"\0\0" + content
    return _TAG + _pack_size(len(frame)) + frame + audio


def hear_recording(data: bytes) -> HeardRecording | None:
    """Return what is said in a recording; None if it is no recording that vendors take."""
    recording = measure_recording(data)
    if recording is None:
        return None
    start = len(_TAG) + 4
    text = f"A sound of {recording.seconds:.1f} seconds without words."
    if data.startswith(_TAG) and data[start:].startswith(_FRAME):
        size = _unpack_size(data[start + 4 : start + 8])
        content = data[start + _HEAD_BYTES :][:size]
        text = content[len(_UTF8_ENGLISH) :].decode(errors="replace")
    return HeardRecording(text, recording.seconds)


def _pack_size(size: int) -> bytes:
    """Pack a size in four bytes of seven bits each (ID3v2.4, section 6.2)."""
    return bytes(size >> shift & 0x7F for shift in (21, 14, 7, 0))


def _unpack_size(packed: bytes) -> int:
    return sum(byte << shift for byte, shift in zip(packed, (21, 14, 7, 0), strict=True))
