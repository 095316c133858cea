"""Real speech by espeak-ng, if the optional `espeakng_loader` package is installed."""

import ctypes
import importlib.util
import json
import os
import struct
import subprocess
import sys
from typing import Any

_SYNCHRONOUS, _CHARS_UTF8, _RATE, _PITCH = 2, 1, 1, 3
_TIMEOUT_SECONDS = 60
_SEED = 1
_CALLBACK_TYPE = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p
)


def run_espeak(text: str, variant: str, speed: float, pitch: int) -> tuple[bytes, int] | None:
    """Return the 16-bit mono samples of a spoken text and their rate; None without the library.

    Equal arguments give equal bytes. The voice's flutter is random: the library seeds it by the
    clock when it starts, so `_synthesise` sets the seed. The library's state also carries over to
    the next text, so each text has its own process, which also isolates crashes of C code.
    """
    if importlib.util.find_spec("espeakng_loader") is None:
        return None
    request = json.dumps({"text": text, "variant": variant, "speed": speed, "pitch": pitch})
    process = subprocess.run(  # noqa: S603 - this very file, run by our own interpreter
        [sys.executable, __file__],
        input=request.encode(),
        capture_output=True,
        timeout=_TIMEOUT_SECONDS,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    if process.returncode or len(process.stdout) <= 4:
        return None
    (rate,) = struct.unpack_from(">I", process.stdout)
    return process.stdout[4:], int(rate)


def _synthesise(text: str, variant: str, speed: float, pitch: int) -> tuple[bytes, int]:
    import espeakng_loader

    library = ctypes.CDLL(str(espeakng_loader.get_library_path()))
    data = str(espeakng_loader.get_data_path()).encode()
    rate = int(library.espeak_Initialize(_SYNCHRONOUS, 0, data, 0))
    library.espeak_ng_SetRandSeed(ctypes.c_long(_SEED))
    parts: list[bytes] = []

    def collect(samples: Any, number: int, _events: Any) -> int:
        if samples and number > 0:
            parts.append(ctypes.string_at(samples, number * 2))
        return 0

    callback = _CALLBACK_TYPE(collect)  # the name keeps it alive while the library calls it
    library.espeak_SetSynthCallback(callback)
    library.espeak_SetVoiceByName(f"en+{variant}".encode())
    library.espeak_SetParameter(_RATE, max(80, min(450, round(165 * speed))), 0)
    library.espeak_SetParameter(_PITCH, max(0, min(99, 50 + 4 * pitch)), 0)
    raw = text.encode()
    library.espeak_Synth(raw, len(raw) + 1, 0, 0, 0, _CHARS_UTF8, None, None)
    library.espeak_Synchronize()
    return b"".join(parts), rate


if __name__ == "__main__":
    # Run as a file, this folder leads the path, and its modules would shadow others.
    sys.path[:] = [path for path in sys.path if path != os.path.dirname(os.path.abspath(__file__))]
    pcm, sample_rate = _synthesise(**json.load(sys.stdin))
    sys.stdout.buffer.write(struct.pack(">I", sample_rate) + pcm)
