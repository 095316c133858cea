"""A disk of a few megabytes that a test may fill or make read-only."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest


class Disk:
    """A file system in memory, mounted for a test."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._filler = path / "filler"

    def fill(self, leave_bytes: int = 0) -> None:
        """Fill the disk, except for some bytes."""
        free = os.statvfs(self.path)
        size = free.f_bavail * free.f_frsize - leave_bytes
        # Another process may fill the disk first; it is full in any case.
        with suppress(OSError), self._filler.open("ab", buffering=0) as file:
            file.write(bytes(max(0, size)))

    def empty(self) -> None:
        """Free the space."""
        self._filler.unlink(missing_ok=True)

    def remount(self, option: str) -> None:
        """Mount the disk again, with an option such as `ro` or `rw`."""
        command = ["mount", "-o", f"remount,{option}", str(self.path)]
        subprocess.run(command, check=True, capture_output=True)


@contextmanager
def small_disk(path: Path, megabytes: int) -> Iterator[Disk]:
    """Mount a small disk; skip the test if this user may not mount."""
    path.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(path)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("mounting a small disk is not permitted here")
    try:
        yield Disk(path)
    finally:
        subprocess.run(["umount", "-l", str(path)], check=False, capture_output=True)
