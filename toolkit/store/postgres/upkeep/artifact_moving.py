"""The move of a database's artifacts to another place, which it remembers from then on."""

from collections.abc import Sequence
from typing import Any

from psycopg import Connection

from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.store.blob_places.copying import BlobCopy, copy_blobs
from toolkit.store.blob_places.place import BlobPlace
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
from toolkit.store.read_statements import STORED_DIGESTS_SQL


def move_artifacts(
    url: str, sources: Sequence[BlobPlace], target: BlobPlace, *, may_be_lost: bool = False
) -> BlobCopy:
    """Copy a database's artifacts to another place, read all of them there, and remember it.

    What is there already is not copied again, so that an interrupted move goes on, and a place that
    was restored or replicated is taken as it is. Nothing is deleted.

    Args:
        url: of the database, which no engine has open.
        sources: where they have been, and then where else they may be.
        target: where they are from now on.
        may_be_lost: whether some of them may be lost.

    Raises:
        ServiceError: `UNAVAILABLE` when one of them cannot be used, an engine is running, or bytes
            are lost, and the database goes on with the place that it had.
    """
    with open_existing(url, newest=True) as connection:
        if has_engines(connection):
            raise ServiceError(
                ErrorCode.UNAVAILABLE,
                "An engine has the database open: stop all of them, and wait some seconds after"
                " one that was killed.",
            )
        _check_places(connection, sources[0], target)
        digests = [str(row[0]) for row in connection.execute(STORED_DIGESTS_SQL).fetchall()]
        moved = copy_blobs(digests, sources, target, may_be_lost=may_be_lost)
        set_artifact_place(connection, target, is_default=False)
    return moved


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
    digests = connection.execute(STORED_DIGESTS_SQL).fetchall()
    return all(str(row[0]) in there for row in digests)
