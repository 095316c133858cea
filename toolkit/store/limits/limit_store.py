"""The rows of shared limits: changed by one engine at a time, and read by all of them."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from sqlalchemy import Connection, delete, insert, select, update

from toolkit.store.changes import Conflict
from toolkit.store.data_dir.owners import LeaseOwner
from toolkit.store.leases.clock import SharedClock
from toolkit.store.read_connection import ReadConnection
from toolkit.store.tables import shared_limits
from toolkit.store.writing.direct_writer import DirectWriter

T = TypeVar("T")

# The users of a document define its content: `toolkit/engine/limits/deployment.py`.
LimitDocument: TypeAlias = dict[str, Any]

# A row that nobody has changed for so long limits nothing any more.
MAX_IDLE_S = 7200.0
MAX_COLLISIONS = 3
# The time in which an engine notices a new engine by its file: it looks four times a second.
NOTICE_S = 0.6
# Without files, each engine renews a row at this interval, and counts as alive for so long after.
RENEWAL_INTERVAL_S, ENGINE_LIFE_S = 1.0, 5.0
# An engine that could not renew its row for so long assumes that no other could: each then counts
# as alive for as much longer. An engine that was just opened assumes `FIRST_GAP_S`.
OUTAGE_S, FIRST_GAP_S = 2.5, 10.0
ENGINE_PREFIX = "engine:"
# The document of an engine that keeps artifacts in a place that others do not use.
APART_DOCUMENT = '{"apart":true}'
_CHANGED_SQL = "SELECT id, doc, changed_at FROM shared_limits WHERE changed_at >= :since"


@dataclass(frozen=True, slots=True)
class LimitPage:
    """The rows that were changed lately.

    Attributes:
        rows: their documents, by id.
        last: time from which to list the next changes without a gap; some may be listed again.
    """

    rows: Mapping[str, LimitDocument]
    last: float


class LimitStore:
    """The limits that the engines of a deployment share, one row each.

    Times are by one clock for all engines: the machine's, or the database's.

    Attributes:
        is_apart: whether this engine keeps artifacts in a place that others do not use.
        has_engines_apart: whether any engine does.

    Args:
        list_engines: lists the owners that have the same store open now; None if engines have
            no files, and are known by a row that each of them renews.
    """

    def __init__(
        self,
        reads: ReadConnection,
        changes: DirectWriter,
        owner: LeaseOwner,
        clock: SharedClock,
        list_engines: Callable[[], frozenset[str]] | None,
    ) -> None:
        self._reads = reads
        self._changes = changes
        self._owner = owner
        self._list_engines = list_engines
        self._clock = clock
        # The engines known by their rows when this engine last renewed its own row.
        self._engines: frozenset[str] | None = None
        self._renewed_at = 0.0
        # By the store's clock: when it last was, and how much longer others are there, until when.
        self._last_at: float | None = None
        self._gap_s = self._patient_until = 0.0
        self.is_apart = self.has_engines_apart = False

    @property
    def engine_id(self) -> str:
        """The id of this engine among those that share the store."""
        return self._owner.id

    @property
    def notice_s(self) -> float:
        """The seconds in which all engines notice a newly opened engine."""
        return NOTICE_S if self._list_engines is not None else RENEWAL_INTERVAL_S + NOTICE_S

    async def list_engines(self) -> frozenset[str]:
        """List the engines that have the store open now, including this engine.

        Raises:
            ServiceError: `UNAVAILABLE` if the store could not be read or written.
        """
        if self._list_engines is not None:
            return self._list_engines() | {self._owner.id}
        if self._engines is None or time.monotonic() - self._renewed_at > RENEWAL_INTERVAL_S:
            self._engines = await self._changes.transact(self._renew_engine)
            self._renewed_at = time.monotonic()
        return self._engines

    def _renew_engine(self, connection: Connection) -> frozenset[str]:
        """Renew the row of this engine; return all engines whose rows are recent.

        It also sets `has_engines_apart`, by whether any of them stores artifacts apart from others.
        """
        at, row_id = self._read_time(connection), f"{ENGINE_PREFIX}{self._owner.id}"
        doc = APART_DOCUMENT if self.is_apart else "{}"
        count = connection.execute(
            update(shared_limits).where(shared_limits.c.id == row_id).values(changed_at=at, doc=doc)
        ).rowcount
        if not count:
            connection.execute(insert(shared_limits).values(id=row_id, changed_at=at, doc=doc))
        columns = shared_limits.c
        recent = columns.id.startswith(ENGINE_PREFIX) & (
            columns.changed_at >= at - self._find_life_s(at)
        )
        rows = connection.execute(select(columns.id, columns.doc).where(recent)).all()
        self.has_engines_apart = any(row.doc == APART_DOCUMENT for row in rows)
        return frozenset(row.id.removeprefix(ENGINE_PREFIX) for row in rows)

    def _find_life_s(self, at: float) -> float:
        """Return the seconds for which an engine counts as alive after the renewal of its row.

        They are more for a while after an outage.
        """
        gap_s = FIRST_GAP_S if self._last_at is None else at - self._last_at
        if gap_s > OUTAGE_S:
            self._gap_s, self._patient_until = gap_s, at + ENGINE_LIFE_S
        self._last_at = at
        return ENGINE_LIFE_S + (self._gap_s if at < self._patient_until else 0.0)

    async def leave(self) -> None:
        """Delete this engine's row, if it has one."""
        if self._engines is not None:
            row_id = f"{ENGINE_PREFIX}{self._owner.id}"
            await self._changes.execute(delete(shared_limits).where(shared_limits.c.id == row_id))

    async def change(
        self, row_ids: Sequence[str], change: Callable[[Mapping[str, LimitDocument], float], T]
    ) -> T:
        """Change rows while no other engine does, and return the result of `change`.

        Args:
            row_ids: ids of the rows; a row that does not exist has an empty document.
            change: function of the documents, by id, which it changes in place, and of the time. It
                is called on a thread, and again if the transaction is repeated.

        Raises:
            ServiceError: `UNAVAILABLE` when the store could not be written.
        """
        ids = sorted(set(row_ids))

        def run(connection: Connection) -> T:
            previous = _read_locked(connection, ids)
            documents: dict[str, LimitDocument] = {
                row_id: json.loads(previous[row_id]) if row_id in previous else {} for row_id in ids
            }
            at = self._read_time(connection)
            answer = change(documents, at)
            for row_id, document in documents.items():
                text = json.dumps(document, separators=(",", ":"))
                if text != previous.get(row_id, "{}"):
                    _write(connection, row_id, text, at, exists=row_id in previous)
            return answer

        for _ in range(MAX_COLLISIONS):
            try:
                return await self._changes.transact(run)
            except Conflict:
                continue  # another engine was first to insert a row
        return await self._changes.transact(run)

    async def read_clock(self) -> float:
        """Return the time by the clock that all engines share, in seconds.

        Raises:
            ServiceError: `UNAVAILABLE` when the store could not be asked.
        """
        return await self._clock.read()

    def _read_time(self, connection: Connection) -> float:
        return float(connection.execute(select(self._clock.build_now())).scalar_one())

    async def list_changed(self, since: float) -> LimitPage:
        """List the rows that were changed at a time or after it.

        A change with an earlier time may be committed later. So the next time to ask for is no
        later than the time of any change that may still be committed.

        Raises:
            ServiceError: `UNAVAILABLE` when the store could not be read.
        """
        horizon = await self._clock.read_horizon()
        rows = await self._reads.fetch_rows(_CHANGED_SQL, {"since": since})
        last = max((float(row["changed_at"]) for row in rows), default=since)
        documents = {str(row["id"]): json.loads(row["doc"]) for row in rows}
        return LimitPage(documents, min(last, horizon))

    async def delete_idle(self) -> int:
        """Delete the rows that limit nothing any more; return their number."""

        def run(connection: Connection) -> int:
            at, changed = self._read_time(connection), shared_limits.c.changed_at
            # Later than now: the machine's clock has started anew since.
            idle = (changed < at - MAX_IDLE_S) | (changed > at)
            return connection.execute(delete(shared_limits).where(idle)).rowcount

        return await self._changes.transact(run)


def _read_locked(connection: Connection, row_ids: Sequence[str]) -> dict[str, str]:
    """Read rows, and lock them until the transaction ends."""
    columns = shared_limits.c
    ordered = select(columns.id, columns.doc).where(columns.id.in_(row_ids)).order_by(columns.id)
    return {row.id: row.doc for row in connection.execute(ordered.with_for_update())}


def _write(connection: Connection, row_id: str, text: str, at: float, *, exists: bool) -> None:
    values = {"doc": text, "changed_at": at}
    if exists:
        connection.execute(update(shared_limits).where(shared_limits.c.id == row_id).values(values))
    else:
        connection.execute(insert(shared_limits).values(id=row_id, **values))
