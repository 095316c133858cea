"""A disk of a few megabytes for a test to fill, to make read-only, and to have back."""

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
        """Take the space that is left, but for some."""
        free = os.statvfs(self.path)
        size = free.f_bavail * free.f_frsize - leave_bytes
        # Where somebody else has taken some of it meanwhile, it is full all the same.
        with suppress(OSError), self._filler.open("ab", buffering=0) as file:
            file.write(bytes(max(0, size)))

    def empty(self) -> None:
        """Give the space back."""
        self._filler.unlink(missing_ok=True)

    def remount(self, option: str) -> None:
        """Mount it again, such as `ro` or `rw`."""
        command = ["mount", "-o", f"remount,{option}", str(self.path)]
        subprocess.run(command, check=True, capture_output=True)


@contextmanager
def small_disk(path: Path, megabytes: int) -> Iterator[Disk]:
    """A small disk at a new folder; the test is skipped where nobody may mount one."""
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
