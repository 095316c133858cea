"""The writer's connection to a database: one transaction at a time, all or nothing."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, MutableMapping, Sequence
from typing import Any, ClassVar, TypeAlias

from pydantic_core import from_json, to_json

from toolkit.store.changes import AddSpending, Lease, OverLimit, PatchDocument
from toolkit.store.crashpoints import find_crash_point
from toolkit.store.dialects import DatabaseKind
from toolkit.store.writing.event_numbers import EVENT_COLUMNS, EventNumbers
from toolkit.store.writing.statements import (
    ADD_SPENDING_SQL,
    INSERT_SPENDING_SQL,
    build_conflict,
    build_document_lock,
)
from toolkit.store.writing.submissions import MergedChanges, group_increments, group_rows

Rows: TypeAlias = Sequence[Sequence[object]]


class DatabaseLocked(Exception):  # noqa: N818 - names what happened
    """Another connection is writing; nothing was written, and the write may be retried.

    Attributes:
        message: error message for callers that have waited for too long.
    """

    message = "The store is locked by another process: retry in a moment."


class DatabaseUnreachable(DatabaseLocked):
    """There is no connection; nothing was written, and the same may be tried again."""

    message = "The database cannot be reached: retry in a moment."


class DatabaseUnwritable(DatabaseLocked):
    """The database takes no writes now, such as on a full disk; nothing was written.

    A smaller transaction may still fit, and the same transaction may be tried again.

    Args:
        message: the reason and the next step.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class CommitInDoubt(Exception):  # noqa: N818 - names what happened
    """The connection was lost in a commit, which may have been made.

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
        kind: kind of the database.
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
        self._crash = find_crash_point("commit")

    def write(self, leases: Collection[Lease], batch: MergedChanges, wait_ms: int) -> float:
        """Write a batch in one transaction, and return the seconds that its commit took.

        Args:
            leases: leases that it is written under.
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
        """Return the size of the ballast on the database's disk; may be called on any thread."""

    @abstractmethod
    def grow_ballast(self, size_bytes: int) -> None:
        """Hold at least so many bytes of ballast.

        Raises:
            DatabaseLocked: there is no room for them now, or no connection.
            ServiceError: `UNAVAILABLE` for everything else.
        """

    @abstractmethod
    def drop_ballast(self) -> bool:
        """Give the ballast back to the file system; return whether there was any."""

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
        """Change members of a document, whose row is locked meanwhile."""
        statement = build_document_lock(self.kind, patch.table)
        row = self._execute(statement, {"id": patch.id}).fetchone()
        if row is not None:
            doc = to_json({**from_json(row[0]), **patch.values}).decode()
            self._update(patch.table, ("doc",), [[doc, patch.id]])

    def _add_spending(self, spend: AddSpending) -> None:
        """Add to the money spent in the database itself, which all processes share."""
        self._execute(INSERT_SPENDING_SQL, {"id": spend.id, "key_id": spend.key_id})
        parameters = {"nano": spend.nano_usd, "id": spend.id, "most": spend.limit}
        self._additions.append((spend.id, self._execute(ADD_SPENDING_SQL, parameters)))

    def _check_limits(self) -> None:
        """Refuse spending beyond a limit, once the answers of all statements are there."""
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
