"""Waiting for conditions, and measuring time without the load of other programs on this machine.

The machine may be busy. So a wait has a long timeout, which only matters for tests that hang. A
speed is measured by a watch that excludes the time in which threads of this process were ready to
run but had no core.
"""

import asyncio
import inspect
import time
from collections.abc import Callable
from pathlib import Path

PATIENCE_S = 120.0
# Polling costs more than waiting, so a long wait notices its condition up to 50 ms late.
POLL_S, MAX_POLL_S = 0.01, 0.05
THREADS = Path("/proc/self/task")


class Watch:
    """Measures seconds from its creation; without /proc, seconds of the wall clock."""

    def __init__(self) -> None:
        self._delays = _read_delays_ns()
        self._began = time.monotonic()

    def measure_elapsed_s(self) -> float:
        """Return the elapsed seconds, less the time that each thread waited for a core."""
        elapsed = time.monotonic() - self._began
        held_up = sum(ns - self._delays.get(thread, 0) for thread, ns in _read_delays_ns().items())
        return max(0.0, elapsed - held_up / 1e9)


def read_thread_clock_s() -> float:
    """Read a clock that excludes the time in which this thread was ready to run but had no core.

    It suits the work of a single thread, such as a loop: unlike a watch, it ignores the waits of
    other threads of this process. Without /proc it is the wall clock.
    """
    try:
        held_up_ns = int(Path("/proc/thread-self/schedstat").read_text().split()[1])
    except (OSError, IndexError):
        held_up_ns = 0
    return time.monotonic() - held_up_ns / 1e9


def _read_delays_ns() -> dict[str, int]:
    """Read the time that each thread of this process has waited for a core so far."""
    delays = {}
    for thread in THREADS.glob("*"):
        try:
            delays[thread.name] = int((thread / "schedstat").read_text().split()[1])
        except (OSError, IndexError):
            continue  # the thread has ended, or this kernel does not count
    return delays


def _choose_pause_s(began: float) -> float:
    """Choose the seconds to sleep before checking a condition again."""
    return min(MAX_POLL_S, max(POLL_S, (time.monotonic() - began) / 10))


def wait_until(
    condition: Callable[[], object], what: str = "", patience_s: float = PATIENCE_S
) -> None:
    """Wait until a condition holds; tests sleep only by this function and the functions below.

    Args:
        condition: condition that other threads or processes make true.
        what: description of the condition, for the error message.
        patience_s: timeout in seconds.
    """
    began = time.monotonic()
    while not condition():
        assert time.monotonic() < began + patience_s, f"timeout while waiting: {what}"
        time.sleep(_choose_pause_s(began))


async def wait_until_async(condition: Callable[[], object], what: str = "") -> None:
    """Wait on the loop until a condition holds, which may return an awaitable."""
    began = time.monotonic()
    while True:
        holds = condition()
        if inspect.isawaitable(holds):
            holds = await holds
        if holds:
            return
        assert time.monotonic() < began + PATIENCE_S, f"timeout while waiting: {what}"
        await asyncio.sleep(_choose_pause_s(began))


def check_stays(condition: Callable[[], object], for_s: float) -> None:
    """Check that a condition holds, and continues to hold for a while."""
    end = time.monotonic() + for_s
    while time.monotonic() < end:
        assert condition()
        time.sleep(POLL_S)


async def yield_turns(turns: int = 1) -> None:
    """Let the other tasks of the loop run for some turns."""
    for _ in range(turns):
        await asyncio.sleep(0)
