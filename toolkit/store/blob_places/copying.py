"""The copying of artifacts' bytes into a place, where each is read before it counts as there."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.store.blob_places.place import BlobPlace
from toolkit.store.content import compute_sha256

_MAX_NAMED: Final = 3  # of a message


@dataclass(frozen=True, slots=True)
class BlobCopy:
    """The result of copying bytes.

    Attributes:
        artifacts: number of artifacts in the place whose bytes match their SHA-256.
        copied: number of artifacts that this call copied.
        lost: SHA-256 of each artifact that no place has, or whose bytes are damaged.
    """

    artifacts: int
    copied: int
    lost: tuple[str, ...]


def copy_blobs(
    digests: Iterable[str], sources: Sequence[BlobPlace], target: BlobPlace, *, may_be_lost: bool
) -> BlobCopy:
    """Copy the bytes that a place does not have yet, and read all of them there.

    Args:
        digests: SHA-256 of each artifact.
        sources: places that may have the bytes; the first place with intact bytes is used.
        target: place to copy the bytes to.
        may_be_lost: whether missing bytes are accepted; otherwise nothing proceeds without them.

    Raises:
        ServiceError: `UNAVAILABLE` if a place cannot be used, or bytes are lost that must not be.
    """
    present, copied, lost = 0, 0, []
    for digest in digests:
        if _read_whole(target, digest) is None:
            contents = (_read_whole(source, digest) for source in sources)
            data = next((content for content in contents if content is not None), None)
            if data is not None:
                target.write(digest, data)
            if data is None or _read_whole(target, digest) is None:
                lost.append(digest)
                continue
            copied += 1
        present += 1
    if lost and not may_be_lost:
        raise _make_lost_error(lost, [*sources, target])
    return BlobCopy(present, copied, tuple(lost))


def _read_whole(place: BlobPlace, sha256: str) -> bytes | None:
    """Read bytes; return None if they are absent or damaged."""
    try:
        data = place.read(sha256, 0, None)
    except FileNotFoundError:
        return None
    return data if compute_sha256(data) == sha256 else None


def _make_lost_error(lost: Sequence[str], places: Sequence[BlobPlace]) -> ServiceError:
    digests = ", ".join(lost[:_MAX_NAMED])
    suffix = f" and {len(lost) - _MAX_NAMED} more" if len(lost) > _MAX_NAMED else ""
    names = ", ".join(dict.fromkeys(place.name for place in places))
    return ServiceError(
        ErrorCode.UNAVAILABLE,
        f"Nothing was moved: the bytes with SHA-256 {digests}{suffix} are lost or damaged in"
        f" {names}. Set TOOLKIT_ARTIFACT_URL to the place that has them, restore them from a"
        " backup, or move without them (--without-lost).",
    )
