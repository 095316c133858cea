"""Waiting for what has to come to pass, and measuring time without others' work on this machine.

A machine may be busy. So what has to come to pass gets all the patience there is, as that is only
for tests that hang; and what has to be quick is measured by a watch that stands still while threads
of this process could run and the cores were others'.
"""

import asyncio
import inspect
import time
from collections.abc import Callable
from pathlib import Path

PATIENCE_S = 120.0
# Asking costs more than waiting: who has waited for long is told a twentieth of a second late.
POLL_S, MAX_POLL_S = 0.01, 0.05
THREADS = Path("/proc/self/task")


class Watch:
    """Measures seconds from when it is made; without /proc, those of the wall."""

    def __init__(self) -> None:
        self._delays = _read_delays_ns()
        self._began = time.monotonic()

    def measure_elapsed_s(self) -> float:
        """Return the seconds since, less what each thread spent waiting for a core meanwhile."""
        elapsed = time.monotonic() - self._began
        held_up = sum(ns - self._delays.get(thread, 0) for thread, ns in _read_delays_ns().items())
        return max(0.0, elapsed - held_up / 1e9)


def read_thread_clock_s() -> float:
    """Read a clock that stands still while this thread could run and the cores were others'.

    For what one thread does, such as a loop: unlike a watch, it leaves out what other threads of
    this process waited for at the same time. Without /proc, it is the wall's.
    """
    try:
        held_up_ns = int(Path("/proc/thread-self/schedstat").read_text().split()[1])
    except (OSError, IndexError):
        held_up_ns = 0
    return time.monotonic() - held_up_ns / 1e9


def _read_delays_ns() -> dict[str, int]:
    """Read how long each thread of this process has waited for a core so far."""
    found = {}
    for thread in THREADS.glob("*"):
        try:
            found[thread.name] = int((thread / "schedstat").read_text().split()[1])
        except (OSError, IndexError):
            continue  # it has ended, or this kernel does not count
    return found


def _choose_pause_s(began: float) -> float:
    """Choose how long to sleep before a condition is looked at again."""
    return min(MAX_POLL_S, max(POLL_S, (time.monotonic() - began) / 10))


def wait_until(
    condition: Callable[[], object], what: str = "", patience_s: float = PATIENCE_S
) -> None:
    """Wait until a condition holds; this and what stands below are all that tests sleep by.

    Args:
        condition: what has to come to pass, brought about by other threads or processes.
        what: its name, for the message.
        patience_s: how long it may take.
    """
    began = time.monotonic()
    while not condition():
        assert time.monotonic() < began + patience_s, f"it did not come to pass in time: {what}"
        time.sleep(_choose_pause_s(began))


async def wait_until_async(condition: Callable[[], object], what: str = "") -> None:
    """Wait on the loop until a condition holds, which may be a coroutine's result."""
    began = time.monotonic()
    while True:
        found = condition()
        if inspect.isawaitable(found):
            found = await found
        if found:
            return
        assert time.monotonic() < began + PATIENCE_S, f"it did not come to pass in time: {what}"
        await asyncio.sleep(_choose_pause_s(began))


def check_stays(condition: Callable[[], object], for_s: float) -> None:
    """Check that a condition holds, and goes on to hold for a while."""
    end = time.monotonic() + for_s
    while time.monotonic() < end:
        assert condition()
        time.sleep(POLL_S)


async def yield_turns(turns: int = 1) -> None:
    """Give the other tasks of the loop so many turns."""
    for _ in range(turns):
        await asyncio.sleep(0)
