"""Checks of a data directory, and the repairs that are possible."""

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from shutil import disk_usage
from typing import TypeVar

from sqlalchemy import create_engine

from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.store.blob_places.folder import BlobFolder
from toolkit.store.blob_places.place import BlobPlace, compute_stored_sha256
from toolkit.store.data_dir.location import (
    COPY_NUMBER,
    UNMARKED_NUMBER,
    find_database,
    is_copy,
    open_for_reading,
)
from toolkit.store.data_dir.owners import find_active_owners
from toolkit.store.maintenance.prune import delete_unreferenced_files, list_unreferenced
from toolkit.store.private_files import create_private_file
from toolkit.store.read_connection import Row
from toolkit.store.read_statements import build_find
from toolkit.store.schema import HEAD_REVISION, check_not_later, migrate_schema, read_schema_version
from toolkit.store.sqlite.connections import is_writable, open_read_only, translate_errors
from toolkit.store.sqlite.reads import SqliteReadConnection
from toolkit.store.sqlite.upkeep import SqliteUpkeep
from toolkit.store.stored_bytes import build_recount, find_miscounted
from toolkit.store.table_roles import get_roles
from toolkit.store.tables import metadata
from toolkit.store.text_index import index_missing

T = TypeVar("T")
MANAGED_TABLES = tuple(
    table.name for table in metadata.tables.values() if get_roles(table).is_managed
)
LOW_DISK_BYTES = 256 * 1024 * 1024
# In these versions two connections that checkpoint at once can corrupt a database: the toolkit has
# one do it, under a lock.
WAL_BUG_VERSIONS = ((3, 7, 0), (3, 51, 2))

# The numbers in a database's header.
_HEADER_PRAGMAS = ("application_id", "user_version")
# Roots whose records are lost.
_LOST_ROOTS = (
    "kind = 'run' AND id NOT IN (SELECT run_id FROM jobs WHERE run_id IS NOT NULL)",
    "kind = 'job' AND id NOT IN (SELECT id FROM jobs)",
    "kind = 'workflow' AND id NOT IN (SELECT id FROM workflows)",
    "kind = 'task' AND id NOT IN (SELECT id FROM tasks)",
)


@dataclass(frozen=True, slots=True)
class DataDirIssue:
    """An issue of a data directory that its owner should know of.

    Attributes:
        what: the issue, in one line.
        repair: the repair that `repair_data_dir` makes; None where none is possible or needed.
        serious: true if something is, or will be, lost or refused.
    """

    what: str
    repair: str | None = None
    serious: bool = True


def check_data_dir(
    data_dir: Path, *, deep: bool = False, place: BlobPlace | None = None
) -> list[DataDirIssue]:
    """Check a data directory without changing anything.

    Args:
        data_dir: where everything is kept.
        deep: also read every artifact's bytes, and check them against their SHA-256.
        place: where those are; in `data_dir` by default.

    Raises:
        ServiceError: `UNAVAILABLE` when there is no data directory.
    """
    database = find_database(data_dir)
    found = [*_check_machine(data_dir)]
    faults = _check_integrity(database)
    if faults:
        found.append(
            DataDirIssue(
                f"The database is damaged: {faults[0]}"
                + (f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""),
                "save what can be read into a new database, and keep the damaged one",
            )
        )
        return found
    with open_for_reading(database) as connection:
        found += _check_records(data_dir, connection)
        there = place or BlobFolder(data_dir / "artifacts")
        try:
            found += _check_artifacts(data_dir, connection, there, deep=deep)
        except ServiceError as error:
            found.append(DataDirIssue(f"Artifacts could not be looked at: {error.message}"))
    return found


