"""Processes that are slowed down to a part of a core, as if there were more cores than there are.

Linux's control groups (version 1 or 2) give a process so many microseconds of each twentieth of a
second. A process that is out of time in the middle of a transaction holds it up for the rest
of that period, which none on a core of its own does: what is measured is rather too little.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

PERIOD_US = 50_000
_VERSION_1 = Path("/sys/fs/cgroup/cpu")
_VERSION_2 = Path("/sys/fs/cgroup")


def can_slow_down() -> bool:
    """Tell whether this machine lets this user slow processes down."""
    if os.access(_VERSION_1 / "cpu.cfs_quota_us", os.R_OK):
        return os.access(_VERSION_1, os.W_OK)
    enabled = _VERSION_2 / "cgroup.subtree_control"
    return os.access(enabled, os.W_OK) and "cpu" in enabled.read_text().split()


@contextmanager
def slow_down(pids: Sequence[int], share: float) -> Iterator[None]:
    """Give each process so much of a core at most, for as long as the block runs.

    Args:
        pids: of the processes.
        share: of one core, from 0 to 1.

    Raises:
        OSError: this machine does not let this user do so.
    """
    with ExitStack() as stack:
        for pid in pids:
            stack.enter_context(_open_group(pid, round(share * PERIOD_US)))
        yield


@contextmanager
def _open_group(pid: int, quota_us: int) -> Iterator[None]:
    is_first = (_VERSION_1 / "cpu.cfs_quota_us").exists()
    root = _VERSION_1 if is_first else _VERSION_2
    group = root / f"toolkit-benchmark-{pid}"
    group.mkdir()
    try:
        if is_first:
            (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (group / "cpu.cfs_quota_us").write_text(str(quota_us))
        else:
            (group / "cpu.max").write_text(f"{quota_us} {PERIOD_US}")
        (group / "cgroup.procs").write_text(str(pid))
        yield
    finally:
        if Path(f"/proc/{pid}").exists():
            (root / "cgroup.procs").write_text(str(pid))
        group.rmdir()
