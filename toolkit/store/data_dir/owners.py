"""Owners of leases: processes, each known by a lock file that the system frees when it dies."""

import hashlib
import platform
import secrets
from contextlib import suppress
from pathlib import Path
from typing import IO

from toolkit.store.private_files import CAN_LOCK, lock_file, make_private_folder, open_private


class LeaseOwner:
    """The owner of the leases of one opening of the store: an id, and a lock file for it."""

    def __init__(self, data_dir: Path, *, place: str = "") -> None:
        self._folder = data_dir / "owners"
        make_private_folder(self._folder)
        self.id = f"{place}{secrets.token_hex(8)}"
        # A process that only tests the lock holds it for a moment.
        file = open(self._get_lock_path(self.id), "ab", opener=open_private)  # noqa: SIM115
        lock_file(file, wait=True)
        self._lock: IO[bytes] | None = file

    def _get_lock_path(self, owner: str) -> Path:
        return self._folder / f"{owner}.lock"

    def is_stale(self, owner: str) -> bool:
        """Check whether the process of another owner is known on this machine to have ended."""
        if owner == self.id or not CAN_LOCK:  # on Windows, only its lease shows that an owner died
            return False
        path = self._get_lock_path(owner)
        if not path.exists():
            return True
        with open(path, "ab", opener=open_private) as file:
            if not lock_file(file):
                return False
        path.unlink(missing_ok=True)
        return True

    def close(self) -> None:
        """Delete and unlock the lock file, so that this owner counts as ended."""
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
        make_private_folder(data_dir / "owners")
        self._place = _compute_place(data_dir / "owners")
        super().__init__(data_dir, place=self._place)

    def is_stale(self, owner: str) -> bool:
        """Check whether the process of another owner is known on this machine to have ended."""
        return owner.startswith(self._place) and super().is_stale(owner)


class Onlooker(LeaseOwner):
    """An opening of the store that owns nothing.

    Args:
        data_dir: data directory of all owners; None if only leases show which owners died.
    """

    def __init__(self, data_dir: Path | None) -> None:
        self._data_dir = data_dir
        self.id = secrets.token_hex(8)

    def is_stale(self, owner: str) -> bool:
        """Check whether the process of an owner is known on this machine to have ended."""
        return self._data_dir is not None and owner not in find_active_owners(self._data_dir)


def _compute_place(folder: Path) -> str:
    """Compute a short text from a folder and its machine; it changes when the machine restarts."""
    status = folder.stat()
    boot = Path("/proc/sys/kernel/random/boot_id")
    started = boot.read_text() if boot.exists() else ""
    facts = f"{platform.node()} {started} {status.st_dev} {status.st_ino}"
    return hashlib.sha256(facts.encode()).hexdigest()[:8] + "-"


def find_active_owners(data_dir: Path) -> set[str]:
    """Return the owners known on this machine to have a data directory open."""
    owners = set()
    for path in (data_dir / "owners").glob("*.lock"):
        # An owner that closes meanwhile deletes its file.
        # For reading: the file may not be writable for a process that only looks.
        with suppress(FileNotFoundError), path.open("rb") as file:
            if not lock_file(file):
                owners.add(path.stem)
    return owners