def repair_data_dir(data_dir: Path, *, place: BlobPlace | None = None) -> list[str]:
    """Make the repairs that `check_data_dir` offers, and nothing else.

    Args:
        data_dir: where everything is kept.
        place: where artifacts' bytes are; in `data_dir` by default.

    Returns:
        a line for each repair that was made.

    Raises:
        ServiceError: `UNAVAILABLE` when there is none, or another process has it open.
    """
    database = find_database(data_dir)
    if find_active_owners(data_dir):
        raise ServiceError(
            ErrorCode.UNAVAILABLE, "A process has this data directory open; stop it first."
        )
    done: list[str] = []
    if _check_integrity(database):
        done.append(_rebuild_database(database))
    with open_for_reading(database) as connection:
        there = place or BlobFolder(data_dir / "artifacts")
        records = SqliteUpkeep(connection, data_dir)
        if not records.shares_bytes(there):
            done += delete_unreferenced_files(records, there)
    if _recount_stored_bytes(database):
        done.append("Counted again what accounts keep.")
    locks = list((data_dir / "owners").glob("*.lock"))
    for path in locks:
        path.unlink()
    if locks:
        done.append(f"Deleted the lock files of {len(locks)} processes that have gone.")
    return done


def _recount_stored_bytes(database: Path) -> bool:
    """Recompute wrong sums of stored bytes; return whether there were any."""
    with translate_errors(), closing(sqlite3.connect(database)) as connection:
        made = connection.execute("SELECT version_num FROM alembic_version").fetchone()
        if made is None or made[0] != HEAD_REVISION or not find_miscounted(connection):
            return False
        for statement in build_recount("sqlite"):
            connection.execute(statement)
        connection.commit()
    return True


def _check_machine(data_dir: Path) -> Iterator[DataDirIssue]:
    free = disk_usage(data_dir).free
    if not is_writable(data_dir):
        yield DataDirIssue(
            "Nothing can be written to it from here: it can only be looked at (--read-only).",
            serious=False,
        )
    elif free < LOW_DISK_BYTES:
        yield DataDirIssue(
            f"Only {free // 1024**2} MB are free on its disk: new work may be refused."
        )
    version = sqlite3.sqlite_version_info
    if WAL_BUG_VERSIONS[0] <= version <= WAL_BUG_VERSIONS[1]:
        yield DataDirIssue(
            f"SQLite {sqlite3.sqlite_version} can corrupt a database that two connections"
            " checkpoint at once; the toolkit has one do it, so open it with nothing else.",
            serious=False,
        )


def _check_records(data_dir: Path, connection: sqlite3.Connection) -> Iterator[DataDirIssue]:
    copy = is_copy(data_dir, connection)
    if copy:
        yield DataDirIssue(
            "It is a copy of another data directory: what was left lying in it is held, and nothing"
            " at GPU clouds is touched, until `toolkit serve --take-up`.",
            serious=False,
        )
    (revision,) = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    if revision > HEAD_REVISION:
        yield DataDirIssue(
            f"It is of revision {revision}, which a later version made; this one knows"
            f" {HEAD_REVISION}, and can go on with it for now.",
            serious=False,
        )
    elif revision != HEAD_REVISION:
        yield DataDirIssue(
            f"It is of revision {revision}, and is brought to {HEAD_REVISION} when it is next"
            " opened.",
            serious=False,
        )
    elif miscounted := find_miscounted(connection):
        yield DataDirIssue(
            f"What {len(miscounted)} accounts keep is not summed up right.",
            "count it again",
            serious=False,
        )
    alive = find_active_owners(data_dir)
    owners = Counter(
        owner in alive for (owner,) in connection.execute("SELECT owner FROM roots WHERE open")
    )
    if owners[False]:
        goes_on = (
            "they are held" if copy else "the next one to open the directory goes on with them"
        )
        yield DataDirIssue(
            f"{owners[False]} runs, workflows or tasks were left by a process that has gone;"
            f" {goes_on}.",
            serious=False,
        )
    for table in _filter_existing_tables(connection, MANAGED_TABLES):
        rows = connection.execute(
            f"SELECT id FROM {table} WHERE status = 'deleting'"  # noqa: S608
            " OR status = 'creating' AND vendor_id IS NULL"
        )
        for (record_id,) in rows:
            yield DataDirIssue(
                f"`{record_id}` was being made or deleted at its vendor: open the directory with"
                " that connection, and it is settled.",
                serious=not alive and not copy,
            )
    dead = {path.stem for path in (data_dir / "owners").glob("*.lock")} - alive
    if dead:
        yield DataDirIssue(
            f"{len(dead)} processes have gone.", "delete their lock files", serious=False
        )


