"""The one writer: groups all submissions of one turn of the loop into one transaction."""

import asyncio
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.store.changes import (
    AddSpending,
    AppendEvent,
    Change,
    Conflict,
    Lease,
    LeaseLost,
    OverLimit,
)
from toolkit.store.crashpoints import find_crash_point
from toolkit.store.sqlite.connections import RETRY_AFTER_S, translate_errors
from toolkit.store.writing import statements
from toolkit.store.writing.backlog import Backlog
from toolkit.store.writing.event_numbers import EVENT_COLUMNS, EventNumbers
from toolkit.store.writing.submissions import MergedChanges, Submission, SubmissionGroup

# A commit that hops to a thread costs more than a quick one made in the loop; a slow one made in
# the loop would hold up everything else.
SLOW_COMMIT_S = 0.002
# As a rule; the disk's own sync takes as long as it takes, and now and then much longer.
SLOW_SYNC_S = 0.001
# The largest groups, by weight: in the loop they block it, and a slow commit is worth a larger one.
MAX_LOOP_WEIGHT, MAX_THREAD_WEIGHT = 96, 256
PRIMARY_CODE_MASK = 0xFF  # of SQLite's error codes, which may say more in their higher bits
ROWS_PER_STATEMENT = 32  # by one statement, as SQLite takes 999 values in some of its builds
LINGER_S = 0.01
# How long to wait for another connection's transaction in the loop, and then in the thread, again
# and again: submissions that have waited too long are refused in between.
LOOP_WAIT_MS, THREAD_WAIT_MS = 2, 100
# How long a request waits for a locked database, and how long the result of work, which was paid.
REQUEST_WAIT_S, WORK_WAIT_S = 5.0, 60.0


@dataclass(frozen=True, slots=True)
class WriteResult:
    """The result of writing a group.

    Attributes:
        errors: the errors of submissions that were not written, by the id of the submission.
        to_retry: the submissions to try again, as the database was locked.
    """

    errors: Mapping[int, Exception] = field(default_factory=dict)
    to_retry: Sequence[Submission] = ()


class DatabaseLocked(Exception):  # noqa: N818 - names what happened
    """Another connection is writing; nothing was written, and the same may be tried again."""


