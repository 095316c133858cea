"""Memory, CPU time and open files of a process, sizes of folders, and statistics of figures."""

import os
import resource
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

MB = 1e6
# Returns seconds of the wall clock, or of the CPU time of this process.
Clock = Callable[[], float]
_STATUS = Path("/proc/self/status")
_OPEN = Path("/proc/self/fd")
# The clock of a whole process, in the kernel's numbering.
_CPU_CLOCK = 2


def peak_mb() -> float:
    """Return the peak resident memory of this process, in MB.

    `getrusage` is used only without `/proc`, because a child process inherits its figure.
    """
    if _STATUS.exists():
        return _read_status_mb("VmHWM")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / MB if sys.platform == "darwin" else peak * 1024 / MB


def resident_mb() -> float:
    """Return the resident memory of this process in MB, or its peak without `/proc`."""
    return _read_status_mb("VmRSS") if _STATUS.exists() else peak_mb()


def read_resident_mb(pid: int) -> float:
    """Read the memory that another process has resident, in MB."""
    return _read_status_mb("VmRSS", Path(f"/proc/{pid}/status"))


def read_peak_mb(pid: int) -> float:
    """Read the peak resident memory of another process, in MB."""
    return _read_status_mb("VmHWM", Path(f"/proc/{pid}/status"))


def read_cpu_s(pid: int) -> float:
    """Read the CPU time that another process has used so far, in seconds.

    The clock id is computed as `clock_getcpuclockid` of the C library does: `/proc` counts in steps
    of 10 ms only, which is the time of many requests.
    """
    return time.clock_gettime((~pid << 3) | _CPU_CLOCK)


def _read_status_mb(name: str, status: Path = _STATUS) -> float:
    row = next(line for line in status.read_text().splitlines() if line.startswith(name))
    return int(row.split()[1]) * 1024 / MB


def open_files() -> tuple[int, int]:
    """Return the number of open file descriptors: sockets, and all other files."""
    sockets = files = 0
    for path in _OPEN.iterdir() if _OPEN.exists() else ():
        try:
            target = os.readlink(path)
        except OSError:
            continue  # the descriptor of the listing itself
        if target.startswith("socket:"):
            sockets += 1
        else:
            files += 1
    return sockets, files


def folder_bytes(folder: Path, *names: str) -> int:
    """Return the total bytes of the files in a folder, or only of the files with given names."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return sum(path.stat().st_size for path in files if not names or path.name in names)


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which a share of the values lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def slope(values: Sequence[float]) -> float:
    """Return the growth from one value to the next, by least squares."""
    if len(values) < 2:
        return 0.0
    return statistics.linear_regression(range(len(values)), values).slope


def spread(values: Sequence[float], digits: int = 4) -> dict[str, object]:
    """Return the number of rounds of a figure, and its lowest and highest value."""
    return {
        "rounds": len(values),
        "min": round(min(values), digits),
        "max": round(max(values), digits),
    }