def read_managed_resources(data_dir: Path) -> dict[str, list[Row]]:
    """Read the rows of connections and of managed resources, by table.

    Raises:
        ServiceError: `UNAVAILABLE` when the database cannot be read.
    """
    with open_for_reading(find_database(data_dir)) as connection:
        reads = SqliteReadConnection(connection)
        made = {*_filter_existing_tables(connection, MANAGED_TABLES), "connections"}
        return {
            table: reads.read_rows(build_find("sqlite", table, ()), {}) if table in made else []
            for table in (*MANAGED_TABLES, "connections")
        }


def _filter_existing_tables(connection: sqlite3.Connection, tables: Iterable[str]) -> list[str]:
    """Return those tables that the database has; an earlier version may lack some."""
    names = set(_list_tables(connection))
    return [table for table in tables if table in names]


def _check_artifacts(
    data_dir: Path, connection: sqlite3.Connection, place: BlobPlace, *, deep: bool
) -> Iterator[DataDirIssue]:
    entries = list(place.list_entries())
    sizes = {entry.digest: entry.size_bytes for entry in entries if entry.digest is not None}
    # Without that folder they are kept elsewhere, by a setting that this shell does not have.
    is_known = place.is_remote or bool(entries) or (data_dir / "artifacts").exists()
    for sha256, doc, small in connection.execute(
        "SELECT sha256, doc, content IS NOT NULL FROM artifacts WHERE NOT deleted"
    ):
        artifact = json.loads(doc)
        trouble = (
            None
            if small or not is_known
            else check_artifact_bytes(place, sha256, artifact["size_bytes"], sizes, deep=deep)
        )
        if trouble:
            yield DataDirIssue(f"The bytes of `{artifact['id']}` are {trouble}; restore a backup.")
    records = SqliteUpkeep(connection, data_dir)
    if records.shares_bytes(place):
        return  # what the original names is there, too
    left = sum(1 for _ in list_unreferenced(records, place))
    if left:
        yield DataDirIssue(f"{left} files are named by no record.", "delete them", serious=False)


