"""Files and folders that only their owner can read, under any umask.

A data directory has prompts, answers and digests of keys, so no other user of the machine reads it.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows
    fcntl = None  # type: ignore[assignment]

CAN_LOCK = fcntl is not None
FILE_MODE, FOLDER_MODE = 0o600, 0o700
# Files and folders of a data directory, and the beginning of the names of its database.
_OWN_NAMES = frozenset({"artifacts", "owners", "place", "checkpoint.lock"})
_DATABASE_PREFIX = "state.db"


def make_private_folder(path: Path) -> None:
    """Make a folder of its owner alone, with the parents that are missing.

    A folder that exists keeps its mode.

    Raises:
        OSError: the folder cannot be made.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        path.mkdir(FOLDER_MODE)
    except FileExistsError:
        if not path.is_dir():
            raise
        return
    path.chmod(FOLDER_MODE)  # the umask may have taken rights of the owner's


def open_private(path: str, flags: int) -> int:
    """Open a file, and take the rights of others from it: an opener for `open`."""
    handle = os.open(path, flags, FILE_MODE)
    if hasattr(os, "fchmod") and stat.S_IMODE(os.fstat(handle).st_mode) != FILE_MODE:
        with suppress(PermissionError):  # another user owns the file
            os.fchmod(handle, FILE_MODE)
    return handle


def create_private_file(path: Path) -> None:
    """Create an empty file of its owner alone, unless the file exists.

    SQLite gives its log and index the mode of the database.
    """
    with suppress(FileExistsError):
        os.close(open_private(str(path), os.O_WRONLY | os.O_CREAT | os.O_EXCL))


def is_writable(folder: Path) -> bool:
    """Check whether the permissions of a folder and its disk allow new files."""
    if hasattr(os, "statvfs") and os.statvfs(folder).f_flag & os.ST_RDONLY:
        return False
    return os.access(folder, os.W_OK)


def lock_file(file: IO[bytes], *, wait: bool = False) -> bool:
    """Lock a file until it is closed or the process dies; return False if another has it locked."""
    if fcntl is None:  # pragma: no cover - Windows
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def make_data_dir_private(data_dir: Path) -> None:
    """Take the rights of others from a data directory, and from all that is in it.

    A folder with other files in it, such as a home directory, keeps its own mode. Files of other
    users keep theirs, and links are not followed.
    """
    if os.name == "nt":
        return
    paths = [
        path
        for path in data_dir.iterdir()
        if path.name in _OWN_NAMES or path.name.startswith(_DATABASE_PREFIX)
    ]
    if len(paths) == sum(1 for _ in data_dir.iterdir()):
        _chmod_private(data_dir)
    for path in paths:
        if not _chmod_private(path):
            continue  # made private already, and all that is in it was made so
        for inner in _walk(path):
            _chmod_private(inner)


def _walk(folder: Path) -> Iterator[Path]:
    """List all files and folders in a folder, without following links."""
    for parent, folders, files in os.walk(folder):
        yield from (Path(parent, name) for name in (*folders, *files))


def _chmod_private(path: Path) -> bool:
    """Take the rights of others from a file or folder; return whether there were any."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:  # another process deleted it meanwhile
        return False
    private_mode = FOLDER_MODE if stat.S_ISDIR(mode) else FILE_MODE
    if stat.S_ISLNK(mode) or stat.S_IMODE(mode) & 0o077 == 0:
        return False
    with suppress(PermissionError, FileNotFoundError):  # another user's, or deleted meanwhile
        path.chmod(private_mode)
    return True
