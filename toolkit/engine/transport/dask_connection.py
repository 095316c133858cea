"""The connection to a Dask cluster: opened at its first use, and reopened if it is lost."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from toolkit.contract.errors import ErrorCode
from toolkit.contract.version import read_installed_version
from toolkit.engine.concurrency.threads import start_thread
from toolkit.plugins import ProviderError
from toolkit.workers.dask_gateway import (
    ClusterFailureError,
    DaskGateway,
    UntrustedSchedulerError,
)

CONNECT_TIMEOUT_S = 5.0
ANSWER_TIMEOUT_S = 30.0  # for the process itself, in addition to the scheduler's time
CLOSE_TIMEOUT_S = 2.0
RETRY_INTERVAL_S = 0.2
# Teaches each worker of the cluster how steps are cancelled.
_CANCEL_PLUGIN: Final = ["toolkit.workers.dask_plugin", "StepCancelPlugin", {}]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ClusterWorker:
    """A worker of the cluster: its threads, and the resources that it offers."""

    threads: int
    resources: Mapping[str, float]

    def offers(self, resources: Mapping[str, float]) -> bool:
        """Check whether it has the given amount of each resource, in use or not."""
        return all(self.resources.get(name, 0) >= much for name, much in resources.items())


async def close_gateway(gateway: DaskGateway) -> None:
    """Leave the cluster if its scheduler answers, and end the process that talks to it."""
    try:
        await start_thread(partial(gateway.close, CLOSE_TIMEOUT_S))
    finally:
        gateway.kill()


class DaskConnection:
    """A connection that all steps of an engine share.

    Args:
        address: address of the scheduler, as Dask writes it.
        certificates: arguments of Dask's `Security`, as `make_security` returns them.
        wait_s: seconds to wait for a scheduler that does not answer.
    """

    def __init__(self, address: str, certificates: Mapping[str, str], wait_s: float) -> None:
        self.address = address
        self._certificates = dict(certificates)
        self._wait_s = wait_s
        self._client: DaskGateway | None = None
        self._is_away = False
        self._connecting, self._looking = asyncio.Lock(), asyncio.Lock()
        self._workers: Sequence[ClusterWorker] = ()
        self._looked_at: float | None = None
        self._chores: set[asyncio.Task[None]] = set()

    async def get_client(self) -> DaskGateway:
        """Return a client of the scheduler, waiting for a scheduler that does not answer.

        Raises:
            ProviderError: `UNAVAILABLE` if it does not answer within `wait_s`, or is not trusted.
        """
        async with self._connecting:
            if self._client is not None and self._client.has_ended:
                self.drop(self._client)
            if self._client is None:
                self._client = await self._connect()
                self._looked_at = None
            if self._is_away:
                self._is_away = False
                log.info("The Dask scheduler at %s answers again.", self.address)
            return self._client

    async def _connect(self) -> DaskGateway:
        """Open a client; retry until the scheduler has not answered for `wait_s` seconds.

        Raises:
            ProviderError: `UNAVAILABLE`.
        """
        client = DaskGateway()
        give_up: float | None = None
        try:
            while True:
                try:
                    await client.ask("start", ANSWER_TIMEOUT_S)  # not counted: it imports Dask
                    give_up = give_up or time.monotonic() + self._wait_s
                    await self._open(client, give_up)
                except OSError:
                    self._log_away()
                    if give_up is None or time.monotonic() >= give_up:
                        raise ProviderError(
                            ErrorCode.UNAVAILABLE,
                            f"The Dask scheduler at {self.address} does not answer: start it, or"
                            " correct `dispatch`.",
                            retryable=True,
                        ) from None
                    if client.has_ended:
                        client = DaskGateway()
                    await asyncio.sleep(RETRY_INTERVAL_S)
                else:
                    return client
        except BaseException:
            client.kill()
            self.start_chore(close_gateway(client))
            raise

    async def _open(self, client: DaskGateway, give_up: float) -> None:
        timeout_s = min(CONNECT_TIMEOUT_S, max(give_up - time.monotonic(), RETRY_INTERVAL_S))
        try:
            await client.ask(
                "open",
                timeout_s + ANSWER_TIMEOUT_S,
                address=self.address,
                certificates=self._certificates,
                connect_s=timeout_s,
                plugins=[_CANCEL_PLUGIN],
            )
        except UntrustedSchedulerError:
            raise ProviderError(
                ErrorCode.UNAVAILABLE,
                f"The Dask scheduler at {self.address} has no certificate that `dispatch_tls`"
                " trusts: correct `dispatch_tls`, or the scheduler's certificate.",
                retryable=False,
            ) from None
        except ClusterFailureError as error:
            raise self.make_failure(str(error)) from None

    def make_failure(self, reason: str) -> ProviderError:
        """Make the error of a cluster whose processes cannot run steps of this toolkit."""
        return ProviderError(
            ErrorCode.UNAVAILABLE,
            f"The Dask cluster at {self.address} cannot run steps of this toolkit ({reason}):"
            f" install capability-toolkit[dask] {read_installed_version()} on its scheduler and"
            " workers.",
            retryable=False,
        )

    async def list_workers(self, max_age_s: float) -> Sequence[ClusterWorker]:
        """List the workers of the cluster, as of `max_age_s` seconds ago at most.

        Raises:
            ProviderError: as `get_client`, or if the scheduler's answer makes no sense.
        """
        async with self._looking:
            while self._is_older(max_age_s):
                client = await self.get_client()
                try:
                    workers = await client.ask("list_workers", ANSWER_TIMEOUT_S)
                    self._workers = [
                        ClusterWorker(int(worker["threads"]), dict(worker["resources"]))
                        for worker in workers
                    ]
                except OSError:
                    self.drop(client)
                    await asyncio.sleep(RETRY_INTERVAL_S)
                    continue
                except (ClusterFailureError, TypeError, ValueError, KeyError) as error:
                    raise ProviderError(
                        ErrorCode.UNAVAILABLE,
                        f"The Dask scheduler at {self.address} returned an invalid list of"
                        f" workers ({error}): start a scheduler of the version installed here.",
                        retryable=False,
                    ) from None
                self._looked_at = time.monotonic()
        return self._workers

    def _is_older(self, max_age_s: float) -> bool:
        last_look = self._looked_at
        return last_look is None or time.monotonic() - last_look > max_age_s

    def drop(self, client: DaskGateway) -> None:
        """Close a client that has lost its scheduler; the next use opens another."""
        if self._client is client:
            self._client = None
            self._log_away()
            self.start_chore(close_gateway(client))

    def _log_away(self) -> None:
        """Log once, for all the steps that wait, that the scheduler does not answer."""
        if not self._is_away:
            self._is_away = True
            log.warning(
                "The Dask scheduler at %s does not answer: steps wait for it, up to %g s.",
                self.address,
                self._wait_s,
            )

    def start_chore(self, work: Awaitable[None]) -> None:
        """Start work that no caller waits for."""
        task: asyncio.Task[None] = asyncio.ensure_future(work)
        self._chores.add(task)
        task.add_done_callback(self._chores.discard)

    async def aclose(self) -> None:
        """Leave the cluster: its scheduler forgets the steps that only this client wanted."""
        client, self._client = self._client, None
        if client is not None:
            await close_gateway(client)
        if self._chores:
            await asyncio.wait(self._chores, timeout=CLOSE_TIMEOUT_S)
