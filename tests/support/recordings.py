"""Recordings to clone a voice from."""

import io
import wave


def make_silent_wav(seconds: float) -> bytes:
    """Make a silent WAV of a duration in seconds."""
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8_000)
        sound.writeframes(bytes(2 * round(8_000 * seconds)))
    return buffer.getvalue()
