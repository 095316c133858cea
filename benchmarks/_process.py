"""What the system says of this process: memory, open files, and the sizes of folders."""

import os
import resource
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

MB = 1e6
# Says how many seconds have passed, by whatever is to count: the wall, or this process's CPU.
Clock = Callable[[], float]
_STATUS = Path("/proc/self/status")
_OPEN = Path("/proc/self/fd")
# Of a whole process, as the scheduler counts it.
_CPU_CLOCK = 2


def peak_mb() -> float:
    """The most memory that this process has had resident, in MB.

    Not by `getrusage` where there is another way: that figure is handed on to a child.
    """
    if _STATUS.exists():
        return _read_status_mb("VmHWM")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / MB if sys.platform == "darwin" else peak * 1024 / MB


def resident_mb() -> float:
    """The memory that this process has resident now, in MB; its peak where nothing else is told."""
    return _read_status_mb("VmRSS") if _STATUS.exists() else peak_mb()


def read_resident_mb(pid: int) -> float:
    """Read the memory that another process has resident, in MB."""
    return _read_status_mb("VmRSS", Path(f"/proc/{pid}/status"))


def read_cpu_s(pid: int) -> float:
    """Read the CPU time that another process has used so far, in seconds.

    Its clock is read as `clock_getcpuclockid` of the C library names it: `/proc` counts in steps of
    10 ms only, which are many requests.
    """
    return time.clock_gettime((~pid << 3) | _CPU_CLOCK)


def _read_status_mb(name: str, status: Path = _STATUS) -> float:
    line = next(one for one in status.read_text().splitlines() if one.startswith(name))
    return int(line.split()[1]) * 1024 / MB


def open_files() -> tuple[int, int]:
    """How many file descriptors are open: sockets, and all others."""
    sockets = others = 0
    for each in _OPEN.iterdir() if _OPEN.exists() else ():
        try:
            target = os.readlink(each)
        except OSError:
            continue  # the one that the listing itself had open
        if target.startswith("socket:"):
            sockets += 1
        else:
            others += 1
    return sockets, others


def folder_bytes(folder: Path, *names: str) -> int:
    """The bytes of the files in a folder, or of those with some names."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return sum(path.stat().st_size for path in files if not names or path.name in names)


def percentile(values: Sequence[float], share: float) -> float:
    """The value that `share` of the values are not above."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def slope(values: Sequence[float]) -> float:
    """How much values grow from one to the next, by least squares."""
    if len(values) < 2:
        return 0.0
    return statistics.linear_regression(range(len(values)), values).slope


def spread(values: Sequence[float], digits: int = 4) -> dict[str, object]:
    """The noise of a figure: how many rounds it had, and the least and most of them."""
    return {
        "rounds": len(values),
        "min": round(min(values), digits),
        "max": round(max(values), digits),
    }
