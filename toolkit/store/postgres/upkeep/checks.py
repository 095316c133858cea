"""Checks of a database of PostgreSQL, of its server and of its artifacts, and the repairs."""

import secrets
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

from psycopg import Connection
from psycopg.rows import dict_row

from toolkit.contract.errors import ServiceError
from toolkit.store.blob_places.place import BlobPlace
from toolkit.store.limits.limit_store import APART_DOCUMENT, ENGINE_LIFE_S, ENGINE_PREFIX
from toolkit.store.maintenance.doctor import MANAGED_TABLES, DataDirIssue, check_artifact_bytes
from toolkit.store.maintenance.prune import delete_unreferenced_files, list_unreferenced
from toolkit.store.postgres.artifact_place import (
    PlaceFit,
    explain_folders,
    find_fit,
    make_foreign_error,
    make_other_error,
    read_artifact_mark,
)
from toolkit.store.postgres.mark import is_marked_as_copy
from toolkit.store.postgres.opening import open_existing, open_postgres
from toolkit.store.postgres.schema import read_postgres_version
from toolkit.store.postgres.upkeep.database import PostgresUpkeep
from toolkit.store.postgres.upkeep.recounting import correct_sums, find_shortfalls
from toolkit.store.postgres.writing.statements import CLOCK_SQL
from toolkit.store.read_connection import Row
from toolkit.store.read_statements import build_find
from toolkit.store.schema import HEAD_REVISION, check_not_later

