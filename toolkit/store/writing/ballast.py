"""Ballast: disk space that is held for the results of calls in flight.

A full disk refuses every write, also the result of a call that was paid meanwhile. So before a call
begins, the engine takes up as much space as its result may need, and nothing is called without it.
When a write then fails for want of space, the ballast is dropped: the file system has that space
back before the same write is tried again. No call begins until the ballast is whole again.

The space cannot be taken up in the place where the result will be. SQLite appends a transaction to
its write-ahead log, and PostgreSQL writes to its own log and to new versions of rows: both need
*new* space even to overwrite a row, and space within the database that a transaction freed can be
used only after a checkpoint or a vacuum. A file that gives its space back to the file system serves
log, tables, indexes and artifacts alike. Storage engines know this as a ballast file, such as
https://www.cockroachlabs.com/docs/stable/cluster-setup-troubleshooting#automatic-ballast-files

In the moment between, another program may take the space. The result then waits in memory.
"""

import errno
import os
import weakref
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryFile

from toolkit.store.private_files import make_private_folder

BLOCK = bytes(64 * 1024)
# File systems that cannot allocate without writing.
_UNSUPPORTED = frozenset({errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS})


class BallastFile:
    """Disk space reserved by a file without a name, which the system deletes with this process."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._handle: int | None = None
        self._close: Callable[[], object] = lambda: None
        self._size_bytes = 0

    @property
    def size_bytes(self) -> int:
        """The reserved space, in bytes."""
        return self._size_bytes

    def grow(self, size_bytes: int) -> None:
        """Reserve at least `size_bytes` of disk space.

        Raises:
            OSError: there is no room for them; the space reserved before stays.
        """
        if size_bytes <= self._size_bytes:
            return
        if self._handle is None:
            make_private_folder(self._folder)
            with TemporaryFile(dir=self._folder) as file:
                self._handle = os.dup(file.fileno())
            self._close = weakref.finalize(self, os.close, self._handle)
        try:
            _allocate(self._handle, self._size_bytes, size_bytes)
        except BaseException:
            os.ftruncate(self._handle, self._size_bytes)
            raise
        self._size_bytes = size_bytes

    def drop(self) -> bool:
        """Release all reserved space; return whether there was any."""
        if self._handle is None or not self._size_bytes:
            return False
        os.ftruncate(self._handle, 0)
        self._size_bytes = 0
        return True

    def close(self) -> None:
        """Release all reserved space, and close the file."""
        self._close()
        self._handle, self._size_bytes = None, 0


def _allocate(handle: int, start: int, end: int) -> None:
    """Allocate disk space to a file from `start` to `end`; a file with holes would have none."""
    if hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(handle, start, end - start)
        except OSError as error:
            if error.errno not in _UNSUPPORTED:
                raise
        else:
            return
    os.lseek(handle, start, os.SEEK_SET)
    while start < end:
        count = os.write(handle, BLOCK[: end - start])
        if not count:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        start += count
