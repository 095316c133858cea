"""Checks of a database of PostgreSQL and of its artifacts' bytes, and the one repair there is."""

import hashlib
from collections.abc import Iterator
from typing import Any

from psycopg import Connection

from toolkit.store.blob_places.place import BlobPlace
from toolkit.store.maintenance.doctor import DataDirIssue
from toolkit.store.postgres.opening import open_existing
from toolkit.store.stored_bytes import COUNTED_SQL, build_recount, build_totals_query, compare_sums

_LEFT_SQL = (
    "SELECT count(*) FROM roots WHERE open AND owner IS NOT NULL"
    " AND lease_until < extract(epoch FROM clock_timestamp())"
)
_FILES_SQL = (
    "SELECT id, sha256, size_bytes FROM artifacts WHERE NOT deleted AND content IS NULL ORDER BY id"
)


def check_postgres(url: str, place: BlobPlace, *, deep: bool) -> list[DataDirIssue]:
    """Check a database without changing anything.

    Args:
        url: its address.
        place: of its artifacts' bytes.
        deep: also read all of them, and check them against their SHA-256.

    Raises:
        ServiceError: `UNAVAILABLE` when it cannot be used, or is of another version.
    """
    with open_existing(url, newest=True) as connection:
        return [*_check_rows(connection), *_check_bytes(connection, place, deep=deep)]


def repair_postgres(url: str) -> list[str]:
    """Make the repair that `check_postgres` offers; return a line if it was made."""
    with open_existing(url, newest=True) as connection, connection.transaction():
        # Nobody adds to the sums while they are made anew.
        connection.execute("LOCK TABLE stored_bytes IN EXCLUSIVE MODE")
        if not _find_miscounted(connection):
            return []
        for statement in build_recount("postgresql"):
            connection.execute(statement.encode())
    return ["Counted again what accounts keep."]


def _find_miscounted(connection: "Connection[Any]") -> list[str]:
    counted = connection.execute(COUNTED_SQL).fetchall()
    totals = connection.execute(build_totals_query("postgresql").encode()).fetchall()
    return compare_sums(counted, totals)


def _check_rows(connection: "Connection[Any]") -> Iterator[DataDirIssue]:
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        miscounted = _find_miscounted(connection)
    if miscounted:
        yield DataDirIssue(
            f"What {len(miscounted)} accounts keep is not summed up right.",
            "count it again",
            serious=False,
        )
    (left,) = connection.execute(_LEFT_SQL).fetchone() or (0,)
    if left:
        yield DataDirIssue(
            f"{left} runs, workflows or tasks were left by an engine that has gone; the others go"
            " on with them.",
            serious=False,
        )


def _check_bytes(
    connection: "Connection[Any]", place: BlobPlace, *, deep: bool
) -> Iterator[DataDirIssue]:
    for artifact_id, sha256, size in connection.execute(_FILES_SQL).fetchall():
        trouble = None
        try:
            if deep and hashlib.sha256(place.read(sha256, 0, None)).hexdigest() != sha256:
                trouble = "damaged"
            elif size is not None and place.find_size(sha256) != size:
                trouble = "not whole"
        except FileNotFoundError:
            trouble = "not there"
        if trouble:
            yield DataDirIssue(f"The bytes of `{artifact_id}` are {trouble}; restore a backup.")
