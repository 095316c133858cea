"""The deployment: the engines that share one store, and the rows by which they share limits.

A single engine keeps its limits in memory. Several engines change rows of the store; changes that
are requested meanwhile are committed together (group commit). Times in rows are the store's, in
seconds. The limits use these fields of a row's document:

- `used_until`: time until which everything is used up: for a connection by unit (`requests`,
  `tokens`), for the requests of a key one number (`UnitPace`).
- `limits`: the maximum number of the connection's calls in flight, by the id of the engine that
  states it; the largest applies. `places`: each engine's claim to places, by its id, as
  `[held, wanted, since, at]` (`PlaceClaim`).
- `health`: the last news of the connection: `n`, its number; `by`, the engine that published it;
  `open`, `until` and `cooldowns` of the breaker (`BreakerPosition`).
- `probe`: `[engine, until]`, the engine that probes whether the connection has recovered.
"""

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeAlias, TypeVar

from toolkit.contract.errors import ToolkitError
from toolkit.store import LimitDocument, LimitStore

log = logging.getLogger(__name__)
T = TypeVar("T")

RowChange: TypeAlias = Callable[[LimitDocument, float], T]
# The id of the row, the change, and a future for the result of the committed change.
PendingChange: TypeAlias = tuple[str, RowChange[Any], "asyncio.Future[Any]"]

# The interval at which an engine polls for other engines and their changes.
POLL_INTERVAL_S = 0.25
CLEANUP_INTERVAL_S = 3600.0
CLOSE_TIMEOUT_S = 2.0
# Other engines consider an engine dead after somewhat more than this time without a sign of it.
OUT_OF_TOUCH_S = 3.0


