"""Leases on work items: which process works on which run, workflow or task.

A work item is run by the process that holds its lease. New work is leased by the process that
accepted it; work whose process has gone is claimed by another process.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

from toolkit.contract.errors import ErrorCode, RequestError, ServiceError, ToolkitError
from toolkit.engine.concurrency.cancellation import finish_before_cancel
from toolkit.engine.context import EngineContext
from toolkit.engine.execution.readiness import Readiness
from toolkit.engine.execution.shutdown import ShutdownInterrupt
from toolkit.engine.money.abandoned_holds import release_abandoned_holds
from toolkit.store import Heartbeat, Lease, LeaseLost, Row, StoreUnavailableError

log = logging.getLogger(__name__)

LeaseHandler = Callable[[Lease], Awaitable[object]]
CLAIM_BATCH_SIZE = 64
# The interval at which each engine polls, because notices may get lost and SQLite has none.
KEEPER_INTERVAL_S = 1.0
MAX_RELEASE_WAIT_S = 1.0
MIN_NOTICES_S = 0.05  # between two checks for work that other engines have released
MAX_CANCEL_WAIT_S = 10.0  # until the end of cancelled work is recorded
MAX_RETRY_WAIT_S = 60.0


class LeaseManager:
    """The manager of leases: runs each work item's handler, renews, and claims abandoned work."""

    def __init__(self, core: EngineContext) -> None:
        self._core = core
        self._readiness = Readiness(core)
        # The abandoned work that may be taken up here; None is everything.
        self._scope: set[str] | None = set()
        self._handlers: dict[str, LeaseHandler] = {}
        self._running: dict[str, asyncio.Task[None]] = {}
        self._keeper: asyncio.Task[None] | None = None
        self._interval_s = min(KEEPER_INTERVAL_S, core.settings.lease_s / 5)
        # On a thread, because a blocked event loop would let leases expire as if the process died.
        self._heartbeat = Heartbeat(core.store.leases.renew, self._has_leases, self._interval_s)
        # Set when others have released work, or request a cancel.
        self._noticed = asyncio.Event()
        self._noticed_at = 0.0
        # Leases that could not be released: until they are, nobody can claim their work items.
        self._unreleased: set[Lease] = set()
        # Failures of a handler in a row, and the time of the next try by the monotonic clock.
        self._failures: dict[str, tuple[int, float]] = {}

    def register_handler(self, kind: str, handler: LeaseHandler) -> None:
        """Register the handler of a kind of work items, such as `run` or `map`."""
        self._handlers[kind] = handler

    @property
    def running_count(self) -> int:
        """The number of work items that this process is working on."""
        return len(self._running)

    async def open(self, *, take_up: bool) -> None:
        """Start the background tasks that renew leases, notice cancels and claim released work.

        Args:
            take_up: also take up abandoned work, now and later.
        """
        self._scope = None if take_up else set()
        self._core.store.leases.begin_grace()
        self._core.store.leases.watch_work(self._noticed.set)
        await self._claim_ready()
        self._heartbeat.start()
        self._keeper = asyncio.create_task(self._run_keeper(), name="lease keeper")

    def start(self, lease: Lease) -> None:
        """Start the handler of a work item whose lease this process holds.

        Does nothing if the item runs here already, or the engine is shutting down.
        """
        if lease.root_id not in self._running and not self._core.is_draining:
            task = asyncio.create_task(self._run_handler(lease), name=lease.root_id)
            self._running[lease.root_id] = task

    def _has_leases(self) -> bool:
        """Check whether there are leases to renew; if not, note in the store that none is held.

        Runs on the heartbeat thread.
        """
        if not self._running:
            self._core.store.leases.note_idle()
        return bool(self._running)

    async def reacquire(self, root_id: str, key_id: str | None = None) -> Lease:
        """Lease a work item that has ended, waiting briefly for its last process to release it.

        Args:
            root_id: the id of the work item.
            key_id: the API key of the request for more work, which is charged for it.

        Raises:
            RequestError: `CONFLICT` if another process is working on it.
        """
        deadline = time.monotonic() + MAX_RELEASE_WAIT_S
        while (lease := await self._core.store.leases.reacquire(root_id, key_id)) is None:
            if time.monotonic() > deadline:
                raise RequestError(
                    ErrorCode.CONFLICT, f"`{root_id}` is still in progress: try again later."
                )
            await asyncio.sleep(0.02)
        return lease

    async def release(self, lease: Lease) -> None:
        """Release a lease whose work was not begun; if the store is unavailable, do so later."""
        await self._release_or_defer(lease, is_done=True)

    async def take_up(self, root_id: str) -> None:
        """Resume one work item as soon as possible, if it was abandoned."""
        if self._scope is not None:
            self._scope.add(root_id)
            await self._claim_ready()

    async def cancel(self, root_id: str) -> None:
        """Have a work item cancelled, here or by the process that has its lease.

        Waits for the end only if the item runs here.

        Raises:
            ServiceError: `UNAVAILABLE` if the end was not recorded within `MAX_CANCEL_WAIT_S`.
        """
        if root_id not in self._running:
            lease = await self._core.store.leases.claim_root(root_id)
            if lease is not None:
                self.start(lease)
        task = self._running.get(root_id)
        if task is not None:
            await asyncio.sleep(0)  # cancelled before its first step, it could not record that
            if not task.cancelling():  # a second cancel would interrupt the recording of its end
                task.cancel()
            await asyncio.wait([task], timeout=MAX_CANCEL_WAIT_S)
            if not task.done():
                raise ServiceError(
                    ErrorCode.UNAVAILABLE,
                    f"`{root_id}` is being cancelled, but that is not recorded yet: try again.",
                    retry_after=MAX_CANCEL_WAIT_S,
                )
        else:
            await self._core.store.leases.request_cancel(root_id)

    async def wait(self, root_id: str) -> None:
        """Wait until this process no longer works on a work item; return at once if it does not."""
        task = self._running.get(root_id)
        if task is not None:
            await asyncio.wait([task])

    async def close(self, grace_s: float) -> None:
        """Let running work go on for `grace_s` seconds, then leave the rest to be resumed."""
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.wait([self._keeper])
        running = list(self._running.values())
        if running and grace_s > 0:
            await asyncio.wait(running, timeout=grace_s)
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)
        self._heartbeat.close()

    async def _run_handler(self, lease: Lease) -> None:
        # Work that fails here may fail elsewhere, too: others find it by polling, without a notice.
        is_done = is_told = False
        try:
            if lease.fence > 1:
                await finish_before_cancel(release_abandoned_holds(self._core.store, lease))
            await self._handlers[lease.kind](lease)
            is_done = True
        except asyncio.CancelledError:
            # Shutting down leaves it resumable; the handler has recorded a cancel.
            is_done = not self._core.is_draining
            is_told = True
        except ShutdownInterrupt:
            is_told = True
            log.info("%s will be resumed later", lease.root_id)
        except LeaseLost:
            log.warning("%s was taken over by another process", lease.root_id)
        except StoreUnavailableError as error:
            is_told = True
            self._core.store.writer.forfeit(lease, error)
            log.warning("%s stopped and will be resumed later: %s", lease.root_id, error)
        except Exception:
            wait_s = self._back_off(lease.root_id)
            log.exception("%s stopped and will be resumed in %.0f s", lease.root_id, wait_s)
        finally:
            self._running.pop(lease.root_id, None)
            if is_done:
                self._failures.pop(lease.root_id, None)
            # A cancel that came too late would keep it from being released.
            releasing = asyncio.ensure_future(
                self._release_or_defer(lease, is_done, is_told=is_told)
            )
            with suppress(asyncio.CancelledError):
                await asyncio.shield(releasing)
            await releasing

    def _back_off(self, root_id: str) -> float:
        """Wait twice as long after each failure in a row (exponential backoff); return the wait."""
        count = self._failures.get(root_id, (0, 0.0))[0] + 1
        wait_s = min(MAX_RETRY_WAIT_S, self._interval_s * 2.0**count)
        self._failures[root_id] = count, time.monotonic() + wait_s
        return wait_s

    async def _release_or_defer(
        self, lease: Lease, is_done: bool, *, is_told: bool = False
    ) -> None:
        try:
            await self._core.store.leases.release(lease, is_done=is_done, is_announced=is_told)
        except ToolkitError as error:
            log.warning("the lease of %s will be released later: %s", lease.root_id, error)
            self._unreleased.add(lease)
            return
        except LeaseLost:
            log.warning("another process already has the lease of %s", lease.root_id)
        self._unreleased.discard(lease)

    async def _run_keeper(self) -> None:
        while True:
            await self._wait_for_notice()
            try:
                for lease in list(self._unreleased):
                    # It is not known whether its last writes were stored: it is taken up again.
                    await self._release_or_defer(lease, is_done=False, is_told=True)
                if self._running:
                    for root_id in await self._core.store.leases.list_cancel_requests():
                        task = self._running.get(root_id)
                        if task is not None and not task.cancelling():
                            task.cancel()
                await self._claim_ready()
            except ToolkitError as error:
                log.warning("the store did not answer the lease keeper: %s", error)
            except Exception:
                log.exception("the lease keeper failed once and continues")

    async def _wait_for_notice(self) -> None:
        """Wait for a notice of released work or of a cancel, at most for the polling interval.

        Notices that arrive together count once. Work that two failing engines release again and
        again keeps neither of them busy.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(self._interval_s):
                await self._noticed.wait()
                await asyncio.sleep(max(0.0, self._noticed_at + MIN_NOTICES_S - time.monotonic()))
        self._noticed_at = time.monotonic()
        self._noticed.clear()

    async def _claim_ready(self) -> None:
        if self._scope is not None and not self._scope:
            return
        for lease in await self._core.store.leases.claim(CLAIM_BATCH_SIZE, self._is_ready):
            await self._readiness.record_status(lease, waiting=False)
            self.start(lease)
        if not self._readiness.has_unnoted:
            return
        # The record of waiting work states the reason; it is written once.
        for lease in await self._core.store.leases.claim(
            CLAIM_BATCH_SIZE, self._readiness.needs_notice
        ):
            await self._readiness.record_status(lease, waiting=True)
            await self._release_or_defer(lease, is_done=False)

    async def _is_ready(self, work_item: Row) -> bool:
        in_scope = self._scope is None or work_item["id"] in self._scope
        if time.monotonic() < self._failures.get(work_item["id"], (0, 0.0))[1]:
            return False
        # A later version may have work of kinds that this version does not know.
        return (
            in_scope
            and work_item["kind"] in self._handlers
            and await self._readiness.is_ready(work_item)
        )
