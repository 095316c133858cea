"""The connection to a Dask cluster: opened at its first use, and again where it is lost."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any

from distributed import Client, Security
from distributed.comm.core import FatalCommClosedError

from toolkit.contract.errors import ErrorCode
from toolkit.engine.transport.dask_client import quiet_losses
from toolkit.plugins import ProviderError
from toolkit.workers.dask_plugin import StepCancelPlugin

CONNECT_TIMEOUT_S = 5.0
CLOSE_TIMEOUT_S = 2.0
RETRY_INTERVAL_S = 0.2
RUNNING_STATUS, CLOSED_STATUS = "running", "closed"  # of Dask's client

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ClusterWorker:
    """A worker of the cluster: its threads, and the resources that it offers."""

    threads: int
    resources: Mapping[str, float]

    def offers(self, resources: Mapping[str, float]) -> bool:
        """Tell whether it has that much of all of these, in use or not."""
        return all(self.resources.get(name, 0) >= much for name, much in resources.items())


class DaskConnection:
    """A connection that all steps of an engine share.

    Args:
        address: of the scheduler, as Dask writes it.
        security: its certificates.
        wait_s: how long a scheduler that is away is waited for, in seconds.
    """

    def __init__(self, address: str, security: Security, wait_s: float) -> None:
        self.address = address
        self._security = security
        self._wait_s = wait_s
        self._client: Client | None = None
        self._is_away = False
        self._connecting, self._looking = asyncio.Lock(), asyncio.Lock()
        self._workers: Sequence[ClusterWorker] = ()
        self._looked_at: float | None = None
        self._chores: set[asyncio.Task[None]] = set()
        self._quiet = ExitStack()

    async def get_client(self) -> Client:
        """Return a client of the scheduler; one that is away is waited for.

        Raises:
            ProviderError: `UNAVAILABLE` if it does not answer for so long, or is not trusted.
        """
        give_up = time.monotonic() + self._wait_s
        async with self._connecting:
            if self._client is not None and self._client.status != RUNNING_STATUS:
                self.drop(self._client)
            while self._client is None:
                try:
                    left_s = max(give_up - time.monotonic(), RETRY_INTERVAL_S)
                    self._client = await self._open_client(min(CONNECT_TIMEOUT_S, left_s))
                except OSError:
                    self._tell_away()
                    if time.monotonic() >= give_up:
                        raise ProviderError(
                            ErrorCode.UNAVAILABLE,
                            f"The Dask scheduler at {self.address} does not answer: start it, or"
                            " correct `dispatch`.",
                            retryable=True,
                        ) from None
                    await asyncio.sleep(RETRY_INTERVAL_S)
            if self._is_away:
                self._is_away = False
                log.info("The Dask scheduler at %s answers again.", self.address)
            return self._client

    async def list_workers(self, max_age_s: float) -> Sequence[ClusterWorker]:
        """List the workers of the cluster, as it was so many seconds ago at the most.

        Raises:
            ProviderError: as `get_client`.
        """
        async with self._looking:
            while self._is_older(max_age_s):
                client = await self.get_client()
                try:
                    scheduler: Any = client.scheduler
                    told = await scheduler.identity()
                except OSError:
                    self.drop(client)
                    await asyncio.sleep(RETRY_INTERVAL_S)
                    continue
                self._workers = [
                    ClusterWorker(one["nthreads"], one.get("resources") or {})
                    for one in told["workers"].values()
                ]
                self._looked_at = time.monotonic()
        return self._workers

    def _is_older(self, max_age_s: float) -> bool:
        looked_at = self._looked_at
        return looked_at is None or time.monotonic() - looked_at > max_age_s

    async def _open_client(self, timeout_s: float) -> Client:
        """Open a client, and have each worker learn how steps are cancelled."""
        self._quiet.close()
        self._quiet.enter_context(quiet_losses())
        client = Client(
            self.address,
            asynchronous=True,
            set_as_default=False,
            timeout=timeout_s,
            security=self._security,
        )
        try:
            await client
            await client.register_plugin(StepCancelPlugin())
        except BaseException as error:
            await close_quietly(client)
            if isinstance(error, FatalCommClosedError):
                raise ProviderError(
                    ErrorCode.UNAVAILABLE,
                    f"The Dask scheduler at {self.address} has no certificate that `dispatch_tls`"
                    " vouches for: correct it, or the scheduler's.",
                    retryable=False,
                ) from None
            if isinstance(error, TimeoutError | OSError):
                raise OSError(str(error)) from None
            raise
        self._looked_at = None
        return client

    def drop(self, client: Client) -> None:
        """Close a client that has lost its scheduler; whoever needs one next opens another."""
        if self._client is client:
            self._client = None
            self._tell_away()
            self.start_chore(close_quietly(client))

    def _tell_away(self) -> None:
        """Tell once, of all the steps that wait, that the scheduler is away."""
        if not self._is_away:
            self._is_away = True
            log.warning(
                "The Dask scheduler at %s does not answer: steps wait for it, up to %g s.",
                self.address,
                self._wait_s,
            )

    def start_chore(self, work: Awaitable[None]) -> None:
        """Have something done that nobody waits for."""
        task: asyncio.Task[None] = asyncio.ensure_future(work)
        self._chores.add(task)
        task.add_done_callback(self._chores.discard)

    async def aclose(self) -> None:
        """Leave the cluster: its scheduler forgets what only this client wanted."""
        client, self._client = self._client, None
        if client is not None:
            await close_quietly(client)
        if self._chores:
            await asyncio.wait(self._chores, timeout=CLOSE_TIMEOUT_S)
        self._quiet.close()


async def cancel_quietly(client: Client, future: Any) -> None:
    """Cancel what was submitted, if the scheduler is there."""
    with suppress(Exception):  # without it, the step is lost anyway
        async with asyncio.timeout(CLOSE_TIMEOUT_S):
            await client.cancel([future], reason="the work was cancelled", force=True)


async def close_quietly(client: Client) -> None:
    """Close a client, whether its scheduler is there or not."""
    try:
        with suppress(Exception):
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await client.close()
    finally:
        # Else it would try once more as it is deleted, when its loop may be closed.
        client.status = CLOSED_STATUS
