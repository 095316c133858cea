"""Retention: deletion of work that ended long ago, with its events, artifacts and bytes."""

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Final

from toolkit.contract.base import format_rfc3339, now
from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.store.blob_places.folder import BlobFolder
from toolkit.store.blob_places.place import BlobEntry, BlobPlace, delete_unreferenced
from toolkit.store.data_dir.location import find_database, is_copy
from toolkit.store.sqlite.connections import BUSY_TIMEOUT_MS, translate_errors
from toolkit.store.table_roles import OwnerKind, get_roles
from toolkit.store.tables import list_pruned_tables

ROOTS_PER_TRANSACTION = 500  # roots in one transaction: other writers go in between
# Bytes are stored shortly before their record: only older ones without a record are unreferenced.
MIN_UNREFERENCED_AGE_S = 3600.0
# An hour longer than promised, as the wall clock may be changed.
IDEMPOTENCY_RETENTION = timedelta(hours=25)
_SCRATCH_TABLES_SQL = """
CREATE TEMP TABLE gone_roots (id TEXT PRIMARY KEY);
CREATE TEMP TABLE gone_jobs (id TEXT PRIMARY KEY);
CREATE TEMP TABLE gone_workflows (id TEXT PRIMARY KEY);
"""
_IN_ROOTS_SQL = "WHERE root_id IN (SELECT id FROM gone_roots)"
# Where the ids of owners to delete are, by the kind of owner.
_GONE_TABLES_SQL: Final[dict[OwnerKind, str]] = {
    "root": "IN (SELECT id FROM gone_roots)",
    "workflow": "IN (SELECT id FROM gone_workflows)",
    "job": "IN (SELECT id FROM gone_jobs)",
}
# Those of all tables, and what belongs to no root.
PRUNED_TABLES = (
    *(table.name for table in list_pruned_tables()),
    "plans",
    "idempotency",
    "reservations",
    "spending",
)


@dataclass(slots=True)
class PruneResult:
    """The result of pruning, or of its dry run.

    Attributes:
        rows: how many rows, by table.
        files: how many files of artifacts' bytes.
        freed_bytes: the size of those files; space in the database is used again by new rows.
        is_copy: true if bytes in object storage were left, as the original has them, too.
    """

    rows: Counter[str] = field(default_factory=Counter)
    files: int = 0
    freed_bytes: int = 0
    is_copy: bool = False


def prune_data_dir(
    data_dir: Path,
    older_than: timedelta,
    *,
    dry_run: bool = False,
    place: BlobPlace | None = None,
) -> PruneResult:
    """Delete runs, workflows, tasks and jobs that ended long ago, with all that belongs to them.

    Uploads, accounts, connections and managed resources stay. So do results that later workflows
    started from. Others may use the directory meanwhile.

    Args:
        data_dir: where everything is kept.
        older_than: counted from when the work was asked for.
        dry_run: only return what would be deleted.
        place: where artifacts' bytes are; in `data_dir` by default.

    Raises:
        ServiceError: `UNAVAILABLE` when the directory cannot be used, or is of another version.
    """
    find_database(data_dir, newest=True)
    place = place or BlobFolder(data_dir / "artifacts")
    check_unmarked(place)
    found = PruneResult()
    cutoff = format_rfc3339(now() - older_than)
    with translate_errors(), closing(_open_connection(data_dir)) as connection:
        old = _find_ended_roots(connection, cutoff)
        at_once = len(old) or 1 if dry_run else ROOTS_PER_TRANSACTION
        for group in [old[at : at + at_once] for at in range(0, len(old), at_once)] or [[]]:
            with _open_transaction(connection, keep=not dry_run):
                _delete_roots(connection, group, found.rows)
                _delete_leftovers(connection, cutoff, found.rows)
                still_named = find_referenced_digests(connection)
        if place.is_remote and is_copy(data_dir, connection):
            found.is_copy = True  # what the original still names is there, too
            return found
        for entry in find_unreferenced_entries(place, still_named):
            if dry_run or delete_entry(place, entry, partial(is_referenced, connection)):
                found.files += 1
                found.freed_bytes += entry.size_bytes
    return found


def check_unmarked(place: BlobPlace) -> None:
    """Refuse a place that belongs to a database: a directory's records name none of its bytes.

    Raises:
        ServiceError: `UNAVAILABLE`.
    """
    if place.read_mark():
        raise ServiceError(
            ErrorCode.UNAVAILABLE,
            f"The artifacts in {place.name} belong to a database: name it (--database,"
            " TOOLKIT_DATABASE), or another place.",
        )


def find_referenced_digests(connection: sqlite3.Connection) -> set[str]:
    """Return the SHA-256 of all bytes that an artifact refers to."""
    rows = connection.execute("SELECT sha256 FROM artifacts WHERE NOT deleted")
    return {str(row[0]) for row in rows}


def find_unreferenced_entries(place: BlobPlace, digests: set[str]) -> Iterator[BlobEntry]:
    """Yield the bytes that no record refers to, and those of interrupted writes."""
    for entry in place.list_entries():
        if entry.is_older_than(MIN_UNREFERENCED_AGE_S) and entry.digest not in digests:
            yield entry


