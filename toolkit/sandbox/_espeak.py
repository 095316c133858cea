"""Real speech through espeak-ng, where the optional `espeakng_loader` package is installed."""

import ctypes
import threading
from functools import lru_cache
from typing import Any

_SYNCHRONOUS, _CHARS_UTF8, _RATE, _PITCH = 2, 1, 1, 3
_LOCK = threading.Lock()  # the library keeps one global voice
_CALLBACK = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p
)


@lru_cache(maxsize=1)
def _library() -> tuple[Any, int] | None:
    try:
        import espeakng_loader
    except ImportError:
        return None
    library = ctypes.CDLL(str(espeakng_loader.get_library_path()))
    data = str(espeakng_loader.get_data_path()).encode()
    rate = int(library.espeak_Initialize(_SYNCHRONOUS, 0, data, 0))
    return (library, rate) if rate > 0 else None


def say(text: str, speed: float, pitch: int) -> tuple[bytes, int] | None:
    """The 16-bit mono samples of a text and their rate; none without the library."""
    with _LOCK:
        found = _library()
        if found is None:
            return None
        library, rate = found
        parts: list[bytes] = []

        @_CALLBACK
        def collect(samples: Any, number: int, _events: Any) -> int:
            if samples and number > 0:
                parts.append(ctypes.string_at(samples, number * 2))
            return 0

        library.espeak_SetSynthCallback(collect)
        library.espeak_SetVoiceByName(b"en")
        library.espeak_SetParameter(_RATE, max(80, min(450, round(165 * speed))), 0)
        library.espeak_SetParameter(_PITCH, max(0, min(99, 50 + 4 * pitch)), 0)
        raw = text.encode()
        library.espeak_Synth(raw, len(raw) + 1, 0, 0, 0, _CHARS_UTF8, None, None)
        library.espeak_Synchronize()
        return b"".join(parts), rate
