"""A backup of a data directory, made while others use it; the backup is itself a data directory."""

import hashlib
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.store.blob_places.folder import BlobFolder, fsync_paths, get_blob_path
from toolkit.store.blob_places.place import BlobPlace
from toolkit.store.data_dir.location import find_database
from toolkit.store.private_files import create_private_file, make_private_folder, open_private
from toolkit.store.sqlite.connections import open_read_only, translate_errors

PARTIAL_SUFFIX = ".partial"


@dataclass(frozen=True, slots=True)
class BackupResult:
    """The result of a backup.

    Attributes:
        path: the new directory.
        artifacts: how many files of artifacts' bytes; small ones stand in the database.
        size_bytes: the size of all files.
        lost: the SHA-256 of bytes that a record refers to and the store did not have.
        elsewhere: how many are in object storage, and stay there.
    """

    path: Path
    artifacts: int
    size_bytes: int
    lost: tuple[str, ...] = ()
    elsewhere: int = 0

    @classmethod
    def of(cls, path: Path, digests: Sequence[str], lost: Sequence[str], elsewhere: int) -> Self:
        """Describe a copy that is complete.

        Args:
            path: the new directory.
            digests: the SHA-256 of all artifacts' bytes.
            lost: of them, those that were not there.
            elsewhere: how many are in object storage.
        """
        size = sum(each.stat().st_size for each in path.rglob("*") if each.is_file())
        copied = 0 if elsewhere else len(digests) - len(lost)
        return cls(path, copied, size, tuple(lost), elsewhere)


def create_backup(data_dir: Path, target: Path, *, place: BlobPlace | None = None) -> BackupResult:
    """Copy a data directory as it is at one moment; other processes may go on using it.

    Bytes are stored before any record refers to them, so with the records copied first no record
    lacks its bytes. Those in object storage are not copied, but missed if they are not there.

    Args:
        data_dir: the directory to copy.
        target: the new directory; it appears once it is complete, and not before.
        place: where artifacts' bytes are; in `data_dir` by default.

    Raises:
        ServiceError: `UNAVAILABLE` when `data_dir` is none, `target` exists or is in it, or
            the disk is full.
    """
    database = find_database(data_dir)
    if target.resolve().is_relative_to(data_dir.resolve()) and not target.exists():
        raise ServiceError(
            ErrorCode.UNAVAILABLE, f"{target} is in what it would be a copy of; name another place."
        )
    with open_target(target) as partial, translate_errors():
        _copy_records(database, partial / "state.db")
        digests = _list_file_digests(partial / "state.db")
        source = place or BlobFolder(data_dir / "artifacts")
        lost, elsewhere = store_bytes(source, partial, digests)
    return BackupResult.of(target, digests, lost, elsewhere)


@contextmanager
def open_target(target: Path) -> Iterator[Path]:
    """Make a folder to copy to, which gets its name once the block has ended well.

    Args:
        target: the new directory.

    Raises:
        ServiceError: `UNAVAILABLE` when it exists, or the disk is full.
    """
    if target.exists():
        raise ServiceError(ErrorCode.UNAVAILABLE, f"{target} exists; name a new directory.")
    partial = target.with_name(target.name + PARTIAL_SUFFIX)
    shutil.rmtree(partial, ignore_errors=True)
    with translate_errors():
        make_private_folder(partial)
        make_private_folder(partial / "artifacts")
        yield partial
        fsync_paths(*partial.rglob("*"), partial)  # everything, before the copy gets its final name
        partial.replace(target)


def store_bytes(source: BlobPlace, copy: Path, digests: list[str]) -> tuple[list[str], int]:
    """Copy artifacts' bytes into a copy; those in object storage are only missed.

    Args:
        source: where they are.
        copy: the folder to copy to.
        digests: their SHA-256.

    Returns:
        the SHA-256 of those that are lost, and how many are in object storage.
    """
    if source.is_remote:
        stored = {entry.digest for entry in source.list_entries()}
        return [each for each in digests if each not in stored], len(digests)
    return [each for each in digests if not _copy_bytes(source, copy, each)], 0


def _copy_records(database: Path, copy: Path) -> None:
    """Copy all records as of one moment, in a read transaction that blocks no writer."""
    create_private_file(copy)
    with closing(open_read_only(database)) as connection:
        connection.execute("VACUUM INTO ?", (str(copy),))  # an empty file may be there


def _list_file_digests(database: Path) -> list[str]:
    """List the digests that records refer to and that are files of their own."""
    with closing(sqlite3.connect(database)) as connection:
        in_files = "NOT deleted AND content IS NULL"
        rows = connection.execute(f"SELECT DISTINCT sha256 FROM artifacts WHERE {in_files}")  # noqa: S608
        return [str(row[0]) for row in rows]


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
