"""The writer's connection to a database: one transaction at a time, all or nothing."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, MutableMapping, Sequence
from itertools import islice
from typing import Any, ClassVar, TypeAlias

from pydantic_core import from_json, to_json

from toolkit.store.changes import AddSpending, AppendEvent, Lease, OverLimit, PatchDocument
from toolkit.store.dialects import DatabaseKind
from toolkit.store.writing.statements import (
    ADD_SPENDING_SQL,
    INSERT_SPENDING_SQL,
    build_conflict,
    build_document_lock,
)
from toolkit.store.writing.submissions import MergedChanges, group_increments, group_rows

# The number of remembered resources and jobs; the last number of others is looked up again.
NUMBER_CACHE_SIZE = 10_000
EVENT_COLUMNS = ("resource_id", "n", "type", "at", "data", "job_id", "job_n")
Rows: TypeAlias = Sequence[Sequence[object]]


class EventNumbers:
    """The last number of each resource and job, remembered while this process adds to them.

    They hold until another process adds events, which it does with the lease (`forget`), or a
    transaction fails.

    Args:
        find_last: finds the greatest number in the open transaction, 0 if there is none: by the
            column of the resource or job, the column of the number, and the id.
    """

    def __init__(self, find_last: Callable[[str, str, str], int]) -> None:
        self._find_last = find_last
        self._last_n: dict[str, int] = {}
        # Ids of rows that this transaction inserts, which have no events yet.
        self._new_ids: set[str] = set()
        self._is_forgotten = False

    def begin(self, inserts: Iterable[Iterable[str]] = ()) -> None:
        """Begin a transaction, with the ids of the rows that it inserts."""
        if self._is_forgotten:
            self._is_forgotten = False
            self._last_n.clear()
        self._new_ids = {row_id for rows in inserts for row_id in rows}

    def make_rows(self, events: Sequence[AppendEvent]) -> list[list[object]]:
        """Make the rows of events, in order: their values in the order of `EVENT_COLUMNS`."""
        rows = []
        for event in events:
            resource_id, job_id = event.resource_id, _find_named_job(event)
            row: list[object] = [
                resource_id,
                self._next_number("resource_id", "n", resource_id),
                event.type,
                event.at,
                to_json(_omit_known(event)).decode(),
                job_id,
                job_id and self._next_number("job_id", "job_n", job_id),
            ]
            rows.append(row)
        return rows

    def list_unknown(self, events: Iterable[AppendEvent]) -> list[tuple[str, str, list[str]]]:
        """List the keys that `find_last` will look up: by both columns, the sorted ids."""
        resources = {event.resource_id for event in events}
        jobs = {job_id for event in events if (job_id := _find_named_job(event))}
        lookups = []
        for key, column, ids in (("resource_id", "n", resources), ("job_id", "job_n", jobs)):
            unknown = sorted(ids.difference(self._new_ids, ids & self._last_n.keys()))
            lookups += [(key, column, unknown)] if unknown else []
        return lookups

    def _next_number(self, key: str, column: str, value: str) -> int:
        """Return the next number of a resource or job; only the holder of its lease adds to it."""
        last = self._last_n.get(value)
        if last is None:
            last = 0 if value in self._new_ids else self._find_last(key, column, value)
        self._last_n[value] = last + 1
        return last + 1

    def trim(self) -> None:
        """Forget the oldest of too many numbers.

        Call it between transactions only, as the database lacks the numbers of an open transaction.
        """
        if len(self._last_n) > NUMBER_CACHE_SIZE:
            for value in list(islice(self._last_n, len(self._last_n) - NUMBER_CACHE_SIZE // 2)):
                del self._last_n[value]

    def forget(self) -> None:
        """Forget the remembered numbers: another process may have added events.

        It takes effect in the next transaction, because it is called on any thread. A transaction
        under way has looked up its numbers, and has assigned some that are not in the database yet.
        """
        self._is_forgotten = True

    def __len__(self) -> int:
        """The number of remembered numbers."""
        return len(self._last_n)


def _find_named_job(event: AppendEvent) -> str | None:
    """Find the job that an event's row names; None for a run's job, or a job that is a work item.

    The events of such a job are all events of its resource, and have the same numbers.
    """
    is_alone = event.resource_id.startswith("run_") or event.resource_id == event.job_id
    return None if is_alone else event.job_id


def _omit_known(event: AppendEvent) -> Mapping[str, object]:
    """Return an event's data without the ids that are known anyway; readers add them."""
    data, ids = event.data, {"id": event.resource_id, "job_id": event.job_id}
    if data.get("id") != event.resource_id and "job_id" not in data:
        return data
    return {name: value for name, value in data.items() if ids.get(name) != value}


class DatabaseLocked(Exception):  # noqa: N818 - names what happened
    """Raised if another connection is writing; nothing was written, and a retry may work.

    Attributes:
        message: error message for callers that have waited for too long.
    """

    message = "The store is locked by another process: retry in a moment."


class DatabaseUnreachable(DatabaseLocked):
    """Raised if there is no connection; nothing was written, and a retry may work."""

    message = "The database cannot be reached: retry in a moment."


