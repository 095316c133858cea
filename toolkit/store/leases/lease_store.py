"""The leases of roots: only the process that holds a root's lease works on it."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Container, Sequence
from typing import Final

from sqlalchemy import ColumnElement, Connection, TextClause, Update, false, or_, select, true

from toolkit.contract.base import format_rfc3339, now
from toolkit.contract.errors import ServiceError
from toolkit.store.changes import InsertRow, Lease, LeaseLost, UpdateRow
from toolkit.store.data_dir.owners import LeaseOwner
from toolkit.store.leases.clock import SharedClock
from toolkit.store.leases.outages import OutageMonitor
from toolkit.store.read_connection import Row
from toolkit.store.reader import RowReader
from toolkit.store.tables import roots
from toolkit.store.writing.direct_writer import DirectWriter
from toolkit.store.writing.writer import ChangeWriter

# The share of a lease that is left when it is renewed: a fifth of it may pass until then, and more
# than half must be left for an outage (`OutageMonitor`).
RENEWED_BELOW: Final = 0.75
# The share of a lease after which, without a renewal, it may have ended before a call does.
STALE_AFTER: Final = 0.5
# Page sizes of free roots: somewhat more than one claim takes, as others claim some of them. Each
# further page is larger, as the database looks through all open roots for each.
FIRST_PAGE_SIZE: Final = 256
PAGE_GROWTH: Final = 4
# A probe writes the end of an expired lease again, this many seconds in the past.
PROBE_MARGIN_S: Final = 0.001
# Leases that cannot be renewed one by one before the rest waits for the next renewal.
MAX_RENEWAL_FAILURES: Final = 16


class LeaseStore:
    """The stored leases of roots (work items): runs, jobs, workflows and tasks.

    Args:
        writer: closes leases, in order with the writes under them.
        changes: takes, renews and releases leases at once.
        build_notice: builds the statement that notifies others of a root that is free or to be
            cancelled; it returns None if they poll.
    """

    def __init__(
        self,
        reader: RowReader,
        writer: ChangeWriter,
        changes: DirectWriter,
        owner: LeaseOwner,
        clock: SharedClock,
        lease_s: float,
        build_notice: Callable[[str], TextClause | None] = lambda _root_id: None,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._changes = changes
        self._owner = owner
        self._clock = clock
        self._lease_s = lease_s
        self.outages = OutageMonitor(lease_s)
        self._build_notice = build_notice
        self._on_work: Callable[[], None] | None = None
        # By the monotonic clock: when all leases that are held had most of their time left.
        self._renewed_at = time.monotonic()
        # Leases that a recent write closes; each is released soon after.
        self._closed: set[Lease] = set()
        # Roots whose claim the database may not have made: id, fence, and `open` to restore.
        self._in_doubt: list[tuple[str, int, bool]] = []

    def build_root(
        self,
        root_id: str,
        kind: str,
        account_id: str,
        key_id: str | None = None,
        agent_id: str | None = None,
    ) -> tuple[InsertRow, Lease]:
        """Build the row of a new root (work item), and this process's lease on it.

        The insert belongs in the root's first write.
        """
        row: dict[str, object] = {
            "id": root_id,
            "account_id": account_id,
            "kind": kind,
            "open": True,
            "cancel_requested": False,
            "owner": self._owner.id,
            "lease_until": self._clock.build_first_end(self._lease_s),
            "fence": 1,
            "created_at": format_rfc3339(now()),
            "key_id": key_id,
            "agent_id": agent_id,
        }
        return InsertRow("roots", row), Lease(root_id, kind, account_id, 1, key_id, agent_id)

    async def claim(
        self, limit: int, accepts: Callable[[Row], Awaitable[bool]] | None = None
    ) -> list[Lease]:
        """Claim unfinished work items (roots) that no living process works on, oldest first.

        Roots that others work on are never read. Free roots are read a page at a time, and further
        pages only if `accepts` rejects most of the roots.

        Args:
            accepts: decides for each root whether to claim it; all are claimed by default.
        """
        await self._release_doubtful()
        leases: list[Lease] = []
        is_probed = False
        at = await self._clock.read()
        owners = await self._reader.list_root_owners()
        dead_owners = {owner for owner in owners if self._owner.is_stale(owner)}
        rows: list[Row] = []
        size = FIRST_PAGE_SIZE
        while True:
            after = rows[-1] if rows else None
            rows = await self._reader.list_free_roots(self._owner.id, at, dead_owners, after, size)
            self.outages.note_answer()
            for row in rows:
                if len(leases) == limit:
                    return leases
                if self._may_be_renewed(row, dead_owners):
                    if not is_probed:
                        is_probed = await self._probe(row)
                elif accepts is None or await accepts(row):
                    lease = await self._take(row)
                    leases += [] if lease is None else [lease]
            if len(rows) < size:
                return leases
            size *= PAGE_GROWTH

    async def claim_root(self, root_id: str) -> Lease | None:
        """Claim an unfinished work item if nobody works on it any more; otherwise return None."""
        await self._release_doubtful()
        at = await self._clock.read()
        row = await self._reader.get_row("roots", root_id)
        self.outages.note_answer()
        if row is None or not row["open"] or row["owner"] == self._owner.id:
            return None
        dead_owners = (
            {row["owner"]} if row["owner"] and self._owner.is_stale(row["owner"]) else set()
        )
        if not self._is_free(row, at) or self._may_be_renewed(row, dead_owners):
            return None
        return await self._take(row)

    async def is_abandoned(self, root_id: str) -> bool:
        """Check whether a work item is unfinished and nobody works on it or may renew its lease."""
        row = await self._reader.get_row("roots", root_id)
        if row is None or not row["open"]:
            return False
        if not self._is_free(row, await self._clock.read()):
            return False
        dead_owners = (
            {row["owner"]} if row["owner"] and self._owner.is_stale(row["owner"]) else set()
        )
        if self._may_be_renewed(row, dead_owners):
            await self._probe(row)
            return False
        return True

    def begin_grace(self) -> None:
        """Give other engines a moment to renew their leases, as the database may just be back.

        Until then nothing is claimed whose lease has ended by the clock alone.
        """
        self.outages.begin_grace()

    def _is_free(self, row: Row, at: float) -> bool:
        owner = row["owner"]
        return owner is None or row["lease_until"] < at or self._owner.is_stale(owner)

    def _may_be_renewed(self, row: Row, dead_owners: Container[str]) -> bool:
        """Check whether the living owner of an expired lease may yet renew it after an outage."""
        owner = row["owner"]
        return bool(self.outages.is_recent and owner and owner not in dead_owners)

    async def _probe(self, row: Row) -> bool:
        """Test whether rows can be written; return True if a row was written.

        The row is that of an expired lease, whose end is set to this moment: its owner may still
        renew it, and others still see that it has ended.
        """
        now_ = self._clock.build_now()
        expired_root = (
            select(roots.c.id)
            .where(
                roots.c.id == row["id"], roots.c.fence == row["fence"], roots.c.lease_until < now_
            )
            .with_for_update(skip_locked=True)
        )
        update = roots.update().where(roots.c.id == expired_root.scalar_subquery())
        return bool(await self._execute(update.values(lease_until=now_ - PROBE_MARGIN_S)))

    async def _execute(self, statement: Update) -> int:
        """Make a change at once, and return the number of its rows; note success or failure."""
        try:
            count = await self._changes.execute(statement)
        except ServiceError:
            self.outages.note_failed_write()
            raise
        if count:
            self.outages.note_write()
        return count

    async def _take(self, row: Row, key_id: str | None = None) -> Lease | None:
        """Take the lease of a work item; return None if another process was quicker.

        Args:
            key_id: API key of the work from now on; unchanged by default.
        """
        fence, key_id = int(row["fence"]), key_id or row["key_id"]
        now_ = self._clock.build_now()
        # Its lease may have been renewed since the row was read; a dead owner does not do that.
        is_ended = or_(
            roots.c.owner.is_(None),
            roots.c.lease_until < now_,
            roots.c.open.is_(False),
            true() if row["owner"] and self._owner.is_stale(row["owner"]) else false(),
        )
        # A locked row belongs to an engine that is writing under the lease, or taking it.
        free = (
            select(roots.c.id)
            .where(roots.c.id == row["id"], roots.c.fence == fence, is_ended)
            .with_for_update(skip_locked=True)
        )
        taking = asyncio.ensure_future(
            self._execute(
                roots.update()
                .where(roots.c.id == free.scalar_subquery())
                .values(
                    owner=self._owner.id,
                    lease_until=now_ + self._lease_s,
                    fence=fence + 1,
                    open=True,
                    cancel_requested=row["cancel_requested"] if row["open"] else False,
                    key_id=key_id,
                )
            )
        )
        try:
            count = await asyncio.shield(taking)
        except asyncio.CancelledError:
            # Otherwise nobody would work on it, and others could not take it.
            if await taking:
                update = roots.update().where(roots.c.id == row["id"], roots.c.fence == fence + 1)
                await self._changes.execute(update.values(owner=None, open=row["open"]))
            raise
        except ServiceError:
            self._in_doubt.append((row["id"], fence + 1, bool(row["open"])))
            raise
        self._writer.invalidate_numbers()
        if not count:
            return None
        return Lease(row["id"], row["kind"], row["account_id"], fence + 1, key_id, row["agent_id"])

    async def reacquire(self, root_id: str, key_id: str | None = None) -> Lease | None:
        """Lease a work item that has ended; return None if it has not, or another was quicker."""
        await self._writer.submit([], None)  # it may just be closing
        row = await self._reader.get_row("roots", root_id)
        return None if row is None or row["open"] else await self._take(row, key_id)

    def renew(self) -> None:
        """Extend this process's leases that are partly used up; may be called on any thread.

        Leases that another process took meanwhile stay with it. Each renewal writes a row, and
        thousands of those a second would be most of the database's work.
        """
        began = time.monotonic()
        threshold = self._clock.build_now() + self._lease_s * RENEWED_BELOW
        conditions = (
            roots.c.owner == self._owner.id,
            roots.c.open == true(),
            roots.c.lease_until < threshold,
        )
        # Locked in the order in which the writer locks them.
        locked_ids = select(roots.c.id).where(*conditions).order_by(roots.c.id).with_for_update()
        renewal = roots.update().values(lease_until=self._clock.build_now() + self._lease_s)
        try:
            count = self._changes.execute_now(
                renewal.where(roots.c.id.in_(locked_ids), *conditions)
            )
        except ServiceError:
            self.outages.note_failed_write()
            self._renew_one_by_one(renewal, conditions)
            raise
        if count:
            self.outages.note_write()
        self._renewed_at = began

    def _renew_one_by_one(self, renewal: Update, conditions: Sequence[ColumnElement[bool]]) -> None:
        """Renew each lease for itself: on a full disk there is room for some rows, as a rule.

        Another engine could write the row of a lease that its owner cannot renew with all others,
        and would take it for abandoned.
        """
        ids = self._changes.transact_now(
            lambda connection: connection.scalars(select(roots.c.id).where(*conditions)).all()
        )
        failures = 0
        for root_id in ids:
            if failures == MAX_RENEWAL_FAILURES:
                return
            try:
                self._changes.execute_now(renewal.where(roots.c.id == root_id, *conditions))
            except ServiceError:
                failures += 1

    def note_idle(self) -> None:
        """Note that this process holds no lease, so that none is overdue; on any thread."""
        self._renewed_at = time.monotonic()

    async def _release_doubtful(self) -> None:
        """Release work items whose claim was in doubt when the database's connection was lost."""
        while self._in_doubt:
            root_id, fence, is_open = self._in_doubt[-1]
            conditions = (roots.c.owner == self._owner.id, roots.c.fence == fence)
            update = roots.update().where(roots.c.id == root_id, *conditions)
            await self._changes.execute(update.values(owner=None, open=is_open))
            self._in_doubt.pop()

    async def check(self, lease: Lease) -> None:
        """Check that this process, which may have been suspended for long, still has a lease.

        A lease that has ended, and that nobody has taken yet, is renewed first: else another
        process might take it in the next moment.

        Raises:
            LeaseLost: another process has taken it.
            ServiceError: `UNAVAILABLE` when the store could not be asked.
        """
        if time.monotonic() - self._renewed_at > self._lease_s * STALE_AFTER:
            await asyncio.to_thread(self.renew)
        row = await self._reader.get_row("roots", lease.root_id, "owner", "fence")
        if row is not None and (row["owner"] != self._owner.id or row["fence"] != lease.fence):
            raise LeaseLost(lease.root_id)

    def build_closing(self, lease: Lease) -> UpdateRow:
        """Build the change that ends a work item and releases its lease.

        It belongs in the last write under the lease; `release` must still be called afterwards.
        """
        self._closed.add(lease)
        return _make_closing(lease)

    def drop(self, lease: Lease) -> None:
        """Note that a work item's first write was refused, so its release has nothing to do."""
        self._closed.add(lease)

    def watch_work(self, on_work: Callable[[], None]) -> None:
        """Register a function to call on the loop when others release work, or request a cancel."""
        self._on_work = on_work

    def note_work(self) -> None:
        """Note that others have released work."""
        if self._on_work is not None:
            self._on_work()

    async def release(self, lease: Lease, *, is_done: bool, is_announced: bool = False) -> None:
        """Release a lease; `is_done` ends its work item, else another process may claim it.

        Args:
            is_done: whether the work is finished.
            is_announced: whether to notify others at once that it is free, before their next poll.

        Raises:
            LeaseLost: this process no longer holds the lease.
        """
        is_closed = lease in self._closed
        self._closed.discard(lease)
        if is_done:
            if not is_closed:
                await self._writer.submit([_make_closing(lease)], lease, eager=False)
            return
        # Wait for pending writes under it: they would be refused afterwards, and paid for again.
        await asyncio.wait([self._writer.submit((), lease)])
        # Not by the writer, which may refuse everything under this lease by now.
        conditions = (roots.c.owner == self._owner.id, roots.c.fence == lease.fence)
        update = roots.update().where(roots.c.id == lease.root_id, *conditions).values(owner=None)
        await self._change(update, lease.root_id if is_announced else None)
        self._writer.forget(lease)

    async def request_cancel(self, root_id: str) -> None:
        """Ask the process that works on a work item to cancel it."""
        update = roots.update().where(roots.c.id == root_id).values(cancel_requested=True)
        await self._change(update, root_id)

    async def _change(self, statement: Update, told_of: str | None) -> None:
        """Make a change, and notify other engines of a work item in the same transaction.

        Args:
            told_of: id of the work item; None notifies nobody.
        """
        notice = None if told_of is None else self._build_notice(told_of)
        if notice is None:
            await self._changes.execute(statement)
            return

        def work(connection: Connection) -> None:
            if connection.execute(statement).rowcount:
                connection.execute(notice)

        await self._changes.transact(work)

    async def list_cancel_requests(self) -> set[str]:
        """Return the ids of work items that this process works on and that are to be cancelled."""
        return await self._reader.list_cancel_requests(self._owner.id)


def _make_closing(lease: Lease) -> UpdateRow:
    return UpdateRow("roots", lease.root_id, {"owner": None, "open": False})
