"""The bytes of artifacts, stored once under their SHA-256: in a folder, or where fsspec reaches."""

import asyncio
import errno
import os
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any, ParamSpec, TypeVar
from urllib.parse import unquote, urlsplit

from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.store.blob_places.folder import BlobFolder
from toolkit.store.blob_places.object_storage import ObjectStorage
from toolkit.store.blob_places.place import BlobPlace
from toolkit.store.blob_places.remote_calls import RemoteThreads, make_remote_error
from toolkit.store.content import Content, watch_content
from toolkit.store.sqlite.connections import make_unavailable_error

MIN_THREAD_BYTES = 256 * 1024
# Between two tries to hold ballast on a disk that has no room for it.
BALLAST_INTERVAL_S = 0.5
# The longest wait of a request for storage that makes no progress: longer than healthy storage
# takes for a piece of this size, shorter than callers and proxies wait for an answer.
REQUEST_LIMIT_S = 10.0
PIECE_BYTES = 8 * 1024 * 1024
FULL_ERRNOS = frozenset({errno.ENOSPC, errno.EDQUOT})
P = ParamSpec("P")
T = TypeVar("T")


def open_place(
    data_dir: Path,
    url: str | None,
    *,
    endpoint_url: str | None = None,
    aws_profile: str | None = None,
    synced: bool = False,
) -> BlobPlace:
    """Open the place of a deployment's artifacts, without connecting yet.

    Args:
        data_dir: data directory, which has the artifacts if there is no URL.
        url: operator's `artifact_url`: a folder, or a URL as fsspec spells it.
        synced: whether a file must be on the disk before it counts as stored.
    """
    if url is None:
        return BlobFolder(data_dir / "artifacts", synced=synced, is_default=True)
    scheme, separator, path = url.partition("://")
    if not separator:
        return BlobFolder(Path(url), synced=synced)
    if scheme in ("file", "local"):
        text = unquote(urlsplit(url).path) if scheme == "file" else path
        return BlobFolder(Path(text.lstrip("/") if os.name == "nt" else text), synced=synced)
    return ObjectStorage(url, endpoint_url=endpoint_url, aws_profile=aws_profile)