class DatabaseUnwritable(DatabaseLocked):
    """Raised if the database takes no writes now, as on a full disk; nothing was written.

    A smaller transaction may still fit, and the same transaction may be tried again.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class CommitInDoubt(Exception):  # noqa: N818 - names what happened
    """Raised if the connection was lost during a commit, which may have been made.

    Args:
        find_outcome: returns whether it was made. It raises `DatabaseLocked` while that is
            unknown, and `ServiceError` if it stays unknown.
    """

    def __init__(self, find_outcome: Callable[[], bool]) -> None:
        super().__init__()
        self.find_outcome = find_outcome


class WriteConnection(ABC):
    """A database as the writer sees it; used on one thread at a time.

    A batch is applied in one order for both databases, sorted, so that no two engines wait for each
    other.

    Attributes:
        is_remote: whether each transaction waits for a network, so that none is made in the loop.
        numbers: remembered numbers of events.
    """

    kind: ClassVar[DatabaseKind]
    is_remote: ClassVar[bool]
    _text_tables: Collection[str] = ()  # tables with an index of their texts

    def __init__(self, owner: str) -> None:
        self._owner = owner
        # The answers of additions of spending, by the ids of their rows.
        self._additions: list[tuple[str, Any]] = []
        self.numbers = EventNumbers(self._find_last_number)

    def write(self, leases: Collection[Lease], batch: MergedChanges, wait_ms: int) -> float:
        """Write a batch in one transaction, and return the seconds that its commit took.

        Args:
            wait_ms: maximum wait for another connection's transaction, in milliseconds, if waiting
                gives the connection no place in a queue.

        Raises:
            CommitInDoubt: it may have been written.
            Conflict: a value that must be unique already exists.
            DatabaseLocked: it may be retried; `DatabaseUnwritable` if a smaller write may fit.
            LeaseLost: another process holds one of the leases.
            OverLimit: the spending would exceed a limit.
            ServiceError: `UNAVAILABLE` for everything else.
        """
        try:
            return self._write(leases, batch, wait_ms)
        except BaseException:
            self.numbers.forget()
            raise

    @property
    @abstractmethod
    def ballast_bytes(self) -> int:
        """The space reserved on the database's disk, in bytes; may be read on any thread."""

    @abstractmethod
    def grow_ballast(self, size_bytes: int) -> None:
        """Reserve at least `size_bytes` of disk space for results.

        Raises:
            DatabaseLocked: there is no room for them now, or no connection.
            ServiceError: `UNAVAILABLE` for everything else.
        """

    @abstractmethod
    def drop_ballast(self) -> bool:
        """Release the disk space that is reserved for results; return whether there was any."""

    def _apply_changes(self, batch: MergedChanges, event_rows: Rows) -> None:
        """Run a batch's changes in the open transaction; `_check_limits` must follow."""
        self._additions = []
        for table, inserted in sorted(batch.inserts.items()):
            if table in self._text_tables:
                self._index_texts(table, inserted)
            for columns, rows in group_rows(inserted).items():
                self._insert(table, columns, rows)
        for table, updated in sorted(batch.updates.items()):
            for columns, rows in group_rows(updated, with_id=True).items():
                self._update(table, columns, rows)
        for patch in sorted(batch.patches, key=lambda patch: (patch.table, patch.id)):
            self._patch(patch)
        for table, replaced in sorted(batch.replacements.items()):
            for columns, rows in group_rows(replaced).items():
                self._insert(table, columns, rows, build_conflict(table, replaced=columns))
        for table, row_ids in sorted(batch.deletes.items()):
            self._delete(table, sorted(row_ids))
        for spend in sorted(batch.spendings, key=lambda spend: spend.id):
            self._add_spending(spend)
        for (table, columns, sums), rows in group_increments(batch).items():
            self._insert(table, (*columns, *sums), rows, build_conflict(table, added=sums))
        if event_rows:
            self._insert("events", EVENT_COLUMNS, event_rows)

    def _patch(self, patch: PatchDocument) -> None:
        """Change members of a document, whose row is locked meanwhile; do nothing if it is gone."""
        statement = build_document_lock(self.kind, patch.table)
        row = self._execute(statement, {"id": patch.id}).fetchone()
        if row is not None:
            doc = to_json({**from_json(row[0]), **patch.values}).decode()
            self._update(patch.table, ("doc",), [[doc, patch.id]])

    def _add_spending(self, spend: AddSpending) -> None:
        """Add to a row of spending in the database, so that all processes' additions count.

        `_check_limits` must follow, because the limit may forbid the addition.
        """
        self._execute(INSERT_SPENDING_SQL, {"id": spend.id, "key_id": spend.key_id})
        parameters = {"nano": spend.nano_usd, "id": spend.id, "most": spend.limit}
        self._additions.append((spend.id, self._execute(ADD_SPENDING_SQL, parameters)))

    def _check_limits(self) -> None:
        """Raise `OverLimit` if an addition exceeded its limit, once all statements are answered."""
        for spending_id, cursor in self._additions:
            if not cursor.rowcount:
                raise OverLimit(spending_id)

    @abstractmethod
    def _write(self, leases: Collection[Lease], batch: MergedChanges, wait_ms: int) -> float:
        """Write a batch, as `write` does."""

    @abstractmethod
    def _find_last_number(self, key: str, column: str, value: str) -> int:
        """Find the greatest number of an event, as `EventNumbers` asks for it."""

    @abstractmethod
    def _index_texts(self, table: str, rows: Mapping[str, MutableMapping[str, object]]) -> None:
        """Insert the texts of new rows, and give the rows their `text_number`."""

    @abstractmethod
    def _insert(
        self, table: str, columns: tuple[str, ...], rows: Rows, on_conflict: str = ""
    ) -> None:
        """Insert rows, each in the order of the columns."""

    @abstractmethod
    def _update(self, table: str, columns: tuple[str, ...], rows: Rows) -> None:
        """Update rows: each has the columns' values, then its id."""

    @abstractmethod
    def _delete(self, table: str, row_ids: Sequence[str]) -> None:
        """Delete rows by their ids."""

    @abstractmethod
    def _execute(self, sql: str, parameters: Mapping[str, object]) -> Any:
        """Run a statement with named parameters (`:name`); return its cursor."""
