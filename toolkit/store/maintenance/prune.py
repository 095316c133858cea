"""Retention: deletion of work that ended long ago, with its events, artifacts and bytes.

Engines may have the database open meanwhile. All old rows are found first, in one pass over each
table that has no index of its owners. Then they are deleted some thousand in a transaction, each
work item with all of its rows. A transaction locks rows in the same order as the engines' writers,
and skips work items that were taken up since. A dry run counts by reads alone.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from itertools import islice
from typing import Any, Final

from sqlalchemy import Column, MetaData, Select, Table, literal_column, select, text
from sqlalchemy.schema import CreateIndex, CreateTable

from toolkit.contract.base import format_rfc3339, now
from toolkit.store.blob_places.place import BlobEntry, BlobPlace, delete_unreferenced
from toolkit.store.dialects import JsonSql
from toolkit.store.maintenance.upkeep_database import UpkeepDatabase
from toolkit.store.table_roles import Expiry, get_roles
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
# The job of a younger artifact may not be written yet.
MIN_ORPHAN_AGE: Final = timedelta(hours=1)
_TEXT: Final = roots.c.id.type
# Work items (roots) with the number of their last lease, the ids of their rows by table, and the
# plans that tasks carry out.
_SCRATCH_TABLES: Final = (
    Table(
        "old_roots",
        MetaData(),
        Column("id", _TEXT, primary_key=True),
        Column("fence", roots.c.fence.type),
        prefixes=["TEMPORARY"],
    ),
    Table(
        "old_rows",
        MetaData(),
        Column("kind", _TEXT, primary_key=True),
        Column("id", _TEXT, primary_key=True),
        Column("root_id", _TEXT, index=True),
        prefixes=["TEMPORARY"],
    ),
    Table("taken_plans", MetaData(), Column("id", _TEXT, primary_key=True), prefixes=["TEMPORARY"]),
)
_IN_OLD_SQL: Final = "IN (SELECT id FROM old_roots)"
_OLD_ROWS_SQL: Final = "IN (SELECT old_rows.id FROM old_rows WHERE kind = '{}')"
# Artifacts whose job is lost, and deleted uploads.
_LOST_ARTIFACT_SQL: Final = (
    "job_id IS NOT NULL AND created_at < :orphaned"
    " AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.id = artifacts.job_id)"
    " OR deleted AND job_id IS NULL AND created_at < :cutoff"
)
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
    pruning.find_old_rows(is_counted=dry_run)
    if dry_run:
        pruning.count()
    else:
        pruning.delete()
    if result.is_copy:
        return result  # the original's records may name any of the bytes
    if dry_run:
        left_out = f"artifacts.id NOT {_OLD_ROWS_SQL.format('artifacts')}"
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
    """Yield the bytes that no record refers to, and leftovers of interrupted writes."""
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


def _list_owners(table: Table) -> Iterator[tuple[str, str]]:
    """List the columns that refer to owners of a table's rows, each with the owners' table."""
    for column, kinds in get_roles(table).deleted_with.items():
        yield from ((column, f"{kind}s") for kind in kinds)


def _has_index(table: Table, column: str) -> bool:
    """Check whether an index finds rows by a column."""
    indexes = (table.primary_key.columns, *(index.columns for index in table.indexes))
    return any(columns.keys()[0] == column for columns in indexes)


def _build_expired_conditions() -> Iterator[tuple[str, str]]:
    """Build the conditions of old rows that belong to no root, by table."""
    for table in list_expiring_tables():
        if (expires_by := get_roles(table).expires_by) is not None:
            column, expiry = expires_by
            condition = _EXPIRED_SQL[expiry].format(column=column)
            idle = f" AND {_IDLE_PLAN_SQL}" if table.name == "plans" else ""
            yield table.name, f"{condition}{idle}"
    yield "artifacts", _LOST_ARTIFACT_SQL


class _Pruning:
    """The deletion of old rows, or the count of them."""

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

    def find_old_rows(self, *, is_counted: bool) -> None:
        """Find work items that ended long ago, with their rows, unless later work uses them.

        Args:
            is_counted: True for a dry run: tasks that would be deleted then protect no plan.
        """
        run = self._database.run
        for table in _SCRATCH_TABLES:
            run(CreateTable(table))
            for index in table.indexes:
                run(CreateIndex(index))
        run(
            "INSERT INTO old_roots SELECT id, fence FROM roots"
            " WHERE NOT open AND created_at < :cutoff",
            **self._parameters,
        )
        run(
            f"DELETE FROM old_roots WHERE id IN ({self._kept_roots_sql}"  # noqa: S608 - our names
            f" WHERE workflows.root_id NOT {_IN_OLD_SQL})"
        )
        run("ANALYZE old_roots")
        run("INSERT INTO old_rows SELECT 'roots', id, id FROM old_roots")
        for name in ("workflows", "jobs"):
            run(
                f"INSERT INTO old_rows SELECT '{name}', id, root_id FROM {name}"  # noqa: S608
                f" WHERE root_id {_IN_OLD_SQL}"
            )
        run("ANALYZE old_rows")
        for table in list_pruned_tables():
            for column, owner in _list_owners(table):
                if not _has_index(table, column):
                    run(
                        f"INSERT INTO old_rows SELECT '{table.name}', {table.name}.id, old.root_id"  # noqa: S608
                        f" FROM {table.name} CROSS JOIN old_rows AS old"
                        f" WHERE old.kind = '{owner}' AND old.id = {table.name}.{column}"
                    )
        run("ANALYZE old_rows")
        if is_counted:
            self._find_taken_plans(f" AND tasks.id NOT {_IN_OLD_SQL}")

    def count(self) -> None:
        """Count all rows that would be deleted."""
        for table in list_pruned_tables():
            owners = _list_owners(table)
            self._count(
                table.name, *(f"{column} {_OLD_ROWS_SQL.format(owner)}" for column, owner in owners)
            )
        for name, condition in _build_expired_conditions():
            self._count(name, condition)

    def delete(self) -> None:
        """Delete all old rows, and leftovers of an interrupted deletion."""
        after = ""
        while ids := self._database.fetch(
            "SELECT DISTINCT root_id FROM (SELECT root_id FROM old_rows WHERE root_id > :after"
            " ORDER BY root_id LIMIT :most) AS page ORDER BY root_id",
            after=after,
            most=self._database.rows_per_transaction,
        ):
            group = [str(row[0]) for row in ids]
            after = group[-1]
            self._rows.update(self._database.change(partial(self._delete_roots, group)))
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
        """Delete all rows of some work items, except items that were reopened or are in use."""
        fetch, one_of = self._database.fetch, self._database.is_one_of
        unkept_sql = f"id NOT IN ({self._kept_roots_sql} WHERE workflows.id > :newest)"
        lock = (
            select(roots.c.id, roots.c.account_id)
            .where(text(one_of("id", "ids")), roots.c.open.is_(False))
            .where(text(unkept_sql))
            # Each lease increments the fence.
            .where(text("fence = (SELECT old.fence FROM old_roots AS old WHERE old.id = roots.id)"))
            .order_by(roots.c.id)
            .with_for_update(skip_locked=True)
        )
        locked = fetch(lock, ids=group, newest=self._newest["workflows"])
        self._lock_sums({str(row[1]) for row in locked})
        ids: dict[str, list[str]] = {name: [] for name in metadata.tables}
        found = f"SELECT kind, id FROM old_rows WHERE {one_of('root_id', 'roots')}"  # noqa: S608
        for kind, row_id in fetch(found, roots=[str(row[0]) for row in locked]):
            ids[kind].append(str(row_id))
        deleted: Counter[str] = Counter()
        for table in list_pruned_tables():
            for column, owner in _list_owners(table):
                deletion = f"DELETE FROM {table.name} WHERE {one_of(column, 'owners')}"  # noqa: S608
                if not _has_index(table, column):
                    deletion += f" AND {one_of('id', 'ids')}"
                deleted[table.name] += self._database.run(
                    deletion, owners=ids[owner], ids=ids[table.name]
                )
        return deleted

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
