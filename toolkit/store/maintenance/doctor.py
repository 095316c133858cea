"""Checks of a database, its disk, files and artifacts, and repairs of faults that allow one."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

from sqlalchemy import select

from toolkit.contract.errors import ServiceError
from toolkit.store.blob_places.place import BlobPlace, compute_stored_sha256
from toolkit.store.changes import make_unusable_error
from toolkit.store.data_dir.location import find_database
from toolkit.store.data_dir.owners import find_active_owners
from toolkit.store.maintenance.prune import delete_unreferenced_files, list_unreferenced
from toolkit.store.maintenance.upkeep_database import DataDirIssue, UpkeepDatabase
from toolkit.store.read_connection import Row
from toolkit.store.schema import HEAD_REVISION
from toolkit.store.sqlite.rebuilding import rebuild_database
from toolkit.store.sqlite.upkeep import SqliteUpkeep
from toolkit.store.stored_bytes import ADD_SQL, build_shortfall_query
from toolkit.store.table_roles import get_roles
from toolkit.store.tables import connections, metadata

_MANAGED_TABLES: Final = tuple(
    table for table in metadata.tables.values() if get_roles(table).is_managed
)
_HALF_MADE_SQL: Final = (
    "SELECT id FROM {table} WHERE status = 'deleting' OR status = 'creating' AND vendor_id IS NULL"
)
_FILES_SQL: Final = (
    "SELECT id, sha256, size_bytes FROM artifacts WHERE NOT deleted AND content IS NULL ORDER BY id"
)


def check_database(
    database: UpkeepDatabase, place: BlobPlace, *, deep: bool = False
) -> Iterator[DataDirIssue]:
    """Check a database without changing anything, and yield the issues found.

    Args:
        database: database opened for reading, in any state.
        deep: whether to read all bytes, and compare them with their SHA-256.

    Raises:
        ServiceError: `UNAVAILABLE` when it cannot be read.
    """
    yield from database.check_surroundings()
    if faults := database.find_damage():
        suffix = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        yield DataDirIssue(
            f"The database is damaged: {faults[0]}{suffix}",
            "save all readable rows into a new database, and keep the damaged database",
        )
        return
    revision = str(database.fetch("SELECT version_num FROM alembic_version")[0][0])
    if revision < HEAD_REVISION:
        yield DataDirIssue(
            f"The tables are of revision {revision}; the next engine migrates them to"
            f" {HEAD_REVISION}.",
            serious=False,
        )
        return
    yield from _check_records(database, revision)
    try:
        yield from _check_artifacts(database, place, deep=deep)
    except ServiceError as error:
        yield DataDirIssue(f"Artifacts could not be checked: {error.message}")


def repair_database(database: UpkeepDatabase, place: BlobPlace) -> list[str]:
    """Delete bytes that no record names, and correct the sums of stored bytes.

    Args:
        database: database of the newest revision.

    Returns:
        A line for each repair that was made.

    Raises:
        ServiceError: `UNAVAILABLE` when it cannot be used, or its artifacts are elsewhere.
    """
    repairs = []
    if not database.shares_bytes(place):
        repairs += delete_unreferenced_files(database, place)
    if _correct_sums(database):
        repairs.append("Recounted the stored bytes of accounts.")
    return repairs


def repair_data_dir(data_dir: Path, place: BlobPlace) -> list[str]:
    """Make the repairs that `check_database` offers for a data directory.

    A damaged database is rebuilt first, and lock files of ended processes are deleted.

    Raises:
        ServiceError: `UNAVAILABLE` when there is none, or another process has it open.
    """
    database = find_database(data_dir)
    if find_active_owners(data_dir):
        raise make_unusable_error("A process has this data directory open; stop it first.")
    repairs: list[str] = []
    with SqliteUpkeep.view(data_dir) as records:
        is_damaged = bool(records.find_damage())
    if is_damaged:
        repairs.append(rebuild_database(database))
    with SqliteUpkeep.open(data_dir) as records:
        repairs += repair_database(records, place)
    locks = list((data_dir / "owners").glob("*.lock"))
    for path in locks:
        path.unlink()
    if locks:
        repairs.append(f"Deleted the lock files of {len(locks)} ended processes.")
    return repairs


def _correct_sums(database: UpkeepDatabase) -> bool:
    """Correct the wrong sums of the accounts' stored bytes; return whether any were wrong.

    Adding up all rows may take minutes, and every commit of an engine changes some sum. So the
    shortfall of a sum is computed as of one moment, and then added to its current value. The
    triggers of rows that were written meanwhile have counted those rows already.
    """
    # Two repairs at once would find the same shortfalls, and each would add them.
    with database.hold_lock("recount"):
        shortfalls = database.fetch(build_shortfall_query(database.kind))
        for account_id, artifacts, records in shortfalls:
            missing = {"id": account_id, "artifacts": int(artifacts), "records": int(records)}
            database.change(partial(database.run, ADD_SQL, **missing))
    return bool(shortfalls)


def read_managed_rows(database: UpkeepDatabase) -> dict[str, list[Row]]:
    """Read the rows of connections and of managed resources, by table.

    Raises:
        ServiceError: `UNAVAILABLE` when the database cannot be read.
    """
    return {
        table.name: [
            dict(zip(table.columns.keys(), row, strict=True))
            for row in database.fetch(select(table).order_by(table.c.id))
        ]
        for table in (*_MANAGED_TABLES, connections)
    }


def _check_records(database: UpkeepDatabase, revision: str) -> Iterator[DataDirIssue]:
    copy = database.is_copy()
    if copy:
        yield DataDirIssue(
            f"It is a copy of another {database.word}: its unfinished work is held, and nothing at"
            " GPU clouds is changed, until `toolkit serve --take-up`.",
            serious=False,
        )
    if revision > HEAD_REVISION:
        yield DataDirIssue(
            f"The tables are of revision {revision} of a later version; this version has"
            f" {HEAD_REVISION}, and can still use them.",
            serious=False,
        )
    elif miscounted := database.fetch(build_shortfall_query(database.kind)):
        yield DataDirIssue(
            f"The sums of stored bytes of {len(miscounted)} accounts are wrong.",
            "count them again",
            serious=False,
        )
    if count := database.count_left():
        goes_on = "they are held" if copy else "the next engine resumes them"
        yield DataDirIssue(
            f"An ended engine left {count} runs, workflows or tasks unfinished; {goes_on}.",
            serious=False,
        )
    for table in _MANAGED_TABLES:
        for (record_id,) in database.fetch(_HALF_MADE_SQL.format(table=table.name)):
            yield DataDirIssue(
                f"`{record_id}` was being created or deleted at its vendor: open the"
                f" {database.word} with that connection, and the engine finishes this.",
                serious=not copy and not database.has_engines(),
            )


def _check_artifacts(
    database: UpkeepDatabase, place: BlobPlace, *, deep: bool
) -> Iterator[DataDirIssue]:
    state = database.examine_place(place)
    if state.explanation is not None:
        yield DataDirIssue(state.explanation)
    if not state.is_known:
        return
    entries = place.list_entries()
    sizes = {entry.digest: entry.size_bytes for entry in entries if entry.digest is not None}
    for artifact_id, sha256, size in database.fetch(_FILES_SQL):
        trouble = _check_bytes(place, sha256, size, sizes, deep=deep)
        if trouble:
            yield DataDirIssue(f"The bytes of `{artifact_id}` are {trouble}; restore a backup.")
    if not state.is_own or database.shares_bytes(place):
        return  # the records of other databases may name these bytes
    count = sum(1 for _ in list_unreferenced(database, place))
    if count:
        yield DataDirIssue(f"No record names {count} of the files.", "delete them", serious=False)


def _check_bytes(
    place: BlobPlace, sha256: str, size: int | None, sizes: dict[str, int], *, deep: bool
) -> str | None:
    """Check the bytes of one artifact; return a description of the fault, or None.

    Args:
        sizes: sizes of the bytes that the place listed, by SHA-256.
    """
    if sha256 not in sizes:
        # It may have been stored since they were listed.
        try:
            sizes[sha256] = place.find_size(sha256)
        except FileNotFoundError:
            return "not there"
    if size is not None and sizes[sha256] != size:
        return "not whole"
    if deep and compute_stored_sha256(place, sha256, sizes[sha256]) != sha256:
        return "damaged"
    return None
