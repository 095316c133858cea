"""The choice of the source of warm kernels for a machine."""

import os
import sys

from toolkit.batch.kernel.protocols import LAUNCHER, KernelRequest, KernelSource
from toolkit.batch.records import IN_BATCH_VARIABLE


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
    from toolkit.batch.kernel.processes import ProcessKernelSource

    return ProcessKernelSource(spares)


def prepare_python(source: KernelSource, preload: tuple[str, ...]) -> None:
    """Have a source begin with kernels of this very Python, as papermill will want them."""
    environment = {**os.environ, IN_BATCH_VARIABLE: "1"}
    command = (sys.executable, "-m", LAUNCHER)
    source.prepare(KernelRequest(command, os.getcwd(), environment, preload))
