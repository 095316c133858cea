"""Retention in a database of PostgreSQL, beside engines that have it open.

Rows go some hundred in a transaction, which locks first what the writers of engines lock first.
What has no index to be found by (artifacts and cached answers of a job) is looked for in one pass
over its table, a page at a time. A dry run counts by reads alone.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from functools import partial
from itertools import islice
from time import sleep
from typing import Any, Final, TypeVar

from psycopg import Connection, errors

from toolkit.contract.base import format_rfc3339, now
from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.store.blob_places.place import BlobEntry, BlobPlace
from toolkit.store.maintenance import prune
from toolkit.store.maintenance.prune import (
    IDEMPOTENCY_RETENTION,
    PRUNED_TABLES,
    PruneResult,
    build_owner_conditions,
)
from toolkit.store.postgres.artifact_place import (
    PlaceFit,
    find_fit,
    make_foreign_error,
    make_other_error,
    read_artifact_mark,
)
from toolkit.store.postgres.mark import is_marked_as_copy
from toolkit.store.postgres.opening import open_existing
from toolkit.store.tables import metadata

T = TypeVar("T")

ROOTS_PER_TRANSACTION: Final = 100
ROWS_PER_TRANSACTION: Final = 2_000
ENTRIES_AT_ONCE: Final = 500
# Whoever waits for longer lets go, and tries again.
LOCK_TIMEOUT_MS: Final = 1_000
MAX_TRIES: Final = 10
RETRY_WAIT_S: Final = 0.1
# A job's rows go in another transaction than its artifacts': those of an interrupted one go later.
MIN_ORPHAN_AGE: Final = timedelta(hours=1)

_SCRATCH_TABLES: Final = ("old_roots", "gone_jobs")
_FIND_ROOTS_SQL: Final = (
    "INSERT INTO old_roots SELECT id FROM roots WHERE NOT open AND created_at < %s"
)
# Jobs that workflows started from: the values of the member `kept` of what they were made of.
_KEPT_JOBS_SQL: Final = (
    "SELECT jobs.root_id FROM workflows"
    " CROSS JOIN LATERAL (SELECT read_json(workflows.spec) -> 'kept' AS jobs) AS named"
    " CROSS JOIN LATERAL jsonb_each_text("
    "CASE jsonb_typeof(named.jobs) WHEN 'object' THEN named.jobs END) AS kept"
    " JOIN jobs ON jobs.id = kept.value"
)
_KEEP_ROOTS_SQL: Final = (
    f"DELETE FROM old_roots WHERE id IN ({_KEPT_JOBS_SQL}"  # noqa: S608 - our names
    " WHERE workflows.root_id NOT IN (SELECT id FROM old_roots))"
)
_LOCK_ROOTS_SQL: Final = (
    "SELECT id, account_id FROM roots WHERE id = ANY(%(ids)s) AND NOT open"  # noqa: S608
    f" AND id NOT IN ({_KEPT_JOBS_SQL} WHERE workflows.id > %(newest)s)"
    " ORDER BY id FOR UPDATE SKIP LOCKED"
)
_LOCK_SUMS_SQL: Final = "SELECT 1 FROM stored_bytes WHERE id = ANY(%s) ORDER BY id FOR UPDATE"
# Without an index of their jobs, they are deleted in a pass over each table instead.
_UNINDEXED_TABLES: Final = frozenset({"cache", "artifacts"})
_ROOT_CONDITIONS: Final = build_owner_conditions(
    {"root": "= ANY(%(roots)s)", "workflow": "= ANY(%(workflows)s)", "job": "= ANY(%(jobs)s)"}
)
_IN_OLD_SQL: Final = "IN (SELECT id FROM old_roots)"
# The same, of all old roots at once, to be counted.
_OLD_CONDITIONS: Final = build_owner_conditions(
    {
        "root": _IN_OLD_SQL,
        "workflow": f"IN (SELECT id FROM workflows WHERE root_id {_IN_OLD_SQL})",  # noqa: S608
        "job": f"IN (SELECT id FROM jobs WHERE root_id {_IN_OLD_SQL})",  # noqa: S608
    }
)
_OF_OLD_JOB_SQL: Final = (
    "EXISTS (SELECT 1 FROM jobs JOIN old_roots ON old_roots.id = jobs.root_id"
    " WHERE jobs.id = {table}.job_id)"
)
_GONE_ARTIFACT_SQL: Final = (
    "EXISTS (SELECT 1 FROM gone_jobs WHERE gone_jobs.id = artifacts.job_id)"
    " OR job_id IS NOT NULL AND created_at < %(orphaned)s"
    " AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.id = artifacts.job_id)"
)
_DELETED_UPLOAD_SQL: Final = "deleted AND job_id IS NULL AND created_at < %(cutoff)s"
_IDLE_PLAN_SQL: Final = (
    "created_at < %(cutoff)s AND NOT EXISTS (SELECT 1 FROM tasks"
    " WHERE read_json(tasks.doc) ->> 'plan_id' = plans.id{condition})"
)
_NOT_OLD_SQL: Final = " AND NOT EXISTS (SELECT 1 FROM old_roots WHERE old_roots.id = tasks.id)"
# Of tasks that began since the old plans were listed.
_TAKEN_PLAN_SQL: Final = (
    "SELECT read_json(doc) ->> 'plan_id' FROM tasks WHERE id > %(newest)s"
    " AND read_json(doc) ->> 'plan_id' IS NOT NULL"
)
_NAMED_SQL: Final = (
    "SELECT DISTINCT sha256 FROM artifacts"
    " WHERE sha256 = ANY(%s) AND content IS NULL AND deleted = FALSE"
)


def prune_postgres(
    url: str, older_than: timedelta, place: BlobPlace, *, dry_run: bool = False
) -> PruneResult:
    """Delete runs, workflows, tasks and jobs that ended long ago, with all that belongs to them.

    The rules are those of `prune_data_dir`. Engines may have the database open meanwhile.

    Args:
        url: its address.
        older_than: counted from when the work was asked for.
        place: of its artifacts' bytes.
        dry_run: only return what would be deleted.

    Raises:
        ServiceError: `UNAVAILABLE` when it cannot be used, or its artifacts are elsewhere.
    """
    with open_existing(url, newest=True) as connection:
        check_artifact_place(connection, place)
        found = PruneResult(is_copy=is_marked_as_copy(connection))
        pruning = _Pruning(connection, older_than, found.rows)
        pruning.find_old_roots()
        if dry_run:
            pruning.count()
        else:
            pruning.delete()
        if found.is_copy:
            return found  # what the original still names is there, too
        left_out = f" AND NOT {_OF_OLD_JOB_SQL.format(table='artifacts')}" if dry_run else ""
        for entry in list_unreferenced(connection, place, left_out):
            if dry_run or prune.delete_entry(place, entry, partial(is_named, connection)):
                found.files += 1
                found.freed_bytes += entry.size_bytes
    return found


def check_artifact_place(connection: "Connection[Any]", place: BlobPlace) -> None:
    """Refuse a place that is not known to be that of a database's artifacts.

    Raises:
        ServiceError: `UNAVAILABLE`.
    """
    mark = read_artifact_mark(connection)
    fit = find_fit(connection, place, mark)
    if fit is PlaceFit.FOREIGN:
        raise make_foreign_error(place)
    if fit is PlaceFit.UNKNOWN:
        raise ServiceError(
            ErrorCode.UNAVAILABLE, f"The artifacts in {place.name} cannot be reached now."
        )
    if mark is None:
        raise ServiceError(
            ErrorCode.UNAVAILABLE,
            "No engine of this version has opened the database yet, which tells where its artifacts"
            " are: start one (`toolkit serve --database`), and prune then.",
        )
    if fit is PlaceFit.OTHER:
        raise make_other_error(place, mark)


def list_unreferenced(
    connection: "Connection[Any]", place: BlobPlace, condition: str = ""
) -> Iterator[BlobEntry]:
    """Yield the bytes that no record refers to, and those of interrupted writes.

    Args:
        connection: to the database.
        place: of its artifacts' bytes.
        condition: more that a record has to fulfil.
    """
    old = (each for each in place.list_entries() if _is_old(each))
    while page := list(islice(old, ENTRIES_AT_ONCE)):
        digests = [entry.digest for entry in page if entry.digest is not None]
        # After they were listed: what was stored since has its record, or is young.
        rows = connection.execute(f"{_NAMED_SQL}{condition}".encode(), (digests,)).fetchall()
        named = {str(row[0]) for row in rows}
        yield from (entry for entry in page if entry.digest not in named)


def _is_old(entry: BlobEntry) -> bool:
    return entry.is_older_than(prune.MIN_UNREFERENCED_AGE_S)


def is_named(connection: "Connection[Any]", digest: str) -> bool:
    """Tell whether a record refers to the bytes of a SHA-256."""
    return connection.execute(_NAMED_SQL.encode(), ([digest],)).fetchone() is not None


class _Pruning:
    """The deletion of old rows, or the count of them.

    Args:
        connection: in autocommit mode.
        older_than: counted from when the work was asked for.
        rows: to count in, by table.
    """

    def __init__(
        self, connection: "Connection[Any]", older_than: timedelta, rows: Counter[str]
    ) -> None:
        self._connection = connection
        self._rows = rows
        rows.update(dict.fromkeys(PRUNED_TABLES, 0))  # in the order in which they are told
        cutoff = format_rfc3339(now() - older_than)
        today = format_rfc3339(now())[:10]
        self._given: dict[str, Any] = {
            "cutoff": cutoff,
            "orphaned": min(cutoff, format_rfc3339(now() - MIN_ORPHAN_AGE)),
            "day": min(cutoff[:10], today),
            "expired": format_rfc3339(now() - IDEMPOTENCY_RETENTION),
        }
        self._newest = {
            table: str(self._fetch(f"SELECT max(id) FROM {table}")[0][0] or "")  # noqa: S608
            for table in ("workflows", "tasks")
        }

    def find_old_roots(self) -> None:
        """Find what ended long ago, without that whose results later work started from."""
        self._fetch(f"SET lock_timeout = {LOCK_TIMEOUT_MS}")
        for table in _SCRATCH_TABLES:
            self._fetch(f'CREATE TEMP TABLE {table} (id text COLLATE "C" PRIMARY KEY)')
        self._connection.execute(_FIND_ROOTS_SQL.encode(), (self._given["cutoff"],))
        self._connection.execute(_KEEP_ROOTS_SQL.encode())
        self._connection.execute(b"ANALYZE old_roots")

    def count(self) -> None:
        """Count all rows that would be deleted."""
        for table, conditions in _OLD_CONDITIONS.items():
            self._count(table, *conditions)
        for table, condition in self._list_leftovers(_NOT_OLD_SQL):
            self._count(table, condition)
        self._count("artifacts", _DELETED_UPLOAD_SQL)

    def delete(self) -> None:
        """Delete all of them, and what an interrupted deletion left."""
        # First of all: nothing is answered from the cache by a job that has gone.
        self._delete_pages("cache", _OF_OLD_JOB_SQL.format(table="cache"))
        after = ""
        while ids := self._fetch(
            "SELECT id FROM old_roots WHERE id > %s ORDER BY id LIMIT %s",
            (after, ROOTS_PER_TRANSACTION),
        ):
            group = [str(row[0]) for row in ids]
            after = group[-1]
            self._rows.update(self._try(partial(self._delete_roots, group)))
        self._connection.execute(b"ANALYZE gone_jobs")
        self._delete_pages("artifacts", f"{_GONE_ARTIFACT_SQL} OR {_DELETED_UPLOAD_SQL}")
        for table, condition in self._list_leftovers():
            self._delete_found(table, condition)

    def _list_leftovers(self, of_task: str = "") -> Iterator[tuple[str, str]]:
        """List the conditions of old rows that belong to no root, by table.

        Args:
            of_task: what else is true of a task that keeps its plan.
        """
        yield "plans", _IDLE_PLAN_SQL.format(condition=of_task)
        yield "idempotency", "created_at < %(expired)s"
        yield "reservations", "right(spending_id, 10) < %(day)s"
        yield "spending", "right(id, 10) < %(day)s"

    def _delete_roots(self, group: Sequence[str]) -> Counter[str]:
        """Delete all rows of some roots but those that were reopened, or are in use."""
        wanted = {"ids": list(group), "newest": self._newest["workflows"]}
        locked = self._fetch(_LOCK_ROOTS_SQL, wanted)
        self._fetch(_LOCK_SUMS_SQL, (sorted({str(row[1]) for row in locked}),))
        roots = [str(row[0]) for row in locked]
        of_roots = {"roots": roots}
        for table in ("workflows", "jobs"):
            found = self._fetch(f"SELECT id FROM {table} WHERE root_id = ANY(%s)", (roots,))  # noqa: S608
            of_roots[table] = [str(row[0]) for row in found]
        self._connection.execute(
            "INSERT INTO gone_jobs SELECT unnest(%s::text[])", (of_roots["jobs"],)
        )
        return Counter(
            {
                table: self._run(f"DELETE FROM {table} WHERE {' OR '.join(conditions)}", of_roots)  # noqa: S608
                for table, conditions in _ROOT_CONDITIONS.items()
                if table not in _UNINDEXED_TABLES
            }
        )

    def _delete_pages(self, table: str, condition: str) -> None:
        """Delete the rows of a table that fulfil a condition, in a pass over its ids."""
        page_sql = (
            f"SELECT max(id) FROM (SELECT id FROM {table} WHERE id > %s ORDER BY id"  # noqa: S608
            f" LIMIT {ROWS_PER_TRANSACTION}) AS page"
        )
        find_sql = (
            f"SELECT id, account_id FROM {table} WHERE id > %(after)s AND id <= %(last)s"  # noqa: S608
            f" AND ({condition})"
        )
        after = ""
        while (last := self._fetch(page_sql, (after,))[0][0]) is not None:
            found = self._fetch(find_sql, {**self._given, "after": after, "last": last})
            self._delete_rows(table, found)
            after = str(last)

    def _delete_found(self, table: str, condition: str) -> None:
        """Delete the rows of a table that fulfil a condition, found in one query."""
        owned = "account_id" if table in ("plans", "idempotency") else "''"
        found = self._fetch(f"SELECT id, {owned} FROM {table} WHERE {condition}", self._given)  # noqa: S608
        rows = iter(sorted(found, key=lambda row: str(row[1])))
        while page := list(islice(rows, ROWS_PER_TRANSACTION)):
            self._delete_rows(table, page)

    def _delete_rows(self, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        if not rows:
            return
        ids, accounts = [str(row[0]) for row in rows], sorted({str(row[1]) for row in rows})
        kept = f" AND id NOT IN ({_TAKEN_PLAN_SQL})" if table == "plans" else ""

        def delete() -> Counter[str]:
            self._fetch(_LOCK_SUMS_SQL, (accounts,))
            deletion = f"DELETE FROM {table} WHERE id = ANY(%(ids)s){kept}"  # noqa: S608
            given = {"ids": ids, "newest": self._newest["tasks"]}
            return Counter({table: self._run(deletion, given)})

        self._rows.update(self._try(delete))

    def _try(self, change: Callable[[], Counter[str]]) -> Counter[str]:
        """Make a change in a transaction, again where engines are in its way.

        Raises:
            ServiceError: `UNAVAILABLE` when they are all the time.
        """
        for _ in range(MAX_TRIES):
            try:
                with self._connection.transaction():
                    return change()
            except (errors.LockNotAvailable, errors.DeadlockDetected):
                sleep(RETRY_WAIT_S)
        raise ServiceError(
            ErrorCode.UNAVAILABLE,
            "The rows to delete are locked all the time: prune again when there is less to do.",
        )

    def _count(self, table: str, *conditions: str) -> None:
        """Count the rows of a table that fulfil one of some conditions."""
        key = ", ".join(column.name for column in metadata.tables[table].primary_key)
        parts = (f"SELECT {key} FROM {table} WHERE {each}" for each in conditions)  # noqa: S608
        query = f"SELECT count(*) FROM ({' UNION '.join(parts)}) AS found"  # noqa: S608
        self._rows[table] += int(self._fetch(query, self._given)[0][0])

    def _run(self, statement: str, given: dict[str, Any]) -> int:
        return self._connection.execute(statement.encode(), given).rowcount

    def _fetch(self, query: str, given: Any = None) -> list[tuple[Any, ...]]:
        cursor = self._connection.execute(query.encode(), given)
        return cursor.fetchall() if cursor.description is not None else []
