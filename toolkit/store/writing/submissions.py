"""Submissions of changes, grouped on the loop and merged into one transaction."""

import asyncio
import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from toolkit.store.changes import (
    AddSpending,
    AppendEvent,
    Change,
    DeleteRow,
    IncrementColumns,
    InsertRow,
    Lease,
    PatchDocument,
    ReplaceRow,
    UpdateRow,
)

Values = dict[str, object]
Rows = dict[str, dict[str, Values]]
CHANGES_OF_STEP, MAX_JOINED = 4, 32  # changes of one step, and of several calls in one submission
_ROW_CHANGES = (InsertRow, UpdateRow)
# A few groups: waiting submissions are held in memory, and all others queue behind them.
MAX_WEIGHT = 1_024


@dataclass(eq=False, slots=True)
class Submission:
    """The changes of one call of `write`, or of several that nobody waits for; all or nothing.

    Attributes:
        deadline: the loop's time at which it is refused if others still have the database locked.
        is_conditional: True if a limit or a conflict may refuse it without failing its lease.
        is_paid: whether it has the result of a paid call, which may use the ballast.
        grows_ballast: whether it waits for the ballast to be whole, and writes nothing.
    """

    changes: Sequence[Change]
    lease: Lease | None
    future: "asyncio.Future[None]"
    deadline: float = math.inf
    is_awaited: bool = True
    is_conditional: bool = False
    is_paid: bool = False
    grows_ballast: bool = False

    @property
    def weight(self) -> int:
        """Its part of a group's maximum size: 1 for one step of a run or of a node."""
        return max(1, len(self.changes) // CHANGES_OF_STEP)

    def take(self, changes: Sequence[Change], lease: Lease | None) -> bool:
        """Take the changes of a later call if nobody waits for either; return whether it did.

        So a node that never waits begins and ends in one submission, as many nodes do.
        """
        if self.is_awaited or lease is None or lease is not self.lease:
            return False
        if len(self.changes) + len(changes) > MAX_JOINED:
            return False
        self.changes = [*self.changes, *changes]
        return True

    @property
    def is_new(self) -> bool:
        """True if it only inserts new rows and their events, so that it may go before others."""
        new_ids = {str(c.values["id"]) for c in self.changes if isinstance(c, InsertRow)}
        if self.lease is not None and self.lease.root_id not in new_ids:
            return False
        return bool(new_ids) and all(
            isinstance(c, InsertRow) or (isinstance(c, AppendEvent) and c.resource_id in new_ids)
            for c in self.changes
        )

    @property
    def begins_lease(self) -> bool:
        """True if it inserts the root of its lease: if it fails, there is nothing to work on."""
        root_id = self.lease.root_id if self.lease is not None else None
        return any(
            isinstance(c, InsertRow) and c.table == "roots" and c.values["id"] == root_id
            for c in self.changes
        )

    def resolve(self, error: Exception | None = None) -> None:
        """Report success or an error to the caller, unless the caller was cancelled."""
        if self.future.done():
            return
        if error is None:
            self.future.set_result(None)
        else:
            self.future.set_exception(error)
            self.future.exception()  # marks it as retrieved, as a caller need not look


@dataclass(slots=True)
class MergedChanges:
    """Merged changes of a transaction: rows to insert, change and delete, and events to append."""

    inserts: Rows = field(default_factory=dict)
    updates: Rows = field(default_factory=dict)
    patches: list[PatchDocument] = field(default_factory=list)
    replacements: Rows = field(default_factory=dict)
    deletes: dict[str, list[str]] = field(default_factory=dict)
    spendings: list[AddSpending] = field(default_factory=list)
    increments: dict[str, tuple[IncrementColumns, dict[str, int]]] = field(default_factory=dict)
    events: list[AppendEvent] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """True if there is nothing to write."""
        return self == MergedChanges()

    def add_change(self, change: Change) -> None:
        """Add a change; values of the same row are merged, and later values win."""
        match change:
            case AppendEvent():
                self.events.append(change)
            case InsertRow(table, values):
                self.inserts.setdefault(table, {})[str(values["id"])] = dict(values)
            case UpdateRow(table, row_id, values):
                rows = self.inserts.get(table, {})
                if row_id not in rows:
                    rows = self.updates.setdefault(table, {})
                rows.setdefault(row_id, {}).update(values)
            case PatchDocument():
                self.patches.append(change)
            case ReplaceRow(table, values):
                self.replacements.setdefault(table, {})[str(values["id"])] = dict(values)
            case DeleteRow(table, row_id):
                self.deletes.setdefault(table, []).append(row_id)
            case AddSpending():
                self.spendings.append(change)
            case IncrementColumns(_, values, more):
                sums = self.increments.setdefault(str(values["id"]), (change, {}))[1]
                for column, amount in more.items():
                    sums[column] = sums.get(column, 0) + amount


def group_rows(
    rows: Mapping[str, Mapping[str, object]], *, with_id: bool = False
) -> dict[tuple[str, ...], list[list[object]]]:
    """Group rows by their columns, each group sorted by the rows' ids."""
    groups: dict[tuple[str, ...], list[list[object]]] = {}
    columns: tuple[str, ...] | None = None
    for row_id in sorted(rows):
        row = rows[row_id]
        if (row_columns := tuple(row)) != columns:  # as a rule, all have the same
            columns, group = row_columns, groups.setdefault(row_columns, [])
        group.append([*row.values(), row_id] if with_id else [*row.values()])
    return groups


def group_increments(
    batch: MergedChanges,
) -> dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[list[object]]]:
    """Group rows to add to by their table, columns and sums, each group sorted by the rows' ids."""
    groups: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[list[object]]] = {}
    for _, (count, sums) in sorted(batch.increments.items()):
        key = count.table, tuple(count.values), tuple(sums)
        groups.setdefault(key, []).append([*count.values.values(), *sums.values()])
    return dict(sorted(groups.items()))


