"""The choice of the source of warm kernels for a machine, and the one that forks none."""

import os
import sys
import tempfile
from pathlib import Path
from shutil import rmtree

from toolkit.batch.kernel.pool import KernelPool, launch_cold
from toolkit.batch.kernel.protocols import (
    LAUNCHER,
    ConnectionInfo,
    Kernel,
    KernelRequest,
    KernelSource,
)
from toolkit.batch.records import IN_BATCH_VARIABLE


class ProcessKernelSource:
    """Keeps processes ready that have started as kernels do anywhere.

    Args:
        spares: how many.
    """

    def __init__(self, spares: int) -> None:
        self.folder = tempfile.mkdtemp(prefix="toolkit-")
        self._pool = KernelPool(spares, launch_cold, Path(self.folder))

    def prepare(self, wanted: KernelRequest) -> None:
        """Do nothing: a process would be wasted where the kernel turns out to be another."""

    def start(self, wanted: KernelRequest) -> tuple[Kernel, ConnectionInfo]:
        """Return the kernel that was started first."""
        return self._pool.start(wanted)

    def close(self) -> None:
        """Kill what is left, running kernels too."""
        self._pool.close()
        rmtree(self.folder, ignore_errors=True)


def can_fork() -> bool:
    """Tell whether processes can be forked here; on macOS its own frameworks do not survive it."""
    return hasattr(os, "fork") and sys.platform != "darwin"


def open_kernel_source(*, fork: bool, spares: int, renew_after: int) -> KernelSource:
    """Open the fastest source this machine has.

    Args:
        fork: whether it may fork; without, each kernel is a process started ahead of need.
        spares: how many kernels to keep ready; of those that are forked, one at most.
        renew_after: after how many forks the process they are forked from is replaced.
    """
    if fork and can_fork():
        from toolkit.batch.kernel.fork_server import ForkedKernelSource

        return ForkedKernelSource(spares=spares, renew_after=renew_after)
    return ProcessKernelSource(spares)


def prepare_python(source: KernelSource, preload: tuple[str, ...]) -> None:
    """Have a source begin with kernels of this very Python, as papermill will want them."""
    environment = {**os.environ, IN_BATCH_VARIABLE: "1"}
    command = (sys.executable, "-m", LAUNCHER)
    source.prepare(KernelRequest(command, os.getcwd(), environment, preload))
