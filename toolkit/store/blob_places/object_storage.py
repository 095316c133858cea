"""Object storage, such as S3, or any other storage that fsspec reaches by a URL."""

import hashlib
import re
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any

from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.store.blob_places.folder import make_unlinkable_error
from toolkit.store.blob_places.place import MARK_NAME, BlobEntry, HeldBlob, decode_mark
from toolkit.store.blob_places.remote_calls import (
    NO_CONTAINER_CODES,
    find_code,
    make_remote_error,
    run_remotely,
)
from toolkit.store.changes import make_unusable_error
from toolkit.store.content import CHUNK_BYTES, Content, iter_chunks

PART_BYTES = 8 * 1024 * 1024  # of an upload: one or two of them are in memory
READ_BYTES = 2 * 1024 * 1024  # a request for each is a round trip, so more than of a disk
MARKER_FOLDER = ".deleting"
# A deletion that takes longer is given up, so that a marker's age shows that it is abandoned.
MAX_DELETION_S = 60.0
ABANDONED_MARKER_S = 900.0
MARKER_WAIT_S = 10.0
MARKER_POLL_S = 0.1
S3_PROTOCOLS = ("s3", "s3a")
# Tries are ours alone: each other layer's own would multiply them.
_S3_CONFIG = {
    "connect_timeout": 5,
    "read_timeout": 30,
    "retries": {"total_max_attempts": 1},
    "signature_version": "s3v4",
}
# Errors of a conditional write: the object exists, or the storage has no conditional writes.
_EXISTING_CODES = ("PreconditionFailed", "ConditionalRequestConflict")
_UNCONDITIONAL_CODES = ("NotImplemented", "NotImplementedError", "TypeError", "ValueError")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_PREFIX = re.compile(r"[0-9a-f]{2}")
# The names by which the kinds of file systems tell when something was stored.
_TIME_FIELDS = ("LastModified", "last_modified", "mtime", "modified", "updated", "created")


