"""A folder of artifacts' bytes, which other processes may use at the same time."""

import os
import platform
import re
import secrets
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.store.blob_places.place import MARK_NAME, BlobEntry, HeldBlob, decode_mark
from toolkit.store.content import CHUNK_BYTES, Content, iter_chunks
from toolkit.store.private_files import make_private_folder, open_private
from toolkit.store.writing.ballast import BallastFile

_DIGEST = re.compile(r"[0-9a-f]{64}")


class BlobFolder:
    """A folder with a file for each SHA-256.

    Args:
        synced: whether each file is on the disk before it counts as stored.
    """

    is_remote = False
    chunk_bytes = CHUNK_BYTES

    def __init__(self, path: Path, *, synced: bool = False, is_default: bool = False) -> None:
        self._path = path
        self.is_default = is_default
        self.name = f"{platform.node()}:{path.absolute()}"  # another machine has another folder
        self._synced = synced
        self.ballast = BallastFile(path)

    def write(self, digest: str, data: Content) -> None:
        """Store bytes whole or not at all; if they are stored already, only renew their time."""
        # Under a name of its own first, then renamed: a crash leaves all of it or nothing.
        target = self._path / get_blob_path(digest)
        if _touch_existing(target, len(data)):
            return
        new = not target.parent.exists()
        make_private_folder(self._path)
        make_private_folder(target.parent)
        unfinished = target.with_name(f".{secrets.token_hex(8)}")
        try:
            self._write_chunks(unfinished, data)
        except OSError:
            unfinished.unlink(missing_ok=True)  # it takes up space, and space may be short
            raise
        unfinished.replace(target)
        if self._synced:
            # After a power cut a file without a directory entry would be lost.
            fsync_paths(target.parent, *((self._path, self._path.parent) if new else ()))

    def _write_chunks(self, path: Path, data: Content) -> None:
        with open(path, "wb", opener=open_private) as file:
            for piece in iter_chunks(data):
                file.write(piece)
            if self._synced:
                file.flush()
                os.fsync(file.fileno())

    def read(self, digest: str, start: int, end: int | None) -> bytes:
        """Read the bytes from `start` up to, but not including, `end`."""
        with (self._path / get_blob_path(digest)).open("rb") as file:
            file.seek(start)
            return file.read(-1 if end is None else max(0, end - start))

    def find_size(self, digest: str) -> int:
        """Find how many bytes are stored under a SHA-256."""
        return (self._path / get_blob_path(digest)).stat().st_size

    def hold(self, digest: str, min_age_s: float) -> HeldBlob | None:
        """Hide a file before its deletion by renaming it; return None if it does not exist.

        Writers of the same bytes therefore write them again meanwhile.
        """
        target = self._path / get_blob_path(digest)
        hidden_path = target.with_name(f".{secrets.token_hex(8)}")
        try:
            target.replace(hidden_path)
        except FileNotFoundError:
            return None
        is_old = time.time() - hidden_path.stat().st_mtime >= min_age_s
        return HeldBlob(is_old, hidden_path.unlink, partial(hidden_path.replace, target))

    def list_entries(self) -> Iterator[BlobEntry]:
        """List all files of artifacts, and leftovers of interrupted writes."""
        for path in self._path.glob("*/*"):
            try:
                status = path.stat()
            except FileNotFoundError:  # deleted since
                continue
            digest = path.parent.name + path.name
            blob_digest = digest if _DIGEST.fullmatch(digest) else None
            name = f"{path.parent.name}/{path.name}"
            yield BlobEntry(name, blob_digest, status.st_size, time.time() - status.st_mtime)

    def remove_leftover(self, name: str) -> None:
        """Remove the leftover of an interrupted write."""
        (self._path / name).unlink(missing_ok=True)

    def make_link(self, digest: str, seconds: int, headers: dict[str, str]) -> str:  # noqa: ARG002 - a place's
        """Refuse to make a URL, as a folder has none.

        Raises:
            RequestError: `INVALID_REQUEST`.
        """
        raise make_unlinkable_error()

    def read_mark(self) -> str | None:
        """Read the mark that names the folder's database; return None if it has no mark."""
        try:
            return decode_mark((self._path / MARK_NAME).read_bytes())
        except FileNotFoundError:
            return None

    def write_mark(self, mark: str, *, replace: bool) -> None:
        """Mark the folder as a database's; keep an existing mark unless `replace` is true."""
        make_private_folder(self._path)
        try:
            with open(
                self._path / MARK_NAME,
                "w" if replace else "x",
                encoding="ascii",
                opener=open_private,
            ) as file:
                file.write(f"{mark}\n")
        except FileExistsError:
            pass

    def close(self) -> None:
        """Release the disk space that is reserved for results."""
        self.ballast.close()


def make_unlinkable_error() -> RequestError:
    """Make the error for artifact storage that offers no URLs of its bytes."""
    return RequestError(
        ErrorCode.INVALID_REQUEST,
        "Presigned reads need artifacts in a place that signs URLs, such as s3://: set"
        " `artifact_url`, or `artifact_reads` to `proxied`.",
    )


def _touch_existing(target: Path, size: int) -> bool:
    """Renew the time of stored bytes, because other engines may delete old bytes."""
    try:
        if target.stat().st_size != size:
            return False
        os.utime(target)
    except FileNotFoundError:
        return False
    return True


def get_blob_path(digest: str) -> Path:
    """Return the path of bytes below the folder of all of them, by their SHA-256."""
    return Path(digest[:2]) / digest[2:]


def fsync_paths(*paths: Path) -> None:
    """Make files and directory entries survive a power cut; Windows does so by itself."""
    if os.name == "nt":
        return
    for path in paths:
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
