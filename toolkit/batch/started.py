"""The source of kernels where none can be forked: each is started ahead of need."""

import tempfile
from pathlib import Path
from shutil import rmtree

from toolkit.batch.kernels import Connection, Kernel, Wanted
from toolkit.batch.spares import Spares, cold


class Started:
    """Keeps processes ready that have started as kernels do anywhere.

    Args:
        spares: how many.
    """

    def __init__(self, spares: int) -> None:
        self.folder = tempfile.mkdtemp(prefix="toolkit-")
        self._spares = Spares(spares, cold, Path(self.folder))

    def start(self, wanted: Wanted) -> tuple[Kernel, Connection]:
        """Return the kernel that was started first."""
        return self._spares.start(wanted)

    def close(self) -> None:
        """Kill what is left, running kernels too."""
        self._spares.close()
        rmtree(self.folder, ignore_errors=True)
