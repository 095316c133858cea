"""How long tests wait, and how long something took that others' work on this machine did not.

A machine may be busy. So what has to come to pass gets all the patience there is, as that is only
for tests that hang; and what has to be quick is measured by a watch that stands still while threads
of this process could run and the cores were others'.
"""

import time
from pathlib import Path

PATIENCE_S = 120.0
THREADS = Path("/proc/self/task")


class Watch:
    """Measures seconds from when it is made; without /proc, those of the wall."""

    def __init__(self) -> None:
        self._delays = _read_delays_ns()
        self._began = time.monotonic()

    def measure_elapsed_s(self) -> float:
        """How long it took, less what each thread spent waiting for a core meanwhile."""
        elapsed = time.monotonic() - self._began
        held_up = sum(ns - self._delays.get(thread, 0) for thread, ns in _read_delays_ns().items())
        return max(0.0, elapsed - held_up / 1e9)


def _read_delays_ns() -> dict[str, int]:
    """How long each thread of this process has waited for a core so far."""
    found = {}
    for thread in THREADS.glob("*"):
        try:
            found[thread.name] = int((thread / "schedstat").read_text().split()[1])
        except (OSError, IndexError):
            continue  # it has ended, or this kernel does not count
    return found
