"""The bytes of artifacts, stored once under their SHA-256, through fsspec."""

import asyncio
import os
import secrets
import time
from collections import OrderedDict
from pathlib import Path
from typing import Any

from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.store.content import Content, iter_chunks
from toolkit.store.crashpoints import find_crash_point
from toolkit.store.sqlite.connections import make_unavailable_error

MIN_THREAD_BYTES = 256 * 1024
MAX_KNOWN_DIGESTS = 4096


class BlobStore:
    """A store of immutable, content-addressed files, in a folder or wherever fsspec can write."""

    def __init__(self, url: str, *, synced: bool) -> None:
        self._url = url.rstrip("/")
        self._local = Path(url) if "://" not in url else None
        self._synced = synced
        self._known: OrderedDict[str, None] = OrderedDict()
        self._crash = find_crash_point("blob")

    async def put(self, digest: str, data: Content) -> None:
        """Store bytes under their SHA-256, unless they are stored already.

        Raises:
            ServiceError: `UNAVAILABLE`.
        """
        if digest in self._known and self._local is None:
            return
        try:
            if self._local is not None and len(data) < MIN_THREAD_BYTES and not self._synced:
                self._write(digest, data)
            else:
                await asyncio.to_thread(self._write, digest, data)
        except OSError as error:
            raise make_unavailable_error(error) from error
        self._known[digest] = None
        if len(self._known) > MAX_KNOWN_DIGESTS:
            self._known.popitem(last=False)

    async def delete(self, digest: str, stored_before_s: float) -> bool:
        """Delete bytes, unless they were stored too recently; return whether they are gone.

        Raises:
            ServiceError: `UNAVAILABLE`.
        """
        try:
            gone = await asyncio.to_thread(self._delete, digest, stored_before_s)
        except OSError as error:
            raise make_unavailable_error(error) from error
        if gone:
            self._known.pop(digest, None)
        return gone

    async def get(self, digest: str, start: int, end: int | None) -> bytes:
        """Return the bytes from `start` up to, but not including, `end`.

        Raises:
            ServiceError: `UNAVAILABLE` when they are not there.
        """
        try:
            return await asyncio.to_thread(self._read, digest, start, end)
        except FileNotFoundError as error:
            self._known.pop(digest, None)  # so that it is written again
            raise ServiceError(
                ErrorCode.UNAVAILABLE, "The bytes of this artifact are not in the store."
            ) from error
        except OSError as error:
            raise make_unavailable_error(error) from error

    def _write(self, digest: str, data: Content) -> None:
        # Under a name of its own first, then renamed: a crash leaves all of it or nothing.
        if self._local is not None:
            target = self._local / get_blob_path(digest)
            if _touch_existing(target, len(data)):
                return
            new = not target.parent.exists()
            target.parent.mkdir(parents=True, exist_ok=True)
            partial = target.with_name(f".{secrets.token_hex(8)}")
            try:
                self._write_chunks(partial, data)
            except OSError:
                partial.unlink(missing_ok=True)  # it takes up space, which may be what is missing
                raise
            if self._crash is not None:
                self._crash("before")
            partial.replace(target)
            if self._synced:
                # After a power cut a file without a directory entry would be lost.
                fsync_paths(target.parent, *((self._local, self._local.parent) if new else ()))
            if self._crash is not None:
                self._crash("after")
            return
        files = self._open_filesystem()
        target_url = f"{self._url}/{digest[:2]}/{digest[2:]}"
        partial_url = f"{self._url}/.{secrets.token_hex(8)}"
        files.makedirs(f"{self._url}/{digest[:2]}", exist_ok=True)
        with files.open(partial_url, "wb") as file:
            for piece in iter_chunks(data):
                file.write(bytes(piece))
        files.mv(partial_url, target_url)

    def _delete(self, digest: str, stored_before_s: float) -> bool:
        if self._local is None:
            files, url = self._open_filesystem(), f"{self._url}/{digest[:2]}/{digest[2:]}"
            if files.exists(url):
                files.rm_file(url)
            return True
        target = self._local / get_blob_path(digest)
        # Renamed first, so that a caller who stores the same bytes meanwhile writes them again.
        aside = target.with_name(f".{secrets.token_hex(8)}")
        try:
            target.replace(aside)
        except FileNotFoundError:
            return True
        if time.time() - aside.stat().st_mtime < stored_before_s:
            aside.replace(target)
            return False
        aside.unlink()
        return True

    def _write_chunks(self, path: Path, data: Content) -> None:
        with path.open("wb") as file:
            for piece in iter_chunks(data):
                file.write(piece)
            if self._synced:
                file.flush()
                os.fsync(file.fileno())

    def _read(self, digest: str, start: int, end: int | None) -> bytes:
        if self._local is not None:
            with (self._local / get_blob_path(digest)).open("rb") as file:
                file.seek(start)
                return file.read(-1 if end is None else max(0, end - start))
        data: bytes = self._open_filesystem().cat_file(
            f"{self._url}/{digest[:2]}/{digest[2:]}", start=start, end=end
        )
        return data

    def _open_filesystem(self) -> Any:
        try:
            from fsspec.core import url_to_fs
        except ImportError:
            raise ServiceError(
                ErrorCode.UNAVAILABLE,
                "Artifacts at a URL need fsspec: pip install 'capability-toolkit[remote]'.",
            ) from None

        return url_to_fs(self._url)[0]


def _touch_existing(target: Path, size: int) -> bool:
    """Mark bytes that exist already as stored just now, as others may delete old ones."""
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
