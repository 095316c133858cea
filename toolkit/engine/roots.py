"""Roots: what a caller asked for, and which process works on it.

A run, workflow or task is carried out by the process that holds its lease. New work is leased by
the process that accepted it; work whose process has gone is claimed by another one.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

from toolkit.contract.errors import ErrorCode, RequestError, ToolkitError
from toolkit.engine.core import Core
from toolkit.engine.work import Suspended
from toolkit.store import Lease, LeaseLost

log = logging.getLogger(__name__)

Handler = Callable[[Lease], Awaitable[None]]
CLAIM_AT_ONCE = 64
LET_GO_S = 1.0


class Roots:
    """Starts the handler of each leased root, renews the leases and claims what is left lying."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._handlers: dict[str, Handler] = {}
        self._running: dict[str, asyncio.Task[None]] = {}
        self._keeper: asyncio.Task[None] | None = None
        # Leases that the store did not take back: until it does, nobody can claim their roots.
        self._unreleased: set[Lease] = set()

    def handle(self, kind: str, handler: Handler) -> None:
        """Say who carries out roots of a kind: `run`, `workflow` or `task`."""
        self._handlers[kind] = handler

    @property
    def running(self) -> int:
        """How many roots this process is working on."""
        return len(self._running)

    async def open(self) -> None:
        """Take up what was left lying, and keep doing so."""
        await self._claim()
        self._keeper = asyncio.create_task(self._keep(), name="lease keeper")

    def start(self, lease: Lease) -> None:
        """Work on a root that this process holds."""
        if lease.root_id not in self._running and not self._core.draining:
            task = asyncio.create_task(self._carry_out(lease), name=lease.root_id)
            self._running[lease.root_id] = task

    async def reopened(self, root_id: str) -> Lease:
        """The lease of a root that has ended; whoever ended it may be about to let go of it.

        Raises:
            RequestError: `CONFLICT` when it is being worked on.
        """
        until = time.monotonic() + LET_GO_S
        while (lease := await self._core.store.reopen(root_id)) is None:
            if time.monotonic() > until:
                raise RequestError(ErrorCode.CONFLICT, f"`{root_id}` is being worked on.")
            await asyncio.sleep(0.02)
        return lease

    async def give_back(self, lease: Lease) -> None:
        """Let go of a root that was taken and not begun; later, where the store is out of reach."""
        await self._release(lease, done=True)

    async def cancel(self, root_id: str) -> None:
        """Have a root cancelled, here or by the process that holds it."""
        task = self._running.get(root_id)
        if task is not None:
            await asyncio.sleep(0)  # cancelled before its first step, it could not say so
            task.cancel()
            await asyncio.wait([task])
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
            await asyncio.sleep(min(1.0, self._core.settings.lease_s / 5))
            try:
                for lease in list(self._unreleased):
                    # What could not be written is not known to be done: it is taken up again.
                    await self._release(lease, done=False)
                if self._running:
                    await self._core.store.renew()
                    for root_id in await self._core.store.cancel_requested():
                        if root_id in self._running:
                            self._running[root_id].cancel()
                await self._claim()
            except ToolkitError as error:
                log.warning("the store did not answer the lease keeper: %s", error)

    async def _claim(self) -> None:
        for lease in await self._core.store.claim(CLAIM_AT_ONCE):
            self.start(lease)
