"""The source of kernels where none can be forked: each is started ahead of need."""

import tempfile
from pathlib import Path
from shutil import rmtree

from toolkit.batch.kernel.pool import KernelPool, launch_cold
from toolkit.batch.kernel.protocols import ConnectionInfo, Kernel, KernelRequest


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
