"""Checks of the reference audio that a voice is cloned from, to be run in a worker process."""

from toolkit.media.sounds import measure_sound

MAX_REFERENCE_BYTES = 20_000_000
MIN_REFERENCE_MS, MAX_REFERENCE_MS = 10_000, 300_000


def measure_reference(data: bytes) -> tuple[str, int | None]:
    """Return the media type of reference audio, by its bytes, and its length in milliseconds.

    Raises:
        ValueError: the data is no audio, too large, too short or too long; the text says which.
    """
    if len(data) > MAX_REFERENCE_BYTES:
        raise ValueError(f"is {len(data)} bytes; at most {MAX_REFERENCE_BYTES} are accepted")
    try:
        media_type, duration = measure_sound(data)
    except ValueError:
        raise ValueError("is not a readable MP3, M4A or WAV file") from None
    if duration is not None and not MIN_REFERENCE_MS <= duration <= MAX_REFERENCE_MS:
        raise ValueError(f"lasts {duration / 1000:.1f} s, and 10 s to 5 min are taken")
    return media_type, duration
