"""The writer: groups all submissions of one turn of the loop into one transaction."""

import asyncio
import math
import random
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field

from toolkit.contract.errors import ServiceError
from toolkit.store.changes import (
    AppendEvent,
    Change,
    Conflict,
    Lease,
    LeaseLost,
    OverLimit,
    make_retryable_error,
)
from toolkit.store.writing.outages import ROWS, WriteOutages
from toolkit.store.writing.submissions import Backlog, MergedChanges, Submission, SubmissionGroup
from toolkit.store.writing.write_connection import (
    CommitInDoubt,
    DatabaseLocked,
    DatabaseUnreachable,
    DatabaseUnwritable,
    WriteConnection,
)

# Handing a commit to a thread costs more than a fast commit in the loop; a slow commit in the loop
# would block everything else.
SLOW_COMMIT_S = 0.002
# The median; a single sync of the disk may take much longer.
SLOW_SYNC_S = 0.001
# The largest groups, by weight: in the loop they block it; a slow commit justifies a larger group.
MAX_LOOP_WEIGHT, MAX_THREAD_WEIGHT = 96, 256
# And by the characters of its documents, whose texts are indexed.
MAX_LOOP_SIZE = 50_000
LINGER_S = 0.01
# A separate commit costs as much as this many turns of the loop.
MAX_FOLLOWING_TURNS = 40
# Another process's transaction is mostly over in a moment, and a hop to the thread costs more: the
# loop looks again a few times, after pauses that keep two processes from looking in step.
LOOP_TRIES, LEAST_PAUSE_S, MOST_PAUSE_S = 20, 0.0005, 0.0015
# How long to wait in the thread then, again and again: submissions that have waited too long are
# refused in between.
THREAD_WAIT_MS = 100
# While the database takes no writes, such as on a full disk: the pause between two tries, which
# grows, and the parts of a group that are tried before the rest waits, too.
FIRST_UNWRITABLE_PAUSE_S, LAST_UNWRITABLE_PAUSE_S, MAX_UNWRITABLE_PARTS = 0.02, 0.25, 8
# Between two attempts to restore the ballast: a failed attempt takes up space for a moment.
BALLAST_INTERVAL_S = 0.5
# How long a request waits for a database that is locked or away, and how long the result of work,
# which was paid: longer than a database takes to fail over. An engine that ends waits less.
REQUEST_WAIT_S, WORK_WAIT_S, LAST_WAIT_S = 5.0, 600.0, 15.0


@dataclass(frozen=True, slots=True)
class WriteResult:
    """The result of writing a group.

    Attributes:
        errors: errors of submissions that were not written.
        to_retry: submissions to retry, because the database was locked or away.
    """

    errors: Mapping[Submission, Exception] = field(default_factory=dict)
    to_retry: Sequence[Submission] = ()