def check_artifact_bytes(
    place: BlobPlace, sha256: str, size: int | None, sizes: dict[str, int], *, deep: bool
) -> str | None:
    """Check the bytes of one artifact; return what is wrong with them, if anything is.

    Args:
        place: where they are.
        sha256: theirs.
        size: as their record has it, if it does.
        sizes: of what the place had when it was listed, by SHA-256.
        deep: also read them.
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


def _check_integrity(database: Path) -> list[str]:
    """Return the errors that SQLite finds in its file."""
    try:
        with closing(open_read_only(database)) as connection:
            rows = connection.execute("PRAGMA integrity_check(20)").fetchall()
    except sqlite3.DatabaseError as error:
        return [str(error)]
    return [str(row[0]) for row in rows if row[0] != "ok"]


def _rebuild_database(database: Path) -> str:
    """Save all readable rows into a new database, and set the damaged one aside."""
    new = database.with_name("state.db.new")
    new.unlink(missing_ok=True)
    saved: Counter[str] = Counter()
    with closing(open_read_only(database)) as source:
        version = _read_or_default(lambda: read_schema_version(source), None)
        check_not_later(version)
        if version is not None and version.revision != HEAD_REVISION:
            raise ServiceError(
                ErrorCode.UNAVAILABLE,
                "An earlier version of the toolkit made these tables: repair them by that version.",
            )
        application_id, number = (
            _read_or_default(partial(_read_pragma, source, name), 0) for name in _HEADER_PRAGMAS
        )
        create_private_file(new)
        engine = create_engine(f"sqlite:///{new}")
        try:
            with translate_errors(), engine.connect() as connection:
                migrate_schema(connection)
        finally:
            engine.dispose()
        with closing(sqlite3.connect(new)) as target:
            target.execute(f"PRAGMA application_id = {application_id}")
            # A copy stays one. The original is known by its new file once it is opened again.
            copy = number and _read_or_default(lambda: is_copy(database.parent, source), False)
            target.execute(f"PRAGMA user_version = {COPY_NUMBER if copy else UNMARKED_NUMBER}")
            for table in _list_tables(target):
                there = _list_columns(source, table)
                names = [
                    name
                    for name in _list_columns(target, table)
                    if name in there and name != "text_number"
                ]
                into = f"INSERT OR IGNORE INTO {table} ({', '.join(names)}) VALUES "  # noqa: S608
                into += f"({', '.join('?' * len(names))})"
                for row in _read_intact_rows(source, table, names):
                    saved[table] += target.execute(into, row).rowcount
            lost = 0
            for condition in _LOST_ROOTS:
                deleted = target.execute(f"DELETE FROM roots WHERE {condition}")  # noqa: S608
                lost += deleted.rowcount
            for statement in build_recount("sqlite"):
                target.execute(statement)
            index_missing(target, "sqlite")
            target.commit()
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    aside = database.with_name(f"state.db.damaged-{stamp}")
    database.replace(aside)
    for suffix in ("-wal", "-shm"):
        log = database.with_name(database.name + suffix)
        if log.exists():
            log.replace(aside.with_name(aside.name + suffix))
    new.replace(database)
    told = ", ".join(f"{count} {table}" for table, count in saved.items() if count)
    gone = f" The records of {lost} runs, workflows or tasks are lost." if lost else ""
    return f"Saved {told or 'nothing'} into a new database; the damaged one is {aside.name}.{gone}"


def _read_or_default(read: Callable[[], T], otherwise: T) -> T:
    """Read a value that may be on a damaged page, or return a default."""
    try:
        return read()
    except sqlite3.DatabaseError:
        return otherwise


def _read_pragma(source: sqlite3.Connection, name: str) -> int:
    return int(source.execute(f"PRAGMA {name}").fetchone()[0])


def _list_tables(connection: sqlite3.Connection) -> list[str]:
    found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    return [
        str(name)
        for (name,) in found
        if name != "alembic_version" and not name.startswith("input_text")
    ]


def _list_columns(connection: sqlite3.Connection, table: str) -> list[str]:
    def read() -> list[str]:
        return [str(row[1]) for row in connection.execute(f"PRAGMA table_info({table})")]

    return _read_or_default(read, [])


def _read_intact_rows(
    source: sqlite3.Connection, table: str, names: list[str]
) -> Iterator[tuple[object, ...]]:
    """Yield the readable rows of a table, from both ends up to where it is damaged."""
    for order in _build_orders(source, table):
        try:
            yield from source.execute(
                f"SELECT {', '.join(names)} FROM {table} NOT INDEXED {order}"  # noqa: S608
            )
        except sqlite3.DatabaseError:
            continue
        return


def _build_orders(source: sqlite3.Connection, table: str) -> tuple[str, str]:
    key = "rowid" if _has_rowid(source, table) else "resource_id, n"
    last = ", ".join(f"{each} DESC" for each in key.split(", "))
    return f"ORDER BY {key}", f"ORDER BY {last}"


def _has_rowid(source: sqlite3.Connection, table: str) -> bool:
    try:
        source.execute(f"SELECT rowid FROM {table} LIMIT 0")  # noqa: S608
    except sqlite3.DatabaseError:
        return False
    return True
