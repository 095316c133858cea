"""A backup of a data directory, or a database, made while others use it."""

import hashlib
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from toolkit.store.blob_places.folder import fsync_paths, get_blob_path
from toolkit.store.blob_places.place import BlobPlace
from toolkit.store.changes import make_unusable_error
from toolkit.store.maintenance.upkeep_database import UpkeepDatabase
from toolkit.store.private_files import make_private_folder, open_private
from toolkit.store.sqlite.connections import translate_errors

PARTIAL_SUFFIX = ".partial"


@dataclass(frozen=True, slots=True)
class BackupResult:
    """The result of a backup.

    Attributes:
        artifacts: number of files with artifacts' bytes; small artifacts are in the database.
        lost: SHA-256 of each artifact that a record refers to and the store did not have.
        elsewhere: number of artifacts that are in object storage, and stay there.
    """

    path: Path
    artifacts: int
    size_bytes: int
    lost: tuple[str, ...] = ()
    elsewhere: int = 0


def check_target(target: Path, data_dir: Path) -> None:
    """Refuse to copy a data directory into itself; called before opening it, which makes files.

    Raises:
        ServiceError: `UNAVAILABLE`.
    """
    if target.resolve().is_relative_to(data_dir.resolve()) and not target.exists():
        raise make_unusable_error(
            f"The backup {target} would be within the data directory: choose another directory."
        )


def create_backup(database: UpkeepDatabase, target: Path, place: BlobPlace) -> BackupResult:
    """Copy a database and its artifacts as they are at one moment; engines may go on using it.

    Bytes are stored before any record refers to them, so with the records copied first no record
    lacks its bytes. Those in object storage are not copied. The result lists missing bytes.

    Args:
        target: new directory; it appears only when it is complete.

    Raises:
        ServiceError: `UNAVAILABLE` when it cannot be copied, `target` exists, or the disk is full.
    """
    if explanation := database.examine_place(place).explanation:
        raise make_unusable_error(explanation)
    with _open_target(target) as partial:
        digests = database.copy_records(partial)
        if place.is_remote:
            remote_digests = {entry.digest for entry in place.list_entries()}
            lost = [digest for digest in digests if digest not in remote_digests]
        else:
            lost = [digest for digest in digests if not _copy_bytes(place, partial, digest)]
    elsewhere = len(digests) if place.is_remote else 0
    copied = 0 if place.is_remote else len(digests) - len(lost)
    size = sum(path.stat().st_size for path in target.rglob("*") if path.is_file())
    return BackupResult(target, copied, size, tuple(lost), elsewhere)


@contextmanager
def _open_target(target: Path) -> Iterator[Path]:
    """Make a folder to copy to: named if the block ends well, and removed otherwise."""
    if target.exists():
        raise make_unusable_error(f"{target} exists already: choose a new directory.")
    partial = target.with_name(target.name + PARTIAL_SUFFIX)
    shutil.rmtree(partial, ignore_errors=True)
    try:
        with translate_errors():
            make_private_folder(partial)
            make_private_folder(partial / "artifacts")
            yield partial
            # Everything, before the copy gets its final name.
            fsync_paths(*partial.rglob("*"), partial)
            partial.replace(target)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def _copy_bytes(source: BlobPlace, copy: Path, sha256: str) -> bool:
    """Copy one artifact's bytes; return whether they were present and intact."""
    target = copy / "artifacts" / get_blob_path(sha256)
    digest = hashlib.sha256()
    try:
        size = source.find_size(sha256)
        make_private_folder(target.parent)
        with open(target, "wb", opener=open_private) as file:
            for start in range(0, size, source.chunk_bytes):
                piece = source.read(sha256, start, start + source.chunk_bytes)
                digest.update(piece)
                file.write(piece)
    except FileNotFoundError:
        return False
    if digest.hexdigest() != sha256:
        target.unlink()
        return False
    return True