class ChangeWriter:
    """A writer of submissions, in transactions and in order.

    Args:
        connection: to the database; the writer alone uses it.
        owner: the id of this opening of the store.
        is_synced: whether each commit waits for the disk.
        committed: called on the loop with the events of each transaction, once it is durable.
        timed: called with the seconds that each commit took, on the thread that made it.

    Attributes:
        backlog: what waits to be written.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        owner: str,
        *,
        is_synced: bool,
        committed: Callable[[Sequence[AppendEvent]], None],
        timed: Callable[[float], None] | None = None,
    ) -> None:
        self._connection = connection
        self._wait_ms: int | None = None
        self._owner = owner
        self._is_synced = is_synced
        self._on_commit = committed
        self._on_commit_time = timed
        self.backlog = Backlog()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="toolkit-writer")
        self._in_thread: asyncio.Task[None] | None = None
        self._scheduled = False
        self._lingering: asyncio.TimerHandle | None = None
        # A disk that is slow is slow each time; a machine that is busy holds up some of them.
        self._commit_times_s: deque[float] = deque([0.0], maxlen=8)
        self._numbers = EventNumbers(connection)
        self._failed_leases: dict[Lease, Exception] = {}
        self._crash = find_crash_point("commit")

    def submit(
        self,
        changes: Sequence[Change],
        lease: Lease | None,
        *,
        eager: bool = True,
        max_wait_s: float | None = None,
    ) -> "asyncio.Future[None]":
        """Submit changes; the future is done when they are durable.

        What nobody waits for (`eager=False`) goes with the next changes that somebody does wait
        for, or by itself after `LINGER_S`.

        Args:
            changes: what to write.
            lease: the lease that it is written under.
            eager: write it at once.
            max_wait_s: the longest to wait for a database that others have locked.
        """
        if not eager and lease is not None:
            joined = self.backlog.join(changes, lease)
            if joined is not None:
                return joined
        loop = asyncio.get_running_loop()
        if max_wait_s is None:
            max_wait_s = REQUEST_WAIT_S if lease is None else WORK_WAIT_S
        submission = Submission(
            changes, lease, loop.create_future(), loop.time() + max_wait_s, is_awaited=eager
        )
        self.backlog.append(submission)
        if self._in_thread is not None:
            return submission.done
        if eager and not self._scheduled:
            self._scheduled = True
            # Not in the very next turn: what is begun in it goes along, as the first write of a run
            # that was accepted in this one.
            loop.call_soon(loop.call_soon, self._flush)
        elif not eager and not self._scheduled and self._lingering is None:
            self._lingering = loop.call_later(LINGER_S, self._flush)
        return submission.done

    def _flush(self) -> None:
        self._scheduled = False
        if self._lingering is not None:
            self._lingering.cancel()
            self._lingering = None
        if self._in_thread is not None or not self.backlog:
            return
        in_thread = self._is_slow()
        most = MAX_THREAD_WEIGHT if in_thread else MAX_LOOP_WEIGHT
        group = SubmissionGroup(self.backlog.pop_group(most))
        if not in_thread:
            self._resolve_submissions(group, self._write_group(group, LOOP_WAIT_MS))
        if group.submissions:
            self._in_thread = asyncio.create_task(self._flush_in_thread(group))
        elif self.backlog:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _is_slow(self) -> bool:
        """Tell whether commits hold up the loop for longer than a hop to the thread takes."""
        took = sorted(self._commit_times_s)
        return took[len(took) // 2] > SLOW_SYNC_S if self._is_synced else took[0] > SLOW_COMMIT_S

    async def _flush_in_thread(self, group: SubmissionGroup) -> None:
        loop = asyncio.get_running_loop()
        try:
            while group.submissions:
                try:
                    outcome = await loop.run_in_executor(
                        self._thread, self._write_group, group, THREAD_WAIT_MS
                    )
                except RuntimeError:  # an interpreter that ends may start no thread any more
                    outcome = self._write_group(group, THREAD_WAIT_MS)
                self._resolve_submissions(group, outcome)
                if group.submissions:
                    self._refuse_overdue(group)
                if not group.submissions:
                    group = SubmissionGroup(self.backlog.pop_group(MAX_THREAD_WEIGHT))
        finally:
            self._in_thread = None

    def _refuse_overdue(self, group: SubmissionGroup) -> None:
        """Refuse the submissions that have waited too long for a locked database."""
        at = asyncio.get_running_loop().time()
        late = [s for s in group.submissions if s.deadline <= at]
        kept = [s for s in group.submissions if s.deadline > at]
        late += self.backlog.pop_where(lambda s: s.deadline <= at)
        if not late:
            return
        error = ServiceError(
            ErrorCode.UNAVAILABLE,
            "The store is locked by another process: ask again in a moment.",
            retry_after=RETRY_AFTER_S,
        )
        failed = {id(s): self._fail_lease(s, error) for s in late}
        group.submissions = kept
        for submission in late:
            _fail_submission(submission, failed[id(submission)])

    def _resolve_submissions(self, group: SubmissionGroup, outcome: WriteResult) -> None:
        """Resolve the finished submissions, and leave the others in the group."""
        events: list[AppendEvent] = []
        left = {id(submission) for submission in outcome.to_retry}
        submissions, group.submissions = group.submissions, list(outcome.to_retry)
        for submission in submissions:
            if id(submission) in left:
                continue
            error = outcome.errors.get(id(submission))
            if error is None:
                events += [c for c in submission.changes if isinstance(c, AppendEvent)]
            if submission.done.done():
                continue  # the waiting caller was cancelled; the changes are written all the same
            if error is None:
                submission.done.set_result(None)
            else:
                _fail_submission(submission, error)
        if events:
            self._on_commit(events)

    async def drain(self) -> None:
        """Wait until everything submitted is written, then end the thread."""
        with suppress(ServiceError):
            await self.submit((), None)  # done after all that came before it
        if self._in_thread is not None:
            await self._in_thread
        self._thread.shutdown(wait=True)

    def _write_group(self, group: SubmissionGroup, wait_ms: int) -> WriteResult:
        """Write a group in one transaction, or in parts when some of it cannot be written.

        Args:
            group: what to write.
            wait_ms: the longest to wait for another connection's transaction.
        """
        if wait_ms != self._wait_ms:
            self._connection.execute(f"PRAGMA busy_timeout={wait_ms}")
            self._wait_ms = wait_ms
        parts = group.split_by_lease()
        if len(parts) > 1:
            fault = self._try_write(group, group.submissions)
            if fault is None:
                return WriteResult()
            if isinstance(fault, DatabaseLocked):
                return WriteResult(to_retry=group.submissions)
        errors: dict[int, Exception] = {}
        for i, part in enumerate(parts):
            fault = self._try_write(group, part)
            if isinstance(fault, DatabaseLocked):
                return WriteResult(errors, [each for later in parts[i:] for each in later])
            if fault is not None:
                for submission in part:
                    errors[id(submission)] = self._fail_lease(submission, fault)
        return WriteResult(errors)

    def _fail_lease(self, submission: Submission, error: Exception) -> Exception:
        """Have all later writes under a submission's lease fail: there must be no gaps.

        Returns:
            what the submission itself fails with.
        """
        lease = submission.lease
        if lease is None:
            return error
        if submission.begins_lease:
            # Who asked is told why; to what follows, there is no such root.
            self._failed_leases[lease] = LeaseLost(lease.root_id)
            return error
        return self._failed_leases.setdefault(lease, error)

    def _try_write(self, group: SubmissionGroup, part: Sequence[Submission]) -> Exception | None:
        """Try to write a part of a group in one transaction; return the error, if any."""
        try:
            with translate_errors():
                self._run_transaction({s.lease for s in part if s.lease}, group.merge_changes(part))
        except Exception as error:
            self._numbers.forget()
            return error
        return None

    def _run_transaction(self, leases: set[Lease], batch: MergedChanges) -> None:
        for lease in leases:
            if lease in self._failed_leases:
                # Writes under a lease must have no gaps: after a failed one, all others fail, too.
                raise self._failed_leases[lease]
        run = self._connection.execute
        try:
            run("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & PRIMARY_CODE_MASK == sqlite3.SQLITE_BUSY:
                raise DatabaseLocked from error
            raise
        self._numbers.begin()
        try:
            self._check_leases(leases)
            self._apply_changes(batch)
            if self._crash is not None:
                self._crash("before")
            started = time.perf_counter()
            run("COMMIT")
            took_s = time.perf_counter() - started
            self._commit_times_s.append(took_s)
            if self._crash is not None:
                self._crash("after")
        except BaseException:
            self._connection.rollback()
            raise
        if self._on_commit_time is not None:
            self._on_commit_time(took_s)
        self._numbers.trim()

    def _apply_changes(self, batch: MergedChanges) -> None:
        """Run a batch's changes in the open transaction."""
        many = self._connection.executemany
        for table, rows in batch.inserts.items():
            self._insert_rows(table, list(rows.values()))
            self._numbers.add_new(rows)
        for table, rows in batch.updates.items():
            for columns, values in statements.group_by_columns(rows).items():
                self._execute_in_chunks(partial(statements.build_update, table, columns), values)
        for each in batch.patches:
            statement = statements.build_patch(each.table, tuple(each.values))
            self._connection.execute(statement, {**each.values, "id_": each.id})
        for table, rows in batch.replacements.items():
            put = list(rows.values())
            many(statements.build_replace(table, tuple(put[0])), put)
        for table, row_ids in batch.deletes.items():
            many(statements.build_delete(table), [(row_id,) for row_id in row_ids])
        for spend in batch.spendings:
            self._add_spending(spend)
        for count, sums in batch.increments.values():
            statement = statements.build_increment(count.table, tuple(count.values), tuple(sums))
            self._connection.execute(statement, {**count.values, **sums})
        if batch.events:
            self._insert_values("events", EVENT_COLUMNS, self._numbers.make_rows(batch.events))

    def _insert_rows(self, table: str, rows: Sequence[Mapping[str, object]]) -> None:
        columns = tuple(rows[0])
        self._insert_values(table, columns, [[row[name] for name in columns] for row in rows])

    def _insert_values(
        self, table: str, columns: tuple[str, ...], rows: Sequence[Sequence[object]]
    ) -> None:
        self._execute_in_chunks(partial(statements.build_insert, table, columns), rows)

    def _execute_in_chunks(
        self, text: Callable[[int], str], rows: Sequence[Sequence[object]]
    ) -> None:
        """Run a statement for many rows, several of them at once.

        A thread lets go of the interpreter for each statement, and waits for it after each: beside
        a busy loop, a thousand of them took a tenth of a second.

        Args:
            text: the statement's, for a number of rows.
            rows: the values of each.
        """
        whole = len(rows) - len(rows) % ROWS_PER_STATEMENT
        for start in range(0, whole, ROWS_PER_STATEMENT):
            several = rows[start : start + ROWS_PER_STATEMENT]
            self._connection.execute(text(ROWS_PER_STATEMENT), [v for row in several for v in row])
        self._connection.executemany(text(1), rows[whole:])

    def _check_leases(self, leases: set[Lease]) -> None:
        """Refuse to write for a lease that was lost without its holder knowing (promise P8)."""
        for lease in leases:
            row = self._connection.execute(
                "SELECT owner, fence FROM roots WHERE id = ?", (lease.root_id,)
            ).fetchone()
            if row is not None and (row[0] != self._owner or row[1] != lease.fence):
                raise LeaseLost(lease.root_id)

    def _add_spending(self, spend: AddSpending) -> None:
        """Add to the money spent in the database itself, which all processes share."""
        run = self._connection.execute
        run("INSERT OR IGNORE INTO spending VALUES (?, ?, 0)", (spend.id, spend.key_id))
        counted = run(
            "UPDATE spending SET nano = nano + :nano"
            " WHERE id = :id AND (:most IS NULL OR nano + :nano <= :most)",
            {"nano": spend.nano_usd, "id": spend.id, "most": spend.limit},
        )
        if not counted.rowcount:
            raise OverLimit(spend.id)

    def invalidate_numbers(self) -> None:
        """Forget the remembered numbers: another process may have added events."""
        self._numbers.forget()


def _fail_submission(submission: Submission, error: Exception) -> None:
    if not submission.done.done():  # else the waiting caller was cancelled
        submission.done.set_exception(error)
        submission.done.exception()  # marks it as retrieved, as a caller need not look


__all__ = ["ChangeWriter", "Conflict"]