def is_referenced(connection: sqlite3.Connection, digest: str) -> bool:
    """Tell whether an artifact refers to the bytes of a SHA-256."""
    rows = connection.execute(
        "SELECT 1 FROM artifacts WHERE sha256 = ? AND NOT deleted LIMIT 1", (digest,)
    )
    return rows.fetchone() is not None


def delete_entry(place: BlobPlace, entry: BlobEntry, is_named: Callable[[str], bool]) -> bool:
    """Delete bytes that no record refers to; others may store the same ones meanwhile.

    Args:
        place: where they are.
        entry: what is there.
        is_named: tells whether a record refers to the bytes of a SHA-256 by now.

    Returns:
        whether they are gone; not where they were stored again since they were listed.
    """
    if entry.digest is None:
        place.remove_leftover(entry.name)
        return True
    is_wanted = partial(is_named, entry.digest)
    return delete_unreferenced(place, entry.digest, MIN_UNREFERENCED_AGE_S, is_wanted)


def build_owner_conditions(gone: Mapping[OwnerKind, str]) -> dict[str, list[str]]:
    """Build the conditions of rows that go with their owners, by table: one of them is enough.

    Args:
        gone: the condition, without its left side, that an id is of an owner that goes, by kind.
    """
    return {
        table.name: [
            f"{column} {gone[kind]}"
            for column, kinds in get_roles(table).deleted_with.items()
            for kind in kinds
        ]
        for table in list_pruned_tables()
    }


def _open_connection(data_dir: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(f"file:{data_dir / 'state.db'}?mode=rw", uri=True)
    with ExitStack() as opened:
        opened.callback(connection.close)
        connection.isolation_level = None
        connection.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
        connection.execute("PRAGMA wal_autocheckpoint=0")
        connection.executescript(_SCRATCH_TABLES_SQL)
        opened.pop_all()
    return connection


def _find_ended_roots(connection: sqlite3.Connection, cutoff: str) -> list[str]:
    """Return the roots that ended long ago, without those whose results later work started from."""
    rows = connection.execute(
        "SELECT id FROM roots WHERE NOT open AND created_at < ? ORDER BY id", (cutoff,)
    )
    old = {str(row[0]) for row in rows}
    kept: set[str] = set()
    for root_id, spec in connection.execute("SELECT root_id, spec FROM workflows"):
        if root_id not in old:
            kept.update(json.loads(spec).get("kept", {}).values())
    for job_id in kept:
        row = connection.execute("SELECT root_id FROM jobs WHERE id = ?", (job_id,)).fetchone()
        old.discard(str(row[0]) if row else "")
    return sorted(old)


def _delete_roots(connection: sqlite3.Connection, group: Sequence[str], rows: Counter[str]) -> None:
    """Delete all rows of some roots."""
    for table in ("gone_roots", "gone_jobs", "gone_workflows"):
        connection.execute(f"DELETE FROM {table}")  # noqa: S608 - our names
    connection.executemany("INSERT INTO gone_roots VALUES (?)", [(each,) for each in group])
    connection.execute(f"INSERT INTO gone_jobs SELECT id FROM jobs {_IN_ROOTS_SQL}")  # noqa: S608
    connection.execute(f"INSERT INTO gone_workflows SELECT id FROM workflows {_IN_ROOTS_SQL}")  # noqa: S608
    for table, conditions in build_owner_conditions(_GONE_TABLES_SQL).items():
        where = " OR ".join(conditions)
        rows[table] += connection.execute(f"DELETE FROM {table} WHERE {where}").rowcount  # noqa: S608


def _delete_leftovers(connection: sqlite3.Connection, cutoff: str, rows: Counter[str]) -> None:
    """Delete old rows that belong to no root.

    These are plans that no task carries out, deleted uploads, idempotent responses, and the
    spending of past days.
    """
    tasks = connection.execute("SELECT json_extract(doc, '$.plan_id') FROM tasks")
    carried_out = {row[0] for row in tasks}
    plans = connection.execute("SELECT id FROM plans WHERE created_at < ?", (cutoff,))
    old = [row[0] for row in plans if row[0] not in carried_out]
    connection.executemany("DELETE FROM plans WHERE id = ?", [(each,) for each in old])
    rows["plans"] += len(old)
    gone = connection.execute(
        "DELETE FROM idempotency WHERE created_at < ?",
        (format_rfc3339(now() - IDEMPOTENCY_RETENTION),),
    )
    rows["idempotency"] += gone.rowcount
    day = min(cutoff[:10], format_rfc3339(now())[:10])
    for table, where, value in (
        ("artifacts", "deleted AND job_id IS NULL AND created_at < ?", cutoff),
        ("reservations", "substr(spending_id, -10) < ?", day),
        ("spending", "substr(id, -10) < ?", day),
    ):
        gone = connection.execute(f"DELETE FROM {table} WHERE {where}", (value,))  # noqa: S608
        rows[table] += gone.rowcount


@contextmanager
def _open_transaction(connection: sqlite3.Connection, *, keep: bool) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT" if keep else "ROLLBACK")