class BlobStore:
    """A store of immutable, content-addressed bytes."""

    def __init__(self, place: BlobPlace, *, synced: bool) -> None:
        self.place = place
        self._synced = synced
        self._threads = RemoteThreads()

    @property
    def chunk_bytes(self) -> int:
        """How many bytes are best read at once."""
        return self.place.chunk_bytes

    async def put(self, digest: str, data: Content, *, limit_s: float | None = None) -> None:
        """Store bytes under their SHA-256, unless they are stored already.

        Args:
            limit_s: maximum time without progress of a remote place, in seconds.

        Raises:
            ServiceError: `UNAVAILABLE`.
        """
        try:
            if limit_s is None or not self.place.is_remote:
                await self._write(digest, data)
                return
            progress = Progress()
            watched = watch_content(data, progress.note) if len(data) > PIECE_BYTES else data
            await progress.limit(self._write(digest, watched), limit_s)
        except OSError as error:
            raise make_unavailable_error(error) from error

    async def put_paid(self, digest: str, data: Content) -> None:
        """Store the bytes of a paid result; on a full disk, free the space reserved for it first.

        Raises:
            ServiceError: `UNAVAILABLE`.
        """
        ballast = self.place.ballast
        try:
            try:
                await self._write(digest, data)
            except OSError as error:
                if ballast is None or error.errno not in FULL_ERRNOS or not ballast.drop():
                    raise
                await self._write(digest, data)
        except OSError as error:
            raise make_unavailable_error(error) from error

    async def _write(self, digest: str, data: Content) -> None:
        if self.place.is_remote or len(data) >= MIN_THREAD_BYTES or self._synced:
            await self._run(self.place.write, digest, data)
        else:
            self.place.write(digest, data)

    @property
    def ballast_bytes(self) -> int:
        """The disk space reserved for results, in bytes; `sys.maxsize` without a local disk."""
        ballast = self.place.ballast
        return sys.maxsize if ballast is None else ballast.size_bytes

    async def grow_ballast(self, size_bytes: int, max_wait_s: float) -> None:
        """Reserve at least `size_bytes` of disk space for results; wait while the disk is full.

        Raises:
            ServiceError: `UNAVAILABLE` if the disk is still full after `max_wait_s` seconds.
        """
        ballast = self.place.ballast
        deadline = time.monotonic() + max_wait_s
        while ballast is not None:
            try:
                # In the loop, because nothing else changes it there: it is a quick system call.
                ballast.grow(size_bytes)
            except OSError as error:
                if time.monotonic() > deadline:
                    raise make_unavailable_error(error) from error
            else:
                return
            await asyncio.sleep(BALLAST_INTERVAL_S)

    async def delete(
        self, digest: str, stored_before_s: float, is_referenced: Callable[[], Awaitable[bool]]
    ) -> bool:
        """Delete bytes unless a record names them; return False if they were stored too recently.

        Raises:
            ServiceError: `UNAVAILABLE`.
        """
        if await is_referenced():
            return True
        try:
            blob = await self._run(self.place.hold, digest, stored_before_s)
            if blob is None:
                return True
            # Checked again now that the age is known: bytes that are old had their record by then.
            is_kept = True
            try:
                is_kept = not blob.is_old or await is_referenced()
            finally:
                # Also if this call is cancelled, because held bytes must not stay held.
                await asyncio.shield(self._run(blob.release if is_kept else blob.delete))
            return blob.is_old
        except OSError as error:
            raise make_unavailable_error(error) from error

    async def get(
        self, digest: str, start: int = 0, end: int | None = None, *, limit_s: float | None = None
    ) -> bytes:
        """Return the bytes from `start` up to, but not including, `end`.

        Args:
            limit_s: the longest that a remote place may make no progress; work has more patience
                than a request.

        Raises:
            RequestError: `NOT_FOUND` when they are lost.
            ServiceError: `UNAVAILABLE`.
        """
        if limit_s is None or end is None or not self.place.is_remote:
            return await self._ask(partial(self.place.read, digest, start, end), limit_s)
        pieces = []
        for at in range(start, end, PIECE_BYTES):
            upto = min(end, at + PIECE_BYTES)
            pieces.append(await self._ask(partial(self.place.read, digest, at, upto), limit_s))
        return b"".join(pieces)

    async def get_size(self, digest: str, *, limit_s: float | None = None) -> int:
        """Return how many bytes are stored under a SHA-256.

        Raises:
            RequestError: `NOT_FOUND` when they are lost.
            ServiceError: `UNAVAILABLE`.
        """
        return await self._ask(partial(self.place.find_size, digest), limit_s)

    async def make_link(self, digest: str, seconds: int, headers: dict[str, str]) -> str:
        """Make a URL by which bytes can be read without a key, for some seconds.

        Raises:
            RequestError: `INVALID_REQUEST` if the bytes are in a place that signs no URLs.
            ServiceError: `UNAVAILABLE`.
        """
        call = partial(self.place.make_link, digest, seconds, headers)
        return await self._ask(call, REQUEST_LIMIT_S)

    async def _ask(self, call: Callable[[], T], limit_s: float | None) -> T:
        try:
            if limit_s is None or not self.place.is_remote:
                return await self._run(call)
            return await Progress().limit(self._run(call), limit_s)
        except FileNotFoundError:
            raise make_lost_error() from None
        except OSError as error:
            raise make_unavailable_error(error) from error

    async def _run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        if not self.place.is_remote:
            return await asyncio.to_thread(call, *args, **kwargs)
        return await self._threads.run(partial(call, *args, **kwargs))

    async def close(self) -> None:
        """Close the connections to the storage of the bytes."""
        if self.place.is_remote:
            await self._threads.close(self.place.close)
        else:
            self.place.close()


class Progress:
    """A watch on the progress of a storage call, which is given up after too long without any."""

    def __init__(self) -> None:
        self._at = time.monotonic()

    def note(self) -> None:
        """Note some progress; may be called on any thread."""
        self._at = time.monotonic()

    async def limit(self, call: Coroutine[Any, Any, T], limit_s: float) -> T:
        """Return the result of a call, waiting for as long as there is progress.

        Raises:
            StoreUnavailableError: there was no progress for `limit_s` seconds.
        """
        calling = asyncio.ensure_future(call)
        try:
            while (left_s := self._at + limit_s - time.monotonic()) > 0:
                if (await asyncio.wait([calling], timeout=left_s))[0]:
                    return calling.result()
        finally:
            calling.cancel()
        raise make_remote_error(f"it did not answer for {limit_s:g} s")


def make_lost_error() -> RequestError:
    """Make the error for an artifact's bytes that are missing from the storage: no retry helps."""
    return RequestError(
        ErrorCode.NOT_FOUND,
        "The bytes of this artifact are lost: the store has its record, but not its bytes."
        " Restore them from a backup; `toolkit doctor` lists all artifacts without bytes.",
    )
