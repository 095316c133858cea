"""Owners of leases: processes, each known by a lock file that the system frees when it dies."""

import hashlib
import platform
import secrets
from contextlib import suppress
from pathlib import Path
from typing import IO

from toolkit.store.private_files import make_private_folder, open_private

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows: a dead owner is known by its lease alone
    fcntl = None  # type: ignore[assignment]


class LeaseOwner:
    """One opening of the store, under an id of its own."""

    def __init__(self, data_dir: Path) -> None:
        self._folder = data_dir / "owners"
        make_private_folder(self._folder)
        self.id = secrets.token_hex(8)
        self._lock: IO[bytes] | None = self._lock_own()

    def _get_lock_path(self, owner: str) -> Path:
        return self._folder / f"{owner}.lock"

    def _lock_own(self) -> IO[bytes]:
        """Open and lock this owner's file; whoever only tries the lock has it for no time."""
        file = open(self._get_lock_path(self.id), "ab", opener=open_private)  # noqa: SIM115
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX)
        return file

    def _try_lock(self, owner: str) -> IO[bytes] | None:
        """Open and lock a lock file; return None when another process holds it."""
        file = open(self._get_lock_path(owner), "ab", opener=open_private)  # noqa: SIM115
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                file.close()
                return None
        return file

    def is_stale(self, owner: str) -> bool:
        """Tell whether the process of another owner has ended, as far as this machine knows."""
        if owner == self.id or fcntl is None:
            return False
        if not self._get_lock_path(owner).exists():
            return True
        lock = self._try_lock(owner)
        if lock is None:
            return False
        lock.close()
        self._get_lock_path(owner).unlink(missing_ok=True)
        return True

    def close(self) -> None:
        """Release the id."""
        if self._lock is not None:
            self._get_lock_path(self.id).unlink(missing_ok=True)
            self._lock.close()
            self._lock = None


class SharedOwner(LeaseOwner):
    """One opening of a database that other machines have open, too.

    Its id begins with the place of its lock file: the owners of other places have theirs elsewhere,
    and are known to be dead only when their leases end.
    """

    def __init__(self, data_dir: Path) -> None:
        self._folder = data_dir / "owners"
        make_private_folder(self._folder)
        self._place = _compute_place(self._folder)
        self.id = self._place + secrets.token_hex(8)
        self._lock = self._try_lock(self.id)

    def is_stale(self, owner: str) -> bool:
        """Tell whether the process of another owner has ended, as far as this machine knows."""
        return owner.startswith(self._place) and super().is_stale(owner)


class Onlooker(LeaseOwner):
    """An opening of the store that owns nothing.

    Args:
        data_dir: of all owners; None where leases alone tell who has gone.
    """

    def __init__(self, data_dir: Path | None) -> None:
        self._data_dir = data_dir
        self.id = secrets.token_hex(8)

    def is_stale(self, owner: str) -> bool:
        """Tell whether the process of an owner has ended, as far as this machine knows."""
        return self._data_dir is not None and owner not in find_active_owners(self._data_dir)


def _compute_place(folder: Path) -> str:
    """Compute a short text from a machine and a folder of it, as long as it runs."""
    found = folder.stat()
    boot = Path("/proc/sys/kernel/random/boot_id")
    started = boot.read_text() if boot.exists() else ""
    facts = f"{platform.node()} {started} {found.st_dev} {found.st_ino}"
    return hashlib.sha256(facts.encode()).hexdigest()[:8] + "-"


def find_active_owners(data_dir: Path) -> set[str]:
    """Return the owners that have a data directory open, as far as this machine knows."""
    found = set()
    for path in (data_dir / "owners").glob("*.lock"):
        # An owner that closes meanwhile deletes its file.
        # For reading: the file may not be writable for a process that only looks.
        with suppress(FileNotFoundError), path.open("rb") as file:
            if fcntl is None:  # pragma: no cover - Windows
                continue
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                found.add(path.stem)
    return found