class ObjectStorage:
    """Object storage at a URL, with an object for each SHA-256.

    An object is replaced, not skipped, when the same bytes are stored again. Its age is reset, so
    no engine deletes it as old. Object storage has no atomic rename, so a marker object announces a
    deletion. A deletion writes the marker and then checks the age. A write stores the object and
    then checks for a marker. So one of the two always sees the other.

    Args:
        url: URL as fsspec spells it, without secrets.
    """

    ballast = None
    is_default = False
    is_remote = True
    chunk_bytes = READ_BYTES

    def __init__(
        self, url: str, *, endpoint_url: str | None = None, aws_profile: str | None = None
    ) -> None:
        self._url = url.rstrip("/")
        self.name = re.sub("^s3a:", "s3:", self._url)
        self._s3_options = {"endpoint_url": endpoint_url, "profile": aws_profile}
        self._lock = threading.Lock()
        self._opened: Any = None

    def write(self, digest: str, data: Content) -> None:
        """Store bytes whole or not at all; a part at a time is in memory.

        Raises:
            ServiceError: `UNAVAILABLE`; also if the bytes do not match the digest.
        """
        path = self._find_path(digest)
        give_up = time.monotonic() + MARKER_WAIT_S
        while (size := self._upload_unmarked(path, digest, data)) is None:
            while True:
                if time.monotonic() > give_up:
                    raise make_remote_error("the same bytes are being deleted there")
                if not run_remotely(self._is_being_deleted, digest, path):
                    break
                time.sleep(MARKER_POLL_S)
        if size != len(data):
            raise make_remote_error(f"it stored {size} of {len(data)} bytes")

    def _upload_unmarked(self, path: str, digest: str, data: Content) -> int | None:
        """Upload bytes and return the stored size; None if a deletion of them is in progress."""
        run_remotely(self._upload, path, digest, data)
        if run_remotely(self._is_being_deleted, digest, path):
            return None
        try:
            return int(run_remotely(self._files.info, path)["size"])
        except FileNotFoundError:
            # Deleted after the upload, by a deletion whose marker went before the check.
            return None

    def _upload(self, path: str, digest: str, data: Content) -> None:
        if isinstance(data, bytes) and len(data) <= PART_BYTES:
            _check_digest(hashlib.sha256(data).hexdigest(), digest)
            self._make_folder(path)
            self._files.pipe_file(path, data)
            return
        hasher = hashlib.sha256()
        self._make_folder(path)
        # Nothing is stored before `commit`; closing a file would commit even incomplete bytes.
        file = self._files.open(path, "wb", block_size=PART_BYTES, autocommit=False)
        try:
            for piece in iter_chunks(data, CHUNK_BYTES):
                hasher.update(piece)
                file.write(bytes(piece))
            _check_digest(hasher.hexdigest(), digest)
            file.close()
            file.commit()
        except BaseException:
            with suppress(Exception):
                file.discard()
            with suppress(Exception):
                file.closed = True  # or else it would be sent when it is collected
            raise

    def _make_folder(self, path: str) -> None:
        """Make the folder of a path; do nothing for S3, where that would make the bucket."""
        if not self._is_s3:
            self._files.makedirs(path.rpartition("/")[0], exist_ok=True)

    def _is_being_deleted(self, digest: str, path: str) -> bool:
        """Check whether bytes have a marker whose writer may still be active."""
        try:
            markers = self._files.ls(self._find_markers(digest), detail=True)
        except FileNotFoundError as error:
            if find_code(error) in NO_CONTAINER_CODES:
                raise
            return False
        if not markers:
            return False
        try:
            stored_at = self._read_time(path)
        except FileNotFoundError:
            return True
        # By the storage's own clock, as both times are its.
        times = [_find_time(marker) for marker in markers]
        return any(
            since is None or stored_at is None or stored_at - since < ABANDONED_MARKER_S
            for since in times
        )

    def read(self, digest: str, start: int, end: int | None) -> bytes:
        """Read the bytes from `start` up to, but not including, `end`."""
        if end is not None and start >= end:
            return b""
        path = self._find_path(digest)
        data: bytes = run_remotely(self._files.cat_file, path, start=start, end=end)
        return data

    def find_size(self, digest: str) -> int:
        """Find how many bytes are stored under a SHA-256."""
        return int(run_remotely(self._files.info, self._find_path(digest))["size"])

    def hold(self, digest: str, min_age_s: float) -> HeldBlob | None:
        """Announce the deletion of an object by a marker; return None if the object is absent."""
        path, began = self._find_path(digest), time.monotonic()
        marker = f"{self._find_markers(digest)}/{secrets.token_hex(8)}"  # its own: others' stay

        def mark() -> None:
            self._make_folder(marker)
            # Not empty, because some storages treat empty objects as absent.
            self._files.pipe_file(marker, digest.encode())

        try:
            run_remotely(self._files.info, path)  # most that is not there costs one request
            run_remotely(mark)
            now = run_remotely(self._read_time, marker)
            stored_at = run_remotely(self._read_time, path)
        except FileNotFoundError:
            self._remove(marker)
            return None
        is_old = now is not None and stored_at is not None and now - stored_at >= min_age_s
        delete = partial(self._delete_marked, path, marker, began)
        return HeldBlob(is_old, delete, partial(self._remove, marker))

    def _delete_marked(self, path: str, marker: str, began: float) -> None:
        """Delete an object under its marker, which was written after `began`.

        Raises:
            ServiceError: `UNAVAILABLE` if that took too long to be sure of the marker.
        """

        def delete() -> None:
            if time.monotonic() - began > MAX_DELETION_S:
                raise make_remote_error("a deletion took too long")
            with suppress(FileNotFoundError):
                self._files.rm_file(path)

        # Where it failed, the marker stays: the request may yet be carried out.
        run_remotely(delete)
        self._remove(marker)

    def _remove(self, path: str) -> None:
        with suppress(FileNotFoundError):
            run_remotely(self._files.rm_file, path)

    def list_entries(self) -> Iterator[BlobEntry]:
        """List all objects, one prefix at a time, and markers that were left."""
        folders = self._list_names("")
        for prefix in sorted(folder for folder in folders if _PREFIX.fullmatch(folder)):
            for name, info in self._list_folder(prefix):
                digest = prefix + name
                blob_digest = digest if _DIGEST.fullmatch(digest) else None
                yield self._make_entry(f"{prefix}/{name}", blob_digest, info)
        for digest in self._list_names(MARKER_FOLDER) if MARKER_FOLDER in folders else ():
            folder = f"{MARKER_FOLDER}/{digest}"
            for name, info in self._list_folder(folder):
                yield self._make_entry(f"{folder}/{name}", None, info)

    def _list_folder(self, folder: str) -> list[tuple[str, dict[str, Any]]]:
        return [(_get_name(info), info) for info in self._list(folder) if info["type"] == "file"]

    def _list_names(self, folder: str) -> list[str]:
        return [_get_name(info) for info in self._list(folder)]

    def _list(self, folder: str) -> list[dict[str, Any]]:
        path = f"{self._url}/{folder}".rstrip("/")
        try:
            return list(run_remotely(self._files.ls, path, detail=True))
        except FileNotFoundError:
            return []

    def _make_entry(self, name: str, digest: str | None, info: dict[str, Any]) -> BlobEntry:
        stored_at = _find_time(info)
        if stored_at is None:
            with suppress(FileNotFoundError):
                stored_at = run_remotely(self._read_time, f"{self._url}/{name}")
        age_s = None if stored_at is None else time.time() - stored_at
        return BlobEntry(name, digest, int(info["size"] or 0), age_s)

    def remove_leftover(self, name: str) -> None:
        """Remove the leftover of an interrupted write or deletion."""
        self._remove(f"{self._url}/{name}")

    def make_link(self, digest: str, seconds: int, headers: dict[str, str]) -> str:
        """Make a URL by which an object can be read without a key, for some seconds.

        Raises:
            RequestError: `INVALID_REQUEST` if this storage signs no URLs.
        """
        path = self._find_path(digest)
        query: dict[str, str] = {}
        if self._is_s3:
            query = {f"Response{name.replace('-', '')}": value for name, value in headers.items()}
        try:
            return str(run_remotely(self._files.sign, path, expiration=seconds, **query))
        except NotImplementedError:
            raise make_unlinkable_error() from None

    def read_mark(self) -> str | None:
        """Read the mark that names the storage's database; return None if it has no mark."""
        try:
            return decode_mark(run_remotely(self._files.cat_file, f"{self._url}/{MARK_NAME}"))
        except FileNotFoundError:
            return None

    def write_mark(self, mark: str, *, replace: bool) -> None:
        """Mark the storage as a database's; keep an existing mark unless `replace` is true.

        The storage itself enforces that with `If-None-Match` if it supports the header.
        """
        path = f"{self._url}/{MARK_NAME}"
        data = f"{mark}\n".encode("ascii")

        def create() -> None:
            self._make_folder(path)
            try:
                self._files.pipe_file(path, data, mode="create")
            except Exception as error:
                code = find_code(error)
                if code in _UNCONDITIONAL_CODES:
                    self._files.pipe_file(path, data)
                elif not (isinstance(error, FileExistsError) or code in _EXISTING_CODES):
                    raise

        run_remotely(partial(self._files.pipe_file, path, data) if replace else create)

    def close(self) -> None:
        """Close the connections to the storage."""
        with self._lock:
            files, self._opened = self._opened, None
        if files is not None and self._is_s3 and getattr(files, "_s3", None) is not None:
            with suppress(Exception):
                files.close_session(files.loop, files._s3)

    @property
    def _is_s3(self) -> bool:
        return self._url.partition("://")[0] in S3_PROTOCOLS

    def _find_path(self, digest: str) -> str:
        return f"{self._url}/{digest[:2]}/{digest[2:]}"

    def _find_markers(self, digest: str) -> str:
        return f"{self._url}/{MARKER_FOLDER}/{digest}"

    def _read_time(self, path: str) -> float | None:
        """Read when something was stored; None if the storage does not report it."""
        stored_at = _find_time(self._files.info(path))
        if stored_at is None:
            with suppress(NotImplementedError):
                stored_at = _find_time({"modified": self._files.modified(path)})
        return stored_at

    @property
    def _files(self) -> Any:
        """The file system, opened once, with connections of its own."""
        with self._lock:
            if self._opened is None:
                self._opened = self._make_filesystem()
            return self._opened

    def _make_filesystem(self) -> Any:
        # Other engines may change the objects, so no listing may be reused.
        options: dict[str, Any] = {"skip_instance_cache": True, "use_listings_cache": False}
        if self._is_s3:
            options["config_kwargs"] = dict(_S3_CONFIG)
            s3_options = {name: text for name, text in self._s3_options.items() if text is not None}
            options |= s3_options
        try:
            from fsspec.core import url_to_fs

            files = url_to_fs(self._url, **options)[0]
        except ImportError:
            extra = "s3" if self._is_s3 else "remote"
            raise make_unusable_error(
                "Artifacts at this URL need packages that are not installed:"
                f" pip install 'capability-toolkit[{extra}]'"
                + ("." if self._is_s3 else ", and the package that fsspec names for this URL.")
            ) from None
        except ValueError:
            raise make_unusable_error(
                "fsspec does not know the protocol of `artifact_url`: use s3://, for example."
            ) from None
        if self._is_s3:
            files.retries = 1
        return files


def _get_name(info: dict[str, Any]) -> str:
    """Return the last part of the name of a listed object."""
    return str(info["name"]).rstrip("/").rpartition("/")[2]


def _check_digest(actual: str, sha256: str) -> None:
    """Reject bytes that do not match the digest."""
    if actual != sha256:
        raise ServiceError(
            ErrorCode.INTERNAL, "The bytes changed while they were stored: nothing was stored."
        )


def _find_time(info: dict[str, Any]) -> float | None:
    """Find when something was stored, in seconds since 1970; None if its entry has no time."""
    for field in _TIME_FIELDS:
        value = info.get(field)
        if isinstance(value, str):
            with suppress(ValueError):
                value = datetime.fromisoformat(value)
        if isinstance(value, datetime):
            return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
        if isinstance(value, int | float):
            return float(value)
    return None
