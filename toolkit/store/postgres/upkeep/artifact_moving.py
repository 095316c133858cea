"""The move of a database's artifacts to another place, which it remembers from then on."""

from dataclasses import dataclass
from typing import Any, Final

from psycopg import Connection

from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.store.blob_places.place import BlobPlace
from toolkit.store.content import compute_sha256
from toolkit.store.postgres.artifact_place import (
    PlaceFit,
    find_fit,
    has_engines,
    make_foreign_error,
    make_other_error,
    read_artifact_mark,
    set_artifact_place,
)
from toolkit.store.postgres.opening import open_existing

_FILES_SQL: Final = (
    "SELECT DISTINCT sha256 FROM artifacts WHERE NOT deleted AND content IS NULL ORDER BY sha256"
)


@dataclass(frozen=True, slots=True)
class ArtifactMove:
    """The result of a move of artifacts.

    Attributes:
        artifacts: how many artifacts' bytes are in the new place, and fit their SHA-256.
        copied: how many of them this call copied.
        lost: the SHA-256 of bytes that were in neither place, or damaged.
    """

    artifacts: int
    copied: int
    lost: tuple[str, ...]


def move_artifacts(url: str, source: BlobPlace, target: BlobPlace) -> ArtifactMove:
    """Copy a database's artifacts to another place, read all of them there, and remember it.

    What is there already is not copied again, so that an interrupted move goes on, and a place that
    was restored or replicated is taken as it is. Nothing is deleted.

    Args:
        url: of the database, which no engine has open.
        source: where they have been.
        target: where they are from now on.

    Raises:
        ServiceError: `UNAVAILABLE` when one of them cannot be used, or an engine is running.
    """
    with open_existing(url, newest=True) as connection:
        if has_engines(connection):
            raise ServiceError(
                ErrorCode.UNAVAILABLE,
                "An engine has the database open: stop all of them, and wait some seconds after"
                " one that was killed.",
            )
        _check_places(connection, source, target)
        digests = [str(row[0]) for row in connection.execute(_FILES_SQL).fetchall()]
        copied, lost = 0, []
        for digest in digests:
            if _read_whole(target, digest) is not None:
                continue
            data = _read_whole(source, digest)
            if data is not None:
                target.write(digest, data)
                copied += 1
            if data is None or _read_whole(target, digest) is None:
                lost.append(digest)
        set_artifact_place(connection, target, is_default=False)
    return ArtifactMove(len(digests) - len(lost), copied, tuple(lost))


def _check_places(connection: "Connection[Any]", source: BlobPlace, target: BlobPlace) -> None:
    mark = read_artifact_mark(connection)
    if find_fit(connection, target, mark) is PlaceFit.FOREIGN:
        raise make_foreign_error(target)
    fit = find_fit(connection, source, mark)
    if fit is PlaceFit.FOREIGN:
        raise make_foreign_error(source)
    # The old one may be gone for good: then all that is wanted has to be in the new one.
    if fit is PlaceFit.OTHER and mark is not None and not _has_everything(connection, target):
        raise make_other_error(source, mark)


def _has_everything(connection: "Connection[Any]", place: BlobPlace) -> bool:
    """Tell whether a place has something under each SHA-256 that records name."""
    there = {entry.digest for entry in place.list_entries()}
    digests = connection.execute(_FILES_SQL).fetchall()
    return all(str(row[0]) in there for row in digests)


def _read_whole(place: BlobPlace, sha256: str) -> bytes | None:
    """Read bytes; none where they are not there, or damaged."""
    try:
        data = place.read(sha256, 0, None)
    except FileNotFoundError:
        return None
    return data if compute_sha256(data) == sha256 else None