class SubmissionGroup:
    """A group of submissions to write together; made on the loop, where records may be read.

    A record that changes often is passed as the function that serializes it, which is called here:
    once for all the changes of its row.

    Attributes:
        size: number of characters in its documents.
    """

    def __init__(self, submissions: Sequence[Submission]) -> None:
        self.submissions = submissions
        self._docs: dict[str, object] = {}
        self.size = 0
        for submission in submissions:
            for change in submission.changes:
                if not isinstance(change, _ROW_CHANGES):
                    continue
                doc = change.values.get("doc")
                if callable(doc):
                    row_id = _get_row_id(change)
                    if row_id in self._docs:
                        continue
                    doc = self._docs[row_id] = doc()
                if isinstance(doc, str):
                    self.size += len(doc)

    def merge_changes(self, submissions: Sequence[Submission]) -> MergedChanges:
        """Merge the changes of some of the submissions."""
        batch = MergedChanges()
        for submission in submissions:
            for change in submission.changes:
                batch.add_change(change)
        for rows in (*batch.inserts.values(), *batch.updates.values()):
            for row_id, values in rows.items():
                if callable(values.get("doc")):
                    values["doc"] = self._docs[row_id]
        return batch

    def split_by_lease(self) -> list[list[Submission]]:
        """Split the submissions into parts that succeed or fail together.

        All writes under one lease are one part, except writes that a limit may refuse. Every
        other submission is its own part.
        """
        parts: dict[object, list[Submission]] = {}
        for submission in self.submissions:
            key: object = submission
            if submission.lease is not None and not submission.is_conditional:
                key = submission.lease.root_id
            parts.setdefault(key, []).append(submission)
        return list(parts.values())


def _get_row_id(change: InsertRow | UpdateRow) -> str:
    return str(change.values["id"]) if isinstance(change, InsertRow) else change.id


class Backlog:
    """A queue of submissions, in which new requests go first when there are more than fit a group.

    Each submission is looked at a fixed number of times, however many wait: a workflow whose nodes
    never wait is ahead of the disk by tens of thousands of them.
    """

    def __init__(self) -> None:
        self._arrived: deque[Submission] = deque()
        # Submissions that did not fit a group: inserts of only new rows, and all others.
        self._new: deque[Submission] = deque()
        self._others: deque[Submission] = deque()
        self._weight = 0
        self._room = asyncio.Event()
        self._room.set()

    def __len__(self) -> int:
        """How many submissions wait."""
        return len(self._arrived) + len(self._new) + len(self._others)

    async def wait_for_room(self) -> None:
        """Wait while the waiting submissions exceed `MAX_WEIGHT`."""
        if self._weight > MAX_WEIGHT:
            await self._room.wait()

    def append(self, submission: Submission) -> None:
        """Put a submission behind all others."""
        self._arrived.append(submission)
        self._add_weight(submission.weight)

    def join(self, changes: Sequence[Change], lease: Lease) -> "asyncio.Future[None] | None":
        """Add changes that nobody waits for to the last submission.

        Returns:
            The future of that submission, or None if it cannot take them.
        """
        if not self._arrived:
            return None
        last = self._arrived[-1]
        before = last.weight
        if not last.take(changes, lease):
            return None
        self._add_weight(last.weight - before)
        return last.future

    def pop_group(self, max_weight: int) -> list[Submission]:
        """Remove and return the submissions to write next: up to `max_weight`, but at least one."""
        if self._weight > max_weight:
            # A new request waits for one group of a large workflow's writes, not for all.
            while self._arrived:
                submission = self._arrived.popleft()
                (self._new if submission.is_new else self._others).append(submission)
        group: list[Submission] = []
        room = max_weight
        for queue in (self._new, self._others, self._arrived):
            while queue and (queue[0].weight <= room or not group):
                submission = queue.popleft()
                room -= submission.weight
                group.append(submission)
            if queue:
                break
        self._add_weight(room - max_weight)
        return group

    def pop_where(self, holds: Callable[[Submission], bool]) -> list[Submission]:
        """Remove and return all submissions that fulfil a condition, in order."""
        matches: list[Submission] = []
        for queue in (self._new, self._others, self._arrived):
            waiting = [*queue]
            queue.clear()
            for submission in waiting:
                (matches if holds(submission) else queue).append(submission)
        self._add_weight(-sum(submission.weight for submission in matches))
        return matches

    def _add_weight(self, weight: int) -> None:
        self._weight += weight
        if self._weight > MAX_WEIGHT:
            self._room.clear()
        else:
            self._room.set()
