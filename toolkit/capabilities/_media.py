"""Pictures and sounds by their bytes: read in worker processes, as anyone may have sent them."""

import io
import struct
import wave

from toolkit.capabilities._mp3 import measure_duration_ms

PICTURE_TYPES = {"PNG": "image/png", "JPEG": "image/jpeg", "WEBP": "image/webp"}
MAX_PIXELS = 4096 * 4096  # far over what can be asked for; a small file may unpack to gigabytes
MAX_REFERENCE_BYTES = 20_000_000
MIN_REFERENCE_MS, MAX_REFERENCE_MS = 10_000, 300_000


def read_picture(data: bytes) -> tuple[str, int, int]:
    """Return a picture's media type, width and height: what its sender calls it is not believed.

    Raises:
        ValueError: it does not open, or is too large; the text says so.
    """
    from PIL import Image, UnidentifiedImageError

    too_large = f"is larger than {MAX_PIXELS} pixels"
    try:
        with Image.open(io.BytesIO(data), formats=tuple(PICTURE_TYPES)) as image:
            width, height = image.size
            if width * height <= MAX_PIXELS:
                image.load()
                return PICTURE_TYPES[image.format or ""], width, height
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise ValueError(too_large) from None
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError):
        raise ValueError("does not open as PNG, JPEG or WebP") from None
    raise ValueError(too_large)


def measure_reference(data: bytes) -> tuple[str, int | None]:
    """Return the media type of reference audio, by its bytes, and its length in milliseconds.

    Raises:
        ValueError: it is no audio, too large, too short or too long; the text says so.
    """
    if len(data) > MAX_REFERENCE_BYTES:
        raise ValueError(f"is {len(data)} bytes, and at most {MAX_REFERENCE_BYTES} are taken")
    try:
        media_type, duration = _detect_audio(data)
    except (ValueError, EOFError, wave.Error, struct.error, ZeroDivisionError):
        raise ValueError("does not read as MP3, M4A or WAV") from None
    if duration is not None and not MIN_REFERENCE_MS <= duration <= MAX_REFERENCE_MS:
        raise ValueError(f"lasts {duration / 1000:.1f} s, and 10 s to 5 min are taken")
    return media_type, duration


def _detect_audio(data: bytes) -> tuple[str, int | None]:
    if data[:4] == b"RIFF" and data[8:12] == b"WAVE":
        with wave.open(io.BytesIO(data)) as sound:
            return "audio/wav", round(sound.getnframes() * 1000 / sound.getframerate())
    if data[4:8] == b"ftyp":
        return "audio/mp4", _read_m4a_duration_ms(data)
    return "audio/mpeg", measure_duration_ms(data)


def _read_m4a_duration_ms(data: bytes) -> int | None:
    """Read the duration from the movie header box (ISO 14496-12, `mvhd`)."""
    place = data.find(b"mvhd")
    if place < 0:
        return None
    wide = data[place + 4 : place + 5] == b"\x01"  # the box's version decides the width of times
    scale: int
    length: int
    scale, length = struct.unpack_from(">IQ" if wide else ">II", data, place + (24 if wide else 16))
    return round(length * 1000 / scale)
