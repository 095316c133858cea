"""The types and playing times of sounds; call it in a worker process, because it decodes them."""

import io
import struct
import wave

from toolkit.media.signatures import match_signature

_FRAMES_AT_A_TIME = 64 * 1024


def measure_sound(data: bytes) -> tuple[str, int | None]:
    """Return the media type of an MP3, M4A or WAV, and its playing time in milliseconds.

    Returns:
        type and playing time; the time is None for an M4A that does not state it.

    Raises:
        ValueError: the data is not in one of these formats.
    """
    kind = match_signature(data)
    if kind == "audio/wav":
        return kind, measure_wav_ms(data)
    if kind == "audio/mp4":
        return kind, read_m4a_ms(data)
    return "audio/mpeg", measure_mp3_ms(data)


def measure_mp3_ms(data: bytes) -> int:
    """Measure the playing time of an MP3, in milliseconds, by decoding it.

    The length that a file states is ignored, so a truncated file gets its actual length.

    Raises:
        ValueError: the data holds no MPEG layer III audio that plays.

    >>> frame = bytes([0xFF, 0xFB, 0x90, 0xC4]) + bytes(413)
    >>> measure_mp3_ms(frame * 100)
    2612
    """
    import miniaudio  # imported only if it is needed

    try:
        info = miniaudio.mp3_get_info(data)
        pieces = miniaudio.stream_memory(
            data,
            nchannels=info.nchannels,
            sample_rate=info.sample_rate,
            frames_to_read=_FRAMES_AT_A_TIME,
        )
        values = sum(len(piece) for piece in pieces)  # of all channels
    except miniaudio.MiniaudioError:
        raise ValueError("no MPEG layer III audio") from None
    seconds: float = values / info.nchannels / info.sample_rate
    milliseconds = round(seconds * 1000)
    if not milliseconds:
        raise ValueError("no MPEG layer III audio that plays")
    return milliseconds


def measure_wav_ms(data: bytes) -> int:
    """Measure the playing time of a WAV, in milliseconds.

    Raises:
        ValueError: the data is no WAV, or its header is cut off.
    """
    try:
        with wave.open(io.BytesIO(data)) as sound:
            seconds: float = sound.getnframes() / sound.getframerate()
            return round(seconds * 1000)
    except (EOFError, wave.Error, ZeroDivisionError) as error:
        raise ValueError("no WAV") from error


def read_m4a_ms(data: bytes) -> int | None:
    """Read an M4A's playing time in milliseconds from its movie header (ISO 14496-12, `mvhd`).

    Returns:
        the time, or None if there is no such header.

    Raises:
        ValueError: the header is cut off.
    """
    place = data.find(b"mvhd")
    if place < 0:
        return None
    wide = data[place + 4 : place + 5] == b"\x01"  # the box's version decides the width of times
    scale: int
    length: int
    try:
        layout, start = (">IQ", place + 24) if wide else (">II", place + 16)
        scale, length = struct.unpack_from(layout, data, start)
        return round(length * 1000 / scale)
    except (struct.error, ZeroDivisionError) as error:
        raise ValueError("an M4A without a time scale") from error
