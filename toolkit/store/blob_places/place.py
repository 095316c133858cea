"""The interface of a folder or object storage for artifacts' bytes, and deletion, alike in both."""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Protocol

from toolkit.store.content import Content
from toolkit.store.writing.ballast import BallastFile

# The mark of a place, next to the bytes: the database that it belongs to.
MARK_NAME: Final = ".database"
_MARK_SIZE: Final = 200


@dataclass(frozen=True, slots=True)
class BlobEntry:
    """A file or object in the storage of artifacts: an artifact's bytes, or a leftover.

    Attributes:
        name: name in the place.
        digest: SHA-256 that it is stored under; None for the leftover of an interrupted write.
        age_s: seconds since it was stored; None if the place does not report it.
    """

    name: str
    digest: str | None
    size_bytes: int
    age_s: float | None

    def is_older_than(self, seconds: float) -> bool:
        """Check whether it is older than some seconds; False if its age is unknown."""
        return self.age_s is not None and self.age_s > seconds


@dataclass(frozen=True, slots=True)
class HeldBlob:
    """Bytes that are about to be deleted; a writer of the same bytes stores them again.

    Attributes:
        is_old: whether they were stored long enough ago to be deleted.
        release: function that leaves them as they were.
    """

    is_old: bool
    delete: Callable[[], object]
    release: Callable[[], object]


class BlobPlace(Protocol):
    """A folder or object storage for bytes under their SHA-256; its methods block.

    They raise `FileNotFoundError` for bytes that are not there, and `OSError` or `ServiceError` if
    the place cannot be used.

    Attributes:
        name: name that distinguishes it from other places, for operators.
        is_default: whether it is the data directory's default, because no other place was set.
        is_remote: whether it is reached over a network.
        chunk_bytes: best size of a read, in bytes.
    """

    name: str
    is_default: bool
    is_remote: bool
    chunk_bytes: int

    @property
    def ballast(self) -> BallastFile | None:
        """The disk space reserved for the results of calls in flight; None without a local disk."""

    def write(self, digest: str, data: Content) -> None:
        """Store bytes whole or not at all; if they are there already, count them as stored now."""

    def read(self, digest: str, start: int, end: int | None) -> bytes:
        """Read the bytes from `start` up to, but not including, `end`."""

    def find_size(self, digest: str) -> int:
        """Find how many bytes are stored under a SHA-256."""

    def hold(self, digest: str, min_age_s: float) -> HeldBlob | None:
        """Prepare the deletion of bytes, which `HeldBlob` completes; None if they are not there."""

    def list_entries(self) -> Iterator[BlobEntry]:
        """List all artifacts' bytes that are stored, and leftovers of interrupted writes."""

    def remove_leftover(self, name: str) -> None:
        """Remove the leftover of an interrupted write by its name."""

    def make_link(self, digest: str, seconds: int, headers: dict[str, str]) -> str:
        """Make a URL by which the bytes can be read without a key, for some seconds.

        Args:
            headers: `Content-Type` and `Content-Disposition` of the answer.
        """

    def read_mark(self) -> str | None:
        """Read the mark that names the storage's database; return None if it has no mark."""

    def write_mark(self, mark: str, *, replace: bool) -> None:
        """Mark the storage as a database's; keep an existing mark unless `replace` is true."""

    def close(self) -> None:
        """Close the connections to the storage."""


def decode_mark(data: bytes) -> str:
    """Decode the mark that names the database of artifact storage: the first line of a file."""
    return data[:_MARK_SIZE].decode("ascii", "replace").partition("\n")[0].strip()


def delete_unreferenced(
    place: BlobPlace, digest: str, min_age_s: float, is_referenced: Callable[[], bool]
) -> bool:
    """Delete bytes unless they are young or a record names them; return True if they are gone.

    The records are checked after the age is known: bytes that are old had their record by then.
    """
    blob = place.hold(digest, min_age_s)
    if blob is None:
        return True
    try:
        may_go = blob.is_old and not is_referenced()
    except BaseException:
        blob.release()
        raise
    if not may_go:
        blob.release()
        return False
    blob.delete()
    return True


def compute_stored_sha256(place: BlobPlace, digest: str, size_bytes: int) -> str:
    """Compute the SHA-256 of stored bytes, with one chunk in memory at a time."""
    hasher = hashlib.sha256()
    for start in range(0, size_bytes, place.chunk_bytes):
        hasher.update(place.read(digest, start, min(size_bytes, start + place.chunk_bytes)))
    return hasher.hexdigest()
