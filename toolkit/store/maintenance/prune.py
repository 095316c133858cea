"""Retention: deletion of work that ended long ago, with its events, artifacts and bytes.

Engines may have the database open meanwhile. Rows are deleted some hundred in a transaction, which
locks rows in the same order as the engines' writers. Rows without a suitable index are found in one
pass over their table, a page at a time. A dry run counts by reads alone.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from itertools import islice
from typing import Any, Final

from sqlalchemy import Column, MetaData, Select, Table, literal_column, select, text
from sqlalchemy.schema import CreateTable

from toolkit.contract.base import format_rfc3339, now
from toolkit.store.blob_places.place import BlobEntry, BlobPlace, delete_unreferenced
from toolkit.store.json_sql import JsonSql
from toolkit.store.maintenance.upkeep_database import UpkeepDatabase
from toolkit.store.table_roles import Expiry, OwnerKind, get_roles
from toolkit.store.tables import (
    artifacts,
    list_expiring_tables,
    list_pruned_tables,
    metadata,
    roots,
    stored_bytes,
)

ROWS_PER_TRANSACTION: Final = 2_000
ENTRIES_AT_ONCE: Final = 500
# Bytes are stored shortly before their record, so only older ones may count as unreferenced.
MIN_UNREFERENCED_AGE_S = 3600.0
# An hour longer than promised, as the wall clock may be changed.
IDEMPOTENCY_RETENTION = timedelta(hours=25)
# A job's rows and its artifacts may be deleted in separate transactions: leftovers of an
# interrupted deletion are deleted later.
MIN_ORPHAN_AGE: Final = timedelta(hours=1)
# Which roots are old, which jobs went with them, and which plans tasks carry out.
_SCRATCH_TABLES: Final = tuple(
    Table(
        name,
        MetaData(),
        Column("id", roots.c.id.type, primary_key=True),
        prefixes=["TEMPORARY"],
    )
    for name in ("old_roots", "gone_jobs", "taken_plans")
)
_IN_OLD_SQL: Final = "IN (SELECT id FROM old_roots)"
_OF_OLD_JOB_SQL: Final = (
    "EXISTS (SELECT 1 FROM jobs JOIN old_roots ON old_roots.id = jobs.root_id"
    " WHERE jobs.id = {table}.job_id)"
)
_GONE_ARTIFACT_SQL: Final = (
    "EXISTS (SELECT 1 FROM gone_jobs WHERE gone_jobs.id = artifacts.job_id)"
    " OR job_id IS NOT NULL AND created_at < :orphaned"
    " AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.id = artifacts.job_id)"
)
_DELETED_UPLOAD_SQL: Final = "deleted AND job_id IS NULL AND created_at < :cutoff"
_EXPIRED_SQL: Final[dict[Expiry, str]] = {
    "work": "{column} < :cutoff",
    "answer": "{column} < :expired",
    "day": "substr({column}, length({column}) - 9) < :day",
}
_IDLE_PLAN_SQL: Final = "NOT EXISTS (SELECT 1 FROM taken_plans WHERE taken_plans.id = plans.id)"


@dataclass(slots=True)
class PruneResult:
    """The result of pruning, or of its dry run.

    Attributes:
        rows: number of rows, by table.
        files: number of files of artifacts' bytes.
        freed_bytes: size of those files; new rows reuse the freed space in the database.
        is_copy: true if bytes in object storage were left, as the original has them, too.
    """

    rows: Counter[str] = field(default_factory=Counter)
    files: int = 0
    freed_bytes: int = 0
    is_copy: bool = False


def prune_records(
    database: UpkeepDatabase, older_than: timedelta, place: BlobPlace, *, dry_run: bool = False
) -> PruneResult:
    """Delete runs, workflows, tasks and jobs that ended long ago, with all their data.

    Uploads, accounts, connections and managed resources stay. So do results that later workflows
    started from. Others may use the database meanwhile.

    Args:
        older_than: minimum age, counted from the request for the work.
        dry_run: whether to only return the rows and bytes that would be deleted.

    Raises:
        ServiceError: `UNAVAILABLE` if it cannot be used, or its artifacts are elsewhere.
    """
    database.check_place(place)
    result = PruneResult(is_copy=database.shares_bytes(place))
    pruning = _Pruning(database, older_than, result.rows)
    pruning.find_old_roots(is_counted=dry_run)
    if dry_run:
        pruning.count()
    else:
        pruning.delete()
    if result.is_copy:
        return result  # the original's records may name any of the bytes
    if dry_run:
        left_out = f"NOT {_OF_OLD_JOB_SQL.format(table='artifacts')}"
        entries = list_unreferenced(database, place, left_out)
    else:
        entries = _delete_unreferenced(database, place)
    for entry in entries:
        result.files += 1
        result.freed_bytes += entry.size_bytes
    return result


def delete_unreferenced_files(database: UpkeepDatabase, place: BlobPlace) -> list[str]:
    """Delete the bytes that no record refers to; return a line about it if there were any.

    Raises:
        ServiceError: `UNAVAILABLE` when the database's artifacts are elsewhere.
    """
    database.check_place(place)
    files = sum(1 for _ in _delete_unreferenced(database, place))
    return [f"Deleted {files} files that no record names."] if files else []


def list_unreferenced(
    database: UpkeepDatabase, place: BlobPlace, condition: str | None = None
) -> Iterator[BlobEntry]:
    """Yield the bytes that no record refers to, and leftovers of interrupted writes.

    Args:
        condition: an additional condition on the records.
    """
    query = _build_reference(database)
    if condition is not None:
        query = query.where(text(condition))
    old = (entry for entry in place.list_entries() if entry.is_older_than(MIN_UNREFERENCED_AGE_S))
    while page := list(islice(old, ENTRIES_AT_ONCE)):
        digests = [entry.digest for entry in page if entry.digest is not None]
        # After the listing: bytes that were stored since have their record, or are young.
        referenced_digests = {str(row[0]) for row in database.fetch(query, digests=digests)}
        yield from (entry for entry in page if entry.digest not in referenced_digests)


def _build_reference(database: UpkeepDatabase) -> Select[Any]:
    """Build the query that finds which of some digests artifacts refer to."""
    return (
        select(artifacts.c.sha256)
        .distinct()
        .where(
            text(database.is_one_of("sha256", "digests")),
            artifacts.c.content.is_(None),
            artifacts.c.deleted.is_(False),
        )
    )


def _delete_unreferenced(database: UpkeepDatabase, place: BlobPlace) -> Iterator[BlobEntry]:
    """Delete the bytes that no record refers to, and yield them.

    Other engines may store the same bytes meanwhile: bytes that were stored again since the
    listing stay.
    """
    query = _build_reference(database)
    for entry in list_unreferenced(database, place):
        if entry.digest is None:
            place.remove_leftover(entry.name)
            yield entry
            continue

        def is_wanted(digest: str = entry.digest) -> bool:
            return bool(database.fetch(query, digests=[digest]))

        if delete_unreferenced(place, entry.digest, MIN_UNREFERENCED_AGE_S, is_wanted):
            yield entry


def _build_owner_conditions(build: Callable[[str, OwnerKind], str]) -> dict[str, list[str]]:
    """Build the conditions of rows that go with their owners, by table: one of them is enough.

    Args:
        build: builds the condition that a column names an owner of a kind that goes.
    """
    return {
        table.name: [
            build(column, kind)
            for column, kinds in get_roles(table).deleted_with.items()
            for kind in kinds
        ]
        for table in list_pruned_tables()
    }


def _build_expired_conditions() -> Iterator[tuple[str, str]]:
    """Build the conditions of old rows that belong to no root, by table."""
    for table in list_expiring_tables():
        if (expires_by := get_roles(table).expires_by) is not None:
            column, expiry = expires_by
            condition = _EXPIRED_SQL[expiry].format(column=column)
            idle = f" AND {_IDLE_PLAN_SQL}" if table.name == "plans" else ""
            yield table.name, f"{condition}{idle}"


class _Pruning:
    """The deletion of old rows, or the count of them.

    Args:
        older_than: minimum age, counted from the request for the work.
        rows: counter to count in, by table.
    """

    def __init__(self, database: UpkeepDatabase, older_than: timedelta, rows: Counter[str]) -> None:
        self._database = database
        self._rows = rows
        # In the order in which they are told.
        rows.update({table.name: 0 for table in (*list_pruned_tables(), *list_expiring_tables())})
        cutoff = format_rfc3339(now() - older_than)
        self._parameters = {
            "cutoff": cutoff,
            "orphaned": min(cutoff, format_rfc3339(now() - MIN_ORPHAN_AGE)),
            "day": min(cutoff, format_rfc3339(now()))[:10],
            "expired": format_rfc3339(now() - IDEMPOTENCY_RETENTION),
        }
        self._newest = {
            table: str(database.fetch(f"SELECT max(id) FROM {table}")[0][0] or "")  # noqa: S608
            for table in ("workflows", "tasks")
        }
        words = JsonSql(database.kind)
        items = words.list_values(words.read("workflows.spec"), "kept", "kept")
        # Of jobs that workflows started from.
        self._kept_roots_sql = (
            f"SELECT jobs.root_id FROM workflows CROSS JOIN {items}"  # noqa: S608 - our names
            f" JOIN jobs ON jobs.id = {words.get_item('kept')}"
        )
        self._plan_id_sql = words.get_text(words.read("tasks.doc"), "plan_id")

    def find_old_roots(self, *, is_counted: bool) -> None:
        """Find roots that ended long ago, except roots whose results later work started from.

        Args:
            is_counted: True for a dry run: tasks that would be deleted then protect no plan.
        """
        run = self._database.run
        for table in _SCRATCH_TABLES:
            run(CreateTable(table))
        run(
            "INSERT INTO old_roots SELECT id FROM roots WHERE NOT open AND created_at < :cutoff",
            **self._parameters,
        )
        run(
            f"DELETE FROM old_roots WHERE id IN ({self._kept_roots_sql}"  # noqa: S608 - our names
            f" WHERE workflows.root_id NOT {_IN_OLD_SQL})"
        )
        run("ANALYZE old_roots")
        if is_counted:
            self._find_taken_plans(f" AND tasks.id NOT {_IN_OLD_SQL}")

    def count(self) -> None:
        """Count all rows that would be deleted."""
        of_old = f"IN (SELECT id FROM {{}}s WHERE root_id {_IN_OLD_SQL})"  # noqa: S608

        def is_gone(column: str, kind: OwnerKind) -> str:
            return f"{column} {_IN_OLD_SQL if kind == 'root' else of_old.format(kind)}"

        for table, of_owners in _build_owner_conditions(is_gone).items():
            self._count(table, *of_owners)
        for table, condition in _build_expired_conditions():
            self._count(table, condition)
        self._count("artifacts", _DELETED_UPLOAD_SQL)

    def delete(self) -> None:
        """Delete all of them, and leftovers of an interrupted deletion."""
        late_tables = self._database.late_tables
        if "cache" in late_tables:
            # First of all, so that no job that was deleted answers from the cache.
            self._delete_pages("cache", _OF_OLD_JOB_SQL.format(table="cache"))
        after = ""
        while ids := self._database.fetch(
            "SELECT id FROM old_roots WHERE id > :after ORDER BY id LIMIT :most",
            after=after,
            most=self._database.roots_per_transaction,
        ):
            group = [str(row[0]) for row in ids]
            after = group[-1]
            self._rows.update(self._database.change(partial(self._delete_roots, group)))
        self._database.run("ANALYZE gone_jobs")
        of_jobs = f"{_GONE_ARTIFACT_SQL} OR " if "artifacts" in late_tables else ""
        self._delete_pages("artifacts", f"{of_jobs}{_DELETED_UPLOAD_SQL}")
        self._find_taken_plans()
        for table, condition in _build_expired_conditions():
            self._delete_found(table, condition)

    def _find_taken_plans(self, condition: str = "") -> None:
        """Find the plans that fulfil a condition and that tasks carry out."""
        self._database.run(
            f"INSERT INTO taken_plans SELECT DISTINCT {self._plan_id_sql} FROM tasks"  # noqa: S608
            f" WHERE {self._plan_id_sql} IS NOT NULL{condition}"
        )
        self._database.run("ANALYZE taken_plans")

    def _delete_roots(self, group: Sequence[str]) -> Counter[str]:
        """Delete all rows of some roots, except roots that were reopened or are in use."""
        fetch, one_of = self._database.fetch, self._database.is_one_of
        lock = (
            select(roots.c.id, roots.c.account_id)
            .where(
                text(
                    f"{one_of('id', 'ids')} AND NOT open AND id NOT IN"
                    f" ({self._kept_roots_sql} WHERE workflows.id > :newest)"
                )
            )
            .order_by(roots.c.id)
            .with_for_update(skip_locked=True)
        )
        locked = fetch(lock, ids=group, newest=self._newest["workflows"])
        self._lock_sums({str(row[1]) for row in locked})
        deleted_ids = {"roots": [str(row[0]) for row in locked]}
        for table in ("workflows", "jobs"):
            query = f"SELECT id FROM {table} WHERE {one_of('root_id', 'roots')}"  # noqa: S608
            deleted_ids[table] = [str(row[0]) for row in fetch(query, roots=deleted_ids["roots"])]
        late_tables = self._database.late_tables
        if late_tables:
            self._database.run(
                f"INSERT INTO gone_jobs SELECT id FROM jobs WHERE {one_of('id', 'jobs')}",  # noqa: S608
                jobs=deleted_ids["jobs"],
            )
        conditions = _build_owner_conditions(lambda column, kind: one_of(column, f"{kind}s"))
        return Counter(
            {
                table: self._database.run(
                    f"DELETE FROM {table} WHERE {' OR '.join(of_owners)}",  # noqa: S608
                    **deleted_ids,
                )
                for table, of_owners in conditions.items()
                if table not in late_tables
            }
        )

    def _lock_sums(self, account_ids: set[str]) -> None:
        """Lock the sums of accounts in the order in which writers take them."""
        lock: Select[Any] = (
            select(literal_column("1"))
            .select_from(stored_bytes)
            .where(text(self._database.is_one_of("id", "ids")))
            .order_by(stored_bytes.c.id)
            .with_for_update()
        )
        self._database.fetch(lock, ids=sorted(account_ids))

    def _delete_pages(self, table: str, condition: str) -> None:
        """Delete the rows of a table that fulfil a condition, in a pass over its ids."""
        page_sql = (
            f"SELECT max(id) FROM (SELECT id FROM {table} WHERE id > :after ORDER BY id"  # noqa: S608
            f" LIMIT {ROWS_PER_TRANSACTION}) AS page"
        )
        find_sql = (
            f"SELECT id, account_id FROM {table} WHERE id > :after AND id <= :last"  # noqa: S608
            f" AND ({condition})"
        )
        after = ""
        while (last := self._database.fetch(page_sql, after=after)[0][0]) is not None:
            self._delete_rows(
                table, self._database.fetch(find_sql, **self._parameters, after=after, last=last)
            )
            after = str(last)

    def _delete_found(self, table: str, condition: str) -> None:
        """Delete the rows of a table that fulfil a condition, found in one query."""
        account_column = "account_id" if "account_id" in metadata.tables[table].columns else "''"
        matches = self._database.fetch(
            f"SELECT id, {account_column} FROM {table} WHERE {condition}",  # noqa: S608
            **self._parameters,
        )
        rows = iter(sorted(matches, key=lambda row: str(row[1])))
        while page := list(islice(rows, ROWS_PER_TRANSACTION)):
            self._delete_rows(table, page)

    def _delete_rows(self, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        if not rows:
            return
        deletion = f"DELETE FROM {table} WHERE {self._database.is_one_of('id', 'ids')}"  # noqa: S608
        parameters: dict[str, object] = {"ids": [str(row[0]) for row in rows]}
        if table == "plans":
            # Except plans that tasks took since they were listed.
            deletion += (
                f" AND id NOT IN (SELECT {self._plan_id_sql} FROM tasks"  # noqa: S608
                f" WHERE id > :newest AND {self._plan_id_sql} IS NOT NULL)"
            )
            parameters["newest"] = self._newest["tasks"]

        def delete() -> Counter[str]:
            self._lock_sums({str(row[1]) for row in rows})
            return Counter({table: self._database.run(deletion, **parameters)})

        self._rows.update(self._database.change(delete))

    def _count(self, table: str, *conditions: str) -> None:
        """Count the rows of a table that fulfil one of some conditions."""
        key = ", ".join(column.name for column in metadata.tables[table].primary_key)
        parts = (f"SELECT {key} FROM {table} WHERE {condition}" for condition in conditions)  # noqa: S608
        query = f"SELECT count(*) FROM ({' UNION '.join(parts)}) AS found"  # noqa: S608
        self._rows[table] += int(self._database.fetch(query, **self._parameters)[0][0])