class Deployment:
    """The engines that share a store, as this engine knows them; it is alone until opened.

    Attributes:
        engines: the ids of the engines that have the store open, including this engine.
        is_alone: whether there is no other engine.

    Args:
        limits: the store of the rows.
    """

    def __init__(self, limits: LimitStore) -> None:
        self._limits = limits
        self.engine_id = limits.engine_id
        self.engines = frozenset({self.engine_id})
        self.is_alone = True
        self._ready_at = 0.0  # by the monotonic clock
        self._offset_s: float | None = None  # from the monotonic clock to the store's
        self._since, self._cleaned_at = 0.0, time.monotonic()
        self._polled_at = time.monotonic()
        self._on_change: list[Callable[[], None]] = []
        self._watchers: defaultdict[str, list[SharedRow]] = defaultdict(list)
        self._pending: list[PendingChange] = []
        self._closing = asyncio.Event()
        self._later: set[asyncio.Future[object]] = set()
        self._writing: asyncio.Task[None] | None = None
        self._polling: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Look for other engines now, then poll for them regularly."""
        self.engines = await self._limits.list_engines()
        self.is_alone = len(self.engines) == 1
        if not self.is_alone:
            # Engines that were alone must notice this engine before it takes anything.
            self._ready_at = time.monotonic() + self._limits.notice_s
            self._note_time(await self._limits.read_clock())
        self._polling = asyncio.create_task(self._poll_forever(), name="limits")

    async def close(self) -> None:
        """Stop polling; changes that were requested are still made."""
        self._closing.set()
        if self._polling is not None:
            # Not in the middle of a read, which would cost the store a connection.
            _, late = await asyncio.wait([self._polling], timeout=CLOSE_TIMEOUT_S)
            for polling in late:
                polling.cancel()
                await asyncio.wait([polling])
        if self._later:
            await asyncio.wait(self._later)
        with suppress(ToolkitError):
            await self._limits.leave()

    def watch(self, row_id: str, watcher: "SharedRow") -> None:
        """Register a watcher to notify when engines join or leave, and when a row changes."""
        self._watchers[row_id].append(watcher)

    def watch_engines(self, on_change: Callable[[], None]) -> None:
        """Register a function to call whenever engines have joined or left."""
        self._on_change.append(on_change)

    def to_local(self, at: float) -> float:
        """Convert a time of the store's clock to this process's monotonic clock."""
        return at - (self._offset_s or 0.0)

    def to_shared(self, at: float) -> float:
        """Convert a time of this process's monotonic clock to the store's clock."""
        return at + (self._offset_s or 0.0)

    async def change_row(self, row_id: str, change: RowChange[T]) -> T:
        """Change a row while no other engine does, and return the result of the change.

        Args:
            row_id: id of the row.
            change: receives its document, to change in place, and the store's time; it is called on
                a thread, perhaps twice.

        Raises:
            ServiceError: `UNAVAILABLE` if the store could not be written.
        """
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._pending.append((row_id, change, future))
        if self._writing is None:
            self._writing = asyncio.create_task(self._write_all())
        return await future

    def change_row_later(self, row_id: str, change: RowChange[object]) -> None:
        """Change a row soon, without waiting; a failure is ignored."""
        future = asyncio.ensure_future(self.change_row(row_id, change))
        self._later.add(future)
        future.add_done_callback(self._forget)

    def _forget(self, future: "asyncio.Future[object]") -> None:
        self._later.discard(future)
        if not future.cancelled():
            future.exception()  # marks it as retrieved

    async def _write_all(self) -> None:
        """Commit all pending changes; those that arrive together share a transaction."""
        try:
            left_s = self._ready_at - time.monotonic()
            if left_s > 0:
                await asyncio.sleep(left_s)
            while self._pending:
                pending, self._pending = self._pending, []
                row_ids = [row_id for row_id, _, _ in pending]
                try:
                    at, answers = await self._limits.change(row_ids, partial(_apply_all, pending))
                except Exception as error:
                    for _, _, future in pending:
                        if not future.done():
                            future.set_exception(error)
                            future.exception()  # marks it as retrieved: a caller need not look
                    continue
                self._note_time(at)
                for (_, _, future), answer in zip(pending, answers, strict=True):
                    if not future.done():
                        future.set_result(answer)
        finally:
            self._writing = None

    def _note_time(self, at: float) -> None:
        """Update the offset to the store's clock from its time, which was read a moment ago.

        The largest offset counts, because it was measured with the shortest delay; it may shrink a
        little at each reading, because clocks drift.
        """
        offset_s = at - time.monotonic()
        # Clocks drift apart by much less than a thousandth.
        previous_s = self._offset_s
        self._offset_s = offset_s if previous_s is None else max(offset_s, previous_s - 0.0001)

    async def _poll_forever(self) -> None:
        while not self._closing.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), POLL_INTERVAL_S)
                return
            try:
                await self._poll()
            except (ToolkitError, OSError) as error:
                log.warning("the limits of this deployment could not be read: %s", error)

    async def catch_up(self) -> bool:
        """Poll for the changes of others if this engine was suspended or had no database.

        Returns:
            True if it was out of touch and has caught up.
        """
        if time.monotonic() - self._polled_at < OUT_OF_TOUCH_S:
            return False
        try:
            await self._poll()
        except ToolkitError:
            return False  # nothing can be begun without the store, either
        return True

    async def _poll(self) -> None:
        """Poll for other engines and, if there are any, for their changes."""
        engines = await self._limits.list_engines()
        self._polled_at = time.monotonic()
        watchers = [
            watcher for row_watchers in list(self._watchers.values()) for watcher in row_watchers
        ]
        if len(engines) > 1 and self._offset_s is None:
            self._note_time(await self._limits.read_clock())
        if engines != self.engines:
            self.engines, self.is_alone = engines, len(engines) == 1
            for on_change in (*self._on_change, *(watcher.note_engines for watcher in watchers)):
                on_change()
        if self.is_alone:
            return
        page = await self._limits.list_changed(self._since)
        self._since = page.last
        for row_id, document in page.rows.items():
            for watcher in self._watchers.get(row_id, ()):
                watcher.read_row(document)
        for watcher in watchers:
            watcher.tick()
        if time.monotonic() - self._cleaned_at > CLEANUP_INTERVAL_S:
            self._cleaned_at = time.monotonic()
            await self._limits.delete_idle()


class SharedRow:
    """Part of an engine that shares a row with other engines and is notified of their changes.

    Args:
        row_id: id of the row; several parts may share a row.
        deployment: the engines.
    """

    def __init__(self, row_id: str, deployment: Deployment) -> None:
        self._row_id = row_id
        self._deployment = deployment
        deployment.watch(row_id, self)

    async def _change(self, change: RowChange[T]) -> T:
        """Change the row while no other engine does; raises as `Deployment.change_row`."""
        return await self._deployment.change_row(self._row_id, change)

    def _change_later(self, change: RowChange[object]) -> None:
        """Change the row soon; not at all if this engine is alone."""
        if not self._deployment.is_alone:
            self._deployment.change_row_later(self._row_id, change)

    def note_engines(self) -> None:
        """Override to handle that engines joined or left, or that this engine is now alone."""

    def read_row(self, document: LimitDocument) -> None:
        """Override to read the row after a change by any engine, this engine included."""

    def tick(self) -> None:
        """Override for work that is due each `POLL_INTERVAL_S` while this engine is not alone."""


def _apply_all(
    pending: Sequence[PendingChange], documents: Mapping[str, LimitDocument], at: float
) -> tuple[float, list[Any]]:
    """Make changes in the order in which they were requested; return the time and the results."""
    return at, [change(documents[row_id], at) for row_id, change, _ in pending]
