"""Roots: what a caller asked for, and which process works on it.

A run, workflow or task is carried out by the process that holds its lease. New work is leased by
the process that accepted it; work whose process has gone is claimed by another one.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from functools import partial

from toolkit.contract.errors import ErrorCode, RequestError, ServiceError, ToolkitError
from toolkit.engine.core import Core
from toolkit.engine.readiness import Readiness
from toolkit.engine.work import Suspended
from toolkit.store import Heartbeat, Lease, LeaseLost, Row

log = logging.getLogger(__name__)

Handler = Callable[[Lease], Awaitable[None]]
CLAIM_AT_ONCE = 64
LET_GO_S = 1.0
CANCEL_WAIT_S = 10.0  # for the end of what is cancelled to be written down


class Roots:
    """Starts the handler of each leased root, renews the leases and claims what is left lying."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._readiness = Readiness(core)
        # What was left lying and may be taken up here; none is everything.
        self._scope: set[str] | None = set()
        self._handlers: dict[str, Handler] = {}
        self._running: dict[str, asyncio.Task[None]] = {}
        self._keeper: asyncio.Task[None] | None = None
        self._interval_s = min(1.0, core.settings.lease_s / 5)
        # On a thread: to the others, a loop that something holds would look like one that is gone.
        self._heartbeat = Heartbeat(
            core.store.renew_leases, lambda: bool(self._running), self._interval_s
        )
        # Leases that the store did not take back: until it does, nobody can claim their roots.
        self._unreleased: set[Lease] = set()

    def handle(self, kind: str, handler: Handler) -> None:
        """Say who carries out roots of a kind: `run`, `workflow` or `task`."""
        self._handlers[kind] = handler

    @property
    def running(self) -> int:
        """How many roots this process is working on."""
        return len(self._running)

    async def open(self, *, take_up: bool) -> None:
        """Keep the leases of what is worked on here.

        Args:
            take_up: also take up what was left lying, now and later.
        """
        self._scope = None if take_up else set()
        await self._claim()
        self._heartbeat.start()
        self._keeper = asyncio.create_task(self._keep(), name="lease keeper")

    def start(self, lease: Lease) -> None:
        """Work on a root that this process holds."""
        if lease.root_id not in self._running and not self._core.draining:
            task = asyncio.create_task(self._carry_out(lease), name=lease.root_id)
            self._running[lease.root_id] = task

    async def reopened(self, root_id: str, key_id: str | None = None) -> Lease:
        """The lease of a root that has ended; whoever ended it may be about to let go of it.

        Args:
            root_id: which.
            key_id: the key that more work is asked for with, which is charged for it.

        Raises:
            RequestError: `CONFLICT` when it is being worked on.
        """
        until = time.monotonic() + LET_GO_S
        while (lease := await self._core.store.reopen(root_id, key_id)) is None:
            if time.monotonic() > until:
                raise RequestError(ErrorCode.CONFLICT, f"`{root_id}` is being worked on.")
            await asyncio.sleep(0.02)
        return lease

    async def give_back(self, lease: Lease) -> None:
        """Let go of a root that was taken and not begun; later, where the store is out of reach."""
        await self._release(lease, done=True)

    async def take_up(self, root_id: str) -> None:
        """Go on with one root as soon as it can be, if it was left lying."""
        if self._scope is not None:
            self._scope.add(root_id)
            await self._claim()

    async def cancel(self, root_id: str) -> None:
        """Have a root cancelled, here or by the process that holds it."""
        if root_id not in self._running:
            for lease in await self._core.store.claim(1, partial(_is_root, root_id)):
                self.start(lease)
        task = self._running.get(root_id)
        if task is not None:
            await asyncio.sleep(0)  # cancelled before its first step, it could not say so
            if not task.cancelling():  # once more, it would be cut off as it writes down its end
                task.cancel()
            await asyncio.wait([task], timeout=CANCEL_WAIT_S)
            if not task.done():
                raise ServiceError(
                    ErrorCode.UNAVAILABLE,
                    f"`{root_id}` is being cancelled, which cannot be written down yet: ask again.",
                    retry_after=CANCEL_WAIT_S,
                )
        else:
            await self._core.store.request_cancel(root_id)

    async def close(self, grace_s: float) -> None:
        """Let what runs go on for `grace_s` seconds, then leave the rest to be resumed."""
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

    async def _carry_out(self, lease: Lease) -> None:
        done = False
        try:
            await self._handlers[lease.kind](lease)
            done = True
        except asyncio.CancelledError:
            # Shutting down leaves it resumable; a cancel has been written down by the handler.
            done = not self._core.draining
        except Suspended:
            log.info("%s is left to be resumed", lease.root_id)
        except LeaseLost:
            log.warning("%s is now worked on by another process", lease.root_id)
        except Exception:
            log.exception("%s stopped; it is taken up again later", lease.root_id)
        finally:
            self._running.pop(lease.root_id, None)
            await self._release(lease, done)

    async def _release(self, lease: Lease, done: bool) -> None:
        try:
            await self._core.store.release(lease, done=done)
        except ToolkitError as error:
            log.warning("the lease of %s is given back later: %s", lease.root_id, error)
            self._unreleased.add(lease)
            return
        except LeaseLost:
            log.warning("the lease of %s was another process's by then", lease.root_id)
        self._unreleased.discard(lease)

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(self._interval_s)
            try:
                for lease in list(self._unreleased):
                    # What could not be written is not known to be done: it is taken up again.
                    await self._release(lease, done=False)
                if self._running:
                    for root_id in await self._core.store.cancel_requested():
                        if root_id in self._running:
                            self._running[root_id].cancel()
                await self._claim()
            except ToolkitError as error:
                log.warning("the store did not answer the lease keeper: %s", error)

    async def _claim(self) -> None:
        if self._scope is not None and not self._scope:
            return
        for lease in await self._core.store.claim(CLAIM_AT_ONCE, self._is_ready):
            await self._readiness.tell(lease, waiting=False)
            self.start(lease)
        # Who waits for what is left is told why, once.
        for lease in await self._core.store.claim(CLAIM_AT_ONCE, self._readiness.is_news):
            await self._readiness.tell(lease, waiting=True)
            await self._release(lease, done=False)

    async def _is_ready(self, root: Row) -> bool:
        in_scope = self._scope is None or root["id"] in self._scope
        return in_scope and await self._readiness.is_ready(root)


async def _is_root(root_id: str, root: Row) -> bool:
    return bool(root["id"] == root_id)