class ChangeWriter:
    """A writer of submissions, in transactions and in order.

    Args:
        committed: called on the loop with the events of each transaction, once it is durable.
        outages: monitor that it notifies of failed writes; the writer's own by default.

    Attributes:
        backlog: queue of submissions that are not written yet.
    """

    def __init__(
        self,
        connection: WriteConnection,
        *,
        is_synced: bool,
        committed: Callable[[Sequence[AppendEvent]], None],
        timed: Callable[[float], None] | None = None,
        outages: WriteOutages | None = None,
    ) -> None:
        self._connection = connection
        self._is_synced = is_synced
        self._on_commit = committed
        self._on_commit_time = timed
        self.backlog = Backlog()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="toolkit-writer")
        self._writing: asyncio.Task[None] | None = None
        self._scheduled = False
        self._ends_at = math.inf  # by the loop's clock: when nothing waits any longer
        self._lingering: asyncio.TimerHandle | None = None
        # How many are likely to submit more once they are told: as many as lately.
        self._expected = 0
        # A disk that is slow is slow each time; a machine that is busy holds up some of them.
        self._commit_times_s: deque[float] = deque([0.0], maxlen=8)
        self._failed_leases: dict[Lease, Exception] = {}
        # Submissions that may have been written; some of them may have been refused since.
        self._doubt: tuple[frozenset[Submission], CommitInDoubt] | None = None
        self._abandoned: set[str] = set()
        self._hindrance = DatabaseLocked.message
        self._outages = WriteOutages() if outages is None else outages
        # Whether the last try found a database that takes no writes, rather than a lock.
        self._is_unwritable = False
        # The ballast that calls in flight need, and whether it was dropped and not yet restored.
        self.wanted_ballast_bytes = 0
        self._lacks_ballast = False
        self._grow_at = 0.0

    @property
    def ballast_bytes(self) -> int:
        """The disk space that is reserved for results, in bytes."""
        return self._connection.ballast_bytes

    def grow_ballast(self) -> "asyncio.Future[None]":
        """Have `wanted_ballast_bytes` of disk space reserved; the future is done when they are."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + WORK_WAIT_S
        submission = Submission((), None, loop.create_future(), deadline, grows_ballast=True)
        return self._submit(submission, eager=True)

    def submit(
        self,
        changes: Sequence[Change],
        lease: Lease | None,
        *,
        eager: bool = True,
        max_wait_s: float | None = None,
        conditional: bool = False,
        paid: bool = False,
    ) -> "asyncio.Future[None]":
        """Submit changes; the future is done when they are durable.

        Changes that nobody waits for (`eager=False`) are written with the next awaited changes,
        or alone after `LINGER_S`. `Store.write` describes the options.
        """
        if not eager and lease is not None:
            future = self.backlog.join(changes, lease)
            if future is not None:
                return future
        loop = asyncio.get_running_loop()
        if max_wait_s is None:
            max_wait_s = REQUEST_WAIT_S if lease is None else WORK_WAIT_S
        submission = Submission(
            changes,
            lease,
            loop.create_future(),
            loop.time() + max_wait_s,
            is_awaited=eager,
            is_conditional=conditional,
            is_paid=paid,
        )
        return self._submit(submission, eager=eager)

    def _submit(self, submission: Submission, *, eager: bool) -> "asyncio.Future[None]":
        loop = asyncio.get_running_loop()
        self.backlog.append(submission)
        if self._writing is not None:
            return submission.future
        if eager and not self._scheduled:
            self._scheduled = True
            # Not in the very next turn, so that its writes join the group, such as the first write
            # of a run that was accepted in this turn.
            loop.call_soon(loop.call_soon, self._flush)
        elif not eager and not self._scheduled and self._lingering is None:
            self._lingering = loop.call_later(LINGER_S, self._flush)
        return submission.future

    def _flush(self) -> None:
        self._scheduled = False
        if self._lingering is not None:
            self._lingering.cancel()
            self._lingering = None
        if self._writing is not None or not self.backlog:
            return
        in_thread = self._connection.is_remote or self._is_slow()
        max_weight = MAX_THREAD_WEIGHT if in_thread else MAX_LOOP_WEIGHT
        group = SubmissionGroup(self.backlog.pop_group(max_weight))
        in_thread |= group.size > MAX_LOOP_SIZE
        if not in_thread:
            self._resolve_submissions(group, self._write_group(group, 0))
        if group.submissions:
            self._writing = asyncio.create_task(self._flush_on(group, in_loop=not in_thread))
        else:
            self._flush_rest()

    def _flush_rest(self) -> None:
        if self.backlog:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _is_slow(self) -> bool:
        """Check whether commits block the loop for longer than a thread would cost."""
        took = sorted(self._commit_times_s)
        return took[len(took) // 2] > SLOW_SYNC_S if self._is_synced else took[0] > SLOW_COMMIT_S

    async def _flush_on(self, group: SubmissionGroup, *, in_loop: bool) -> None:
        """Write a group that could not be written at once, in the thread.

        Args:
            in_loop: whether to try it in the loop first, as others had the database locked.
        """
        try:
            if in_loop:
                group = await self._try_in_loop(group)
            if group.submissions:
                await self._flush_in_thread(group)
        finally:
            self._writing = None
        self._flush_rest()

    async def _try_in_loop(self, group: SubmissionGroup) -> SubmissionGroup:
        """Try to write a group and later submissions; return the group with the unwritten rest."""
        for _ in range(0 if self._is_unwritable else LOOP_TRIES):
            await asyncio.sleep(random.uniform(LEAST_PAUSE_S, MOST_PAUSE_S))  # noqa: S311 - no secret
            group = self._extend_group(group, MAX_LOOP_WEIGHT)
            self._resolve_submissions(group, self._write_group(group, 0))
            if not group.submissions or self._is_unwritable:
                break
        return group

    async def _flush_in_thread(self, group: SubmissionGroup) -> None:
        """Write a group in the thread, and then all later submissions."""
        loop = asyncio.get_running_loop()
        pause_s = FIRST_UNWRITABLE_PAUSE_S
        while group.submissions:
            try:
                outcome = await loop.run_in_executor(
                    self._thread, self._write_group, group, THREAD_WAIT_MS
                )
            except RuntimeError:  # an interpreter that ends may start no thread any more
                outcome = self._write_group(group, THREAD_WAIT_MS)
            awaited = sum(submission.is_awaited for submission in group.submissions)
            self._resolve_submissions(group, outcome)
            if group.submissions:
                self._refuse_overdue(group)
            if group.submissions:
                self._outages.note_failure(ROWS)
                if self._is_unwritable:
                    await asyncio.sleep(pause_s)
                    pause_s = min(LAST_UNWRITABLE_PAUSE_S, 2 * pause_s)
                    group = self._extend_group(group, MAX_THREAD_WEIGHT)
            else:
                self._outages.note_success(ROWS)
                pause_s = FIRST_UNWRITABLE_PAUSE_S
                self._expected = max(awaited, self._expected - 1)
                await self._let_follow()
                group = SubmissionGroup(self.backlog.pop_group(MAX_THREAD_WEIGHT))

    def _extend_group(self, group: SubmissionGroup, max_weight: int) -> SubmissionGroup:
        """Return a group with changes that were submitted meanwhile, if it has room for them."""
        room = max_weight - sum(submission.weight for submission in group.submissions)
        if room <= 0 or not self.backlog:
            return group
        return SubmissionGroup([*group.submissions, *self.backlog.pop_group(room)])

    async def _let_follow(self) -> None:
        """Let callers whose changes were just written submit their next changes as one group.

        Otherwise they would split into ever smaller groups, each with its own commit.
        """
        for _ in range(MAX_FOLLOWING_TURNS if self._expected > 1 else 0):
            if len(self.backlog) >= self._expected:
                break
            await asyncio.sleep(0)

    def _refuse_overdue(self, group: SubmissionGroup) -> None:
        """Refuse the submissions that have waited too long for a locked database."""
        at = asyncio.get_running_loop().time()
        latest = math.inf if at >= self._ends_at else at
        overdue = [s for s in group.submissions if s.deadline <= latest]
        group.submissions = [s for s in group.submissions if s.deadline > latest]
        overdue += self.backlog.pop_where(lambda s: s.deadline <= latest)
        error = make_retryable_error(self._hindrance)
        failed = {submission: self._fail_lease(submission, error) for submission in overdue}
        for submission, reason in failed.items():
            submission.resolve(reason)

    def _resolve_submissions(self, group: SubmissionGroup, outcome: WriteResult) -> None:
        """Resolve the finished submissions, and leave the others in the group."""
        events: list[AppendEvent] = []
        to_retry = {*outcome.to_retry}
        submissions, group.submissions = group.submissions, list(outcome.to_retry)
        for submission in submissions:
            if submission in to_retry:
                continue
            error = outcome.errors.get(submission)
            if error is None:
                events += [c for c in submission.changes if isinstance(c, AppendEvent)]
            submission.resolve(error)
        if events:
            self._on_commit(events)

    async def drain(self) -> None:
        """Wait until everything submitted is written, then end the thread.

        A submission that cannot be written within `LAST_WAIT_S` is refused.
        """
        self._ends_at = asyncio.get_running_loop().time() + LAST_WAIT_S
        with suppress(ServiceError):
            await self.submit((), None)  # done after all that came before it
        if self._writing is not None:
            await self._writing
        self._thread.shutdown(wait=True)

    def _write_group(self, group: SubmissionGroup, wait_ms: int) -> WriteResult:
        """Write a group in one transaction, or in parts when some of it cannot be written."""
        if self._doubt is not None:
            return self._settle_doubt(*self._doubt, group)
        self._is_unwritable = False
        if self._abandoned:
            self._release_abandoned(wait_ms)
        parts = group.split_by_lease()
        if self._lacks_ballast and not self._restore_ballast():
            # The space that was given back is for results alone: else other writes would use it up.
            paid = [part for part in parts if any(submission.is_paid for submission in part)]
            outcome = self._write_parts(group, paid, wait_ms)
            finished = {item for part in paid for item in part}.difference(outcome.to_retry)
            to_retry = [item for item in group.submissions if item not in finished]
            return WriteResult(outcome.errors, to_retry)
        if len(parts) > 1:
            fault = self._try_write(group, group.submissions, wait_ms)
            if fault is None:
                return WriteResult()
            if isinstance(fault, DatabaseLocked) and not isinstance(fault, DatabaseUnwritable):
                return WriteResult(to_retry=group.submissions)
        return self._write_parts(group, parts, wait_ms)

    def _write_parts(
        self, group: SubmissionGroup, parts: Sequence[list[Submission]], wait_ms: int
    ) -> WriteResult:
        """Write the parts of a group, each in a transaction of its own.

        On a full disk a small part may still fit after a large part did not. The parts of one work
        item stay in order, and so do those without a lease, as they may change the same rows.
        """
        errors: dict[Submission, Exception] = {}
        unwritten_parts: list[list[Submission]] = []
        # Work items with a part that is left; None stands for all that has no lease.
        waiting: set[str | None] = set()
        failures = 0
        lacks_room = False
        for i, part in enumerate(parts):
            lease = part[0].lease
            root_id = None if lease is None else lease.root_id
            grows_ballast = part[0].grows_ballast
            if root_id in waiting or (grows_ballast and lacks_room):
                unwritten_parts.append(part)
                continue
            fault = self._try_write(group, part, wait_ms)
            if isinstance(fault, DatabaseUnwritable) and grows_ballast:
                # It changes no row, so the rows behind it need not wait for the ballast.
                lacks_room = True
                unwritten_parts.append(part)
            elif isinstance(fault, DatabaseUnwritable) and failures < MAX_UNWRITABLE_PARTS:
                failures += 1
                unwritten_parts.append(part)
                waiting.add(root_id)
            elif isinstance(fault, DatabaseLocked):
                unwritten_parts += parts[i:]
                break
            elif fault is not None:
                errors |= {submission: self._fail_lease(submission, fault) for submission in part}
        return WriteResult(errors, [submission for part in unwritten_parts for submission in part])

    def _restore_ballast(self) -> bool:
        """Try, now and then, to reserve all wanted disk space; return whether it is reserved."""
        self._is_unwritable = True
        if time.monotonic() < self._grow_at:
            return False
        self._grow_at = time.monotonic() + BALLAST_INTERVAL_S
        try:
            self._connection.grow_ballast(self.wanted_ballast_bytes)
        except (DatabaseLocked, ServiceError) as error:
            if isinstance(error, DatabaseLocked):
                self._hindrance = error.message
            return False
        self._lacks_ballast = self._is_unwritable = False
        return True

    def forfeit(self, lease: Lease, error: Exception) -> None:
        """Have all later writes under a lease fail with an error, until `forget` is called."""
        self._failed_leases.setdefault(lease, error)

    def forget(self, lease: Lease) -> None:
        """Forget that writes under a lease fail, because the lease has been released."""
        self._failed_leases.pop(lease, None)

    def _fail_lease(self, submission: Submission, error: Exception) -> Exception:
        """Make all later writes under a submission's lease fail: there must be no gaps.

        Returns:
            The submission's own error.
        """
        lease = submission.lease
        if lease is None or (submission.is_conditional and isinstance(error, Conflict | OverLimit)):
            return error
        if submission.begins_lease:
            # The caller gets the reason; for later writes, there is no such root.
            self._failed_leases[lease] = LeaseLost(lease.root_id)
            return error
        return self._failed_leases.setdefault(lease, error)

    def _try_write(
        self, group: SubmissionGroup, part: Sequence[Submission], wait_ms: int
    ) -> Exception | None:
        """Try to write a part of a group in one transaction; return the error, or None."""
        leases = {s.lease for s in part if s.lease}
        for lease in leases:
            if lease in self._failed_leases:
                # Writes under a lease must have no gaps: after a failure, all later writes fail.
                return self._failed_leases[lease]
        try:
            took_s = self._write_or_drop_ballast(leases, group, part, wait_ms)
        except CommitInDoubt as in_doubt:
            self._doubt = frozenset(part), in_doubt
            self._hindrance = DatabaseUnreachable.message
            return DatabaseUnreachable()
        except Exception as error:
            if isinstance(error, DatabaseLocked):
                self._hindrance = error.message
            self._is_unwritable |= isinstance(error, DatabaseUnwritable)
            return error
        self._commit_times_s.append(took_s)
        if self._on_commit_time is not None:
            self._on_commit_time(took_s)
        return None

    def _write_or_drop_ballast(
        self,
        leases: Collection[Lease],
        group: SubmissionGroup,
        part: Sequence[Submission],
        wait_ms: int,
    ) -> float:
        """Write a part; if space is missing for a paid result, release the reserved space first.

        Returns:
            the seconds that the commit took.
        """
        if any(submission.grows_ballast for submission in part):
            self._connection.grow_ballast(self.wanted_ballast_bytes)
        try:
            return self._connection.write(leases, group.merge_changes(part), wait_ms)
        except DatabaseUnwritable:
            # Not for a group that begins something, too: its parts are tried one by one.
            if not all(
                submission.is_paid or submission.lease is part[0].lease for submission in part
            ):
                raise
            if (
                not any(submission.is_paid for submission in part)
                or not self._connection.drop_ballast()
            ):
                raise
            self._lacks_ballast = True
            self._grow_at = time.monotonic() + BALLAST_INTERVAL_S
            return self._connection.write(leases, group.merge_changes(part), wait_ms)

    def _settle_doubt(
        self, submissions: frozenset[Submission], in_doubt: CommitInDoubt, group: SubmissionGroup
    ) -> WriteResult:
        """Find out if a commit was made; the other submissions are retried."""
        doubted = [s for s in group.submissions if s in submissions]
        other_submissions = [s for s in group.submissions if s not in submissions]
        # Submissions that were refused meanwhile may have been written all the same.
        refused = submissions.difference(doubted)
        errors: dict[Submission, Exception] = {}
        try:
            is_written = in_doubt.find_outcome()
        except DatabaseLocked as error:
            self._hindrance = error.message
            return WriteResult(to_retry=group.submissions)
        except ServiceError as error:
            is_written, refused = True, submissions
            errors = {s: self._fail_lease(s, error) for s in doubted}
        self._doubt = None
        if not is_written:
            return WriteResult(to_retry=group.submissions)
        self._abandoned |= {s.lease.root_id for s in refused if s.lease and s.begins_lease}
        return WriteResult(errors, other_submissions)

    def _release_abandoned(self, wait_ms: int) -> None:
        """Release work items that were refused but written, so that an engine can claim them."""
        updates: dict[str, dict[str, object]] = {
            root_id: {"owner": None} for root_id in self._abandoned
        }
        with suppress(DatabaseLocked, CommitInDoubt, ServiceError):
            self._connection.write((), MergedChanges(updates={"roots": updates}), wait_ms)
            self._abandoned.clear()

    def invalidate_numbers(self) -> None:
        """Forget the remembered event numbers, because another process may have added events."""
        self._connection.numbers.forget()