OLDEST_SERVER: Final = 13
MAX_CLOCK_DIFFERENCE_S: Final = 2.0
NOTICE_TIMEOUT_S: Final = 3.0
_LEFT_SQL: Final = (
    "SELECT count(*) FROM roots WHERE open AND owner IS NOT NULL"
    " AND lease_until < extract(epoch FROM clock_timestamp())"
)
_FILES_SQL: Final = (
    "SELECT id, sha256, size_bytes FROM artifacts WHERE NOT deleted AND content IS NULL ORDER BY id"
)
_ENGINES_SQL: Final = (
    f"SELECT doc FROM shared_limits WHERE id LIKE '{ENGINE_PREFIX}%'"  # noqa: S608 - our names
    f" AND changed_at >= {CLOCK_SQL} - {ENGINE_LIFE_S}"
)
_HALF_MADE_SQL: Final = (
    "SELECT id FROM {table} WHERE status = 'deleting' OR status = 'creating' AND vendor_id IS NULL"
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
    with open_existing(url, is_read_only=True) as connection:
        version = read_postgres_version(connection)
        check_not_later(version)
        found = [*_check_server(url, connection)]
        if version is not None and version.revision != HEAD_REVISION:
            told = f"It is of revision {version.revision}, and is brought to {HEAD_REVISION} when"
            return [*found, DataDirIssue(f"{told} it is next opened.", serious=False)]
        found += _check_rows(connection)
        try:
            found += _check_artifacts(connection, place, deep=deep)
        except ServiceError as error:
            found.append(DataDirIssue(f"Artifacts could not be looked at: {error.message}"))
    return found


def repair_postgres(url: str, place: BlobPlace) -> list[str]:
    """Make the repairs that `check_postgres` offers; engines may have the database open.

    Args:
        url: its address.
        place: of its artifacts' bytes.

    Returns:
        a line for each repair that was made.

    Raises:
        ServiceError: `UNAVAILABLE` when it cannot be used, or its artifacts are elsewhere.
    """
    done = []
    with open_existing(url, newest=True) as connection:
        if correct_sums(connection):
            done.append("Counted again what accounts keep.")
        if not is_marked_as_copy(connection):
            done += delete_unreferenced_files(PostgresUpkeep(connection), place)
    return done


def read_managed_rows(url: str) -> dict[str, list[Row]]:
    """Read the rows of connections and of managed resources, by table.

    Raises:
        ServiceError: `UNAVAILABLE` when the database cannot be read, or is of another version.
    """
    with open_existing(url, newest=True, is_read_only=True) as connection:
        cursor = connection.cursor(row_factory=dict_row)
        return {
            table: cursor.execute(build_find("postgresql", table, ()).encode()).fetchall()
            for table in (*MANAGED_TABLES, "connections")
        }


def _check_server(url: str, connection: "Connection[Any]") -> Iterator[DataDirIssue]:
    version = connection.info.server_version // 10_000
    if version < OLDEST_SERVER:
        yield DataDirIssue(f"PostgreSQL {version} is too old: {OLDEST_SERVER} is the first to do.")
    before = time.time()
    (at,) = connection.execute(f"SELECT {CLOCK_SQL}".encode()).fetchone() or (before,)
    difference_s = (before + time.time()) / 2 - at
    if abs(difference_s) > MAX_CLOCK_DIFFERENCE_S:
        word = "ahead of" if difference_s > 0 else "behind"
        yield DataDirIssue(
            f"This machine's clock is {abs(difference_s):.1f} s {word} the database's: leases go by"
            " the latter, and times of records by those of engines.",
            serious=False,
        )
    if not _is_notified(url):
        yield DataDirIssue(
            "NOTIFY does not arrive: engines hear of each other's work up to a second late. Let"
            " them reach PostgreSQL itself, or a pool that keeps sessions."
        )


def _is_notified(url: str) -> bool:
    """Tell whether a notice of one session reaches another one, which engines wait for."""
    channel = f"toolkit_doctor_{secrets.token_hex(4)}"
    with (
        suppress(ServiceError),
        open_postgres(url, is_read_only=True) as listener,
        open_postgres(url, is_read_only=True) as sender,
    ):
        listener.execute(f"LISTEN {channel}".encode())
        sender.execute("SELECT pg_notify(%s, '')", (channel,))
        return any(True for _ in listener.notifies(timeout=NOTICE_TIMEOUT_S, stop_after=1))
    return False


def _check_rows(connection: "Connection[Any]") -> Iterator[DataDirIssue]:
    copy = is_marked_as_copy(connection)
    if copy:
        yield DataDirIssue(
            "It is a copy of another database: what was left lying in it is held, and nothing at"
            " GPU clouds is touched, until `toolkit serve --take-up`.",
            serious=False,
        )
    miscounted = find_shortfalls(connection)
    if miscounted:
        yield DataDirIssue(
            f"What {len(miscounted)} accounts keep is not summed up right.",
            "count it again",
            serious=False,
        )
    (left,) = connection.execute(_LEFT_SQL).fetchone() or (0,)
    if left:
        goes_on = "they are held" if copy else "the others go on with them"
        yield DataDirIssue(
            f"{left} runs, workflows or tasks were left by an engine that has gone; {goes_on}.",
            serious=False,
        )
    engines = [str(row[0]) for row in connection.execute(_ENGINES_SQL.encode()).fetchall()]
    if apart := engines.count(APART_DOCUMENT):
        yield DataDirIssue(
            f"{apart} of {len(engines)} engines keep artifacts in folders of their own, where the"
            " others do not find them: name one place for all (TOOLKIT_ARTIFACT_URL)."
        )
    for table in MANAGED_TABLES:
        for (record_id,) in connection.execute(_HALF_MADE_SQL.format(table=table).encode()):
            yield DataDirIssue(
                f"`{record_id}` was being made or deleted at its vendor: open the database with"
                " that connection, and it is settled.",
                serious=not engines and not copy,
            )


def _check_artifacts(
    connection: "Connection[Any]", place: BlobPlace, *, deep: bool
) -> Iterator[DataDirIssue]:
    mark = read_artifact_mark(connection)
    fit = find_fit(connection, place, mark)
    if fit is PlaceFit.FOREIGN:
        raise make_foreign_error(place)
    if fit is PlaceFit.OTHER and mark is not None:
        if not (place.is_default and mark.is_default):
            raise make_other_error(place, mark)
        yield DataDirIssue(explain_folders(place, mark))
        return
    entries = place.list_entries()
    sizes = {entry.digest: entry.size_bytes for entry in entries if entry.digest is not None}
    for artifact_id, sha256, size in connection.execute(_FILES_SQL).fetchall():
        trouble = check_artifact_bytes(place, sha256, size, sizes, deep=deep)
        if trouble:
            yield DataDirIssue(f"The bytes of `{artifact_id}` are {trouble}; restore a backup.")
    if is_marked_as_copy(connection) or fit is PlaceFit.OPEN:
        return  # what the original names may be there, too
    left = sum(1 for _ in list_unreferenced(PostgresUpkeep(connection), place))
    if left:
        yield DataDirIssue(f"{left} files are named by no record.", "delete them", serious=False)
