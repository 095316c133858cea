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
        artifacts: how many are in the place, and fit their SHA-256.
        copied: how many of them this call copied.
        lost: the SHA-256 of those that are in no place, or damaged.
    """

    artifacts: int
    copied: int
    lost: tuple[str, ...]


def copy_blobs(
    digests: Iterable[str], sources: Sequence[BlobPlace], target: BlobPlace, *, may_be_lost: bool
) -> BlobCopy:
    """Copy the bytes that a place does not have yet, and read all of them there.

    Args:
        digests: the SHA-256 of each.
        sources: where they may be; the first that has them whole is taken.
        target: where they are to be.
        may_be_lost: whether some may be lost; by default nothing goes on without them.

    Raises:
        ServiceError: `UNAVAILABLE` when a place cannot be used, or some are lost that may not be.
    """
    there, copied, lost = 0, 0, []
    for digest in digests:
        if _read_whole(target, digest) is None:
            found = (_read_whole(source, digest) for source in sources)
            data = next((each for each in found if each is not None), None)
            if data is not None:
                target.write(digest, data)
            if data is None or _read_whole(target, digest) is None:
                lost.append(digest)
                continue
            copied += 1
        there += 1
    if lost and not may_be_lost:
        raise _make_lost_error(lost, [*sources, target])
    return BlobCopy(there, copied, tuple(lost))


def _read_whole(place: BlobPlace, sha256: str) -> bytes | None:
    """Read bytes; none where they are not there, or damaged."""
    try:
        data = place.read(sha256, 0, None)
    except FileNotFoundError:
        return None
    return data if compute_sha256(data) == sha256 else None


def _make_lost_error(lost: Sequence[str], places: Sequence[BlobPlace]) -> ServiceError:
    named = ", ".join(lost[:_MAX_NAMED])
    more = f" and {len(lost) - _MAX_NAMED} more" if len(lost) > _MAX_NAMED else ""
    names = ", ".join(dict.fromkeys(place.name for place in places))
    return ServiceError(
        ErrorCode.UNAVAILABLE,
        f"Nothing was moved, as the bytes with SHA-256 {named}{more} are lost or damaged, in"
        f" {names}: name where they are by TOOLKIT_ARTIFACT_URL, restore them from a backup, or"
        " go on without them by --without-lost.",
    )
