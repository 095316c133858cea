"""CPU work on a Dask cluster: steps that are lost with a worker or a scheduler are run again."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from io import BytesIO
from typing import Any
from uuid import uuid4

from toolkit.contract.errors import ErrorCode
from toolkit.contract.version import read_installed_version
from toolkit.engine.concurrency.fair_semaphore import FairSemaphore
from toolkit.engine.transport.cpu_executor import (
    NO_RESOURCES,
    OnQueued,
    OnWait,
    ignore,
    is_answer,
    make_timeout,
    make_worker_loss,
    read_result,
)
from toolkit.engine.transport.dask_connection import CLOSE_TIMEOUT_S, DaskConnection
from toolkit.engine.transport.worker_pool import WorkerPool
from toolkit.plugins import ProviderError, RunInProcess
from toolkit.workers.dask_gateway import (
    ClusterFailureError,
    DaskGateway,
    GatewayEndedError,
    WorkerKilledError,
)
from toolkit.workers.remote_step import run_step
from toolkit.workers.serialization import encode_message, get_function_name, read_message

LOOK_INTERVAL_S = 5.0  # between two checks of the cluster's workers
MISSING_INTERVAL_S = 0.5  # the same, while a step waits for a worker
# One step runs and one is ready to follow; the others wait here, so that accounts take turns.
STEPS_PER_THREAD = 2
MAX_GATEWAY_DEATHS = 3  # of the process that holds Dask's client, under one step
MEMORY_RESOURCE = "memory"
WAITING_WORKER = "waiting_worker"

log = logging.getLogger(__name__)


class _NoWorkerError(Exception):
    """Raised if all workers with a step's resources are gone before it has an answer."""


class DaskExecutor:
    """An executor that has steps run by the workers of a Dask cluster.

    It connects at its first step. The arguments of a step travel as a message of plain values.
    Steps that must run on this machine go to its worker processes.

    Args:
        connection: the connection to the cluster.
        local: the worker processes of this machine.
        timeout_s: the maximum duration of a step in seconds, once it has begun.
        memory_bytes: maximum bytes that the process of a step may allocate; None for no limit.
        worker_wait_s: maximum seconds for which a step waits for a worker with its resources.
    """

    def __init__(
        self,
        connection: DaskConnection,
        local: WorkerPool,
        timeout_s: float,
        memory_bytes: int | None,
        worker_wait_s: float,
    ) -> None:
        self._connection = connection
        self._local = local
        self._timeout_s = timeout_s
        self._memory_bytes = memory_bytes or 0
        self._worker_wait_s = worker_wait_s
        self._closed = False
        self._semaphore = FairSemaphore(STEPS_PER_THREAD)
        self._missing: set[str] = set()

    def prepare(self, functions: Sequence[Callable[..., object]]) -> None:
        """Do nothing: the scheduler decides which worker gets the step."""
        del functions

    async def dispatch(
        self,
        step: RunInProcess,
        account_id: str,
        resources: Mapping[str, float] = NO_RESOURCES,
        on_wait: OnWait = ignore,
        on_queued: OnQueued = ignore,
    ) -> object:
        """Run a step on a worker of the cluster; accounts that wait are served in turn."""
        if step.here:
            return await self._local.dispatch(step, account_id, resources, on_queued=on_queued)
        call = self._make_call(step, resources)
        encode_message(call)  # values that cannot travel are refused before there is a cluster
        while True:
            began = time.monotonic()
            try:
                # Before it takes a place, because steps that have a worker need the places.
                await self._wait_for_worker(resources, on_wait)
                await self._semaphore.acquire(account_id)
            finally:
                on_queued(time.monotonic() - began)
            try:
                answer = await self._run_until_answered(step, call, resources)
            except _NoWorkerError:
                continue
            finally:
                self._semaphore.release(account_id)
            return self._read_answer(answer, step)

    async def _wait_for_worker(self, resources: Mapping[str, float], on_wait: OnWait) -> None:
        """Wait until the cluster has a worker with these resources, however busy it is.

        Raises:
            ProviderError: `UNAVAILABLE` if there is none within `worker_wait_s`.
        """
        need = _describe_need(resources)
        if await self._has_worker(resources, LOOK_INTERVAL_S):
            self._missing.discard(need)
            return
        give_up = time.monotonic() + self._worker_wait_s
        try:
            while not await self._has_worker(resources, MISSING_INTERVAL_S):
                if need not in self._missing:
                    self._missing.add(need)
                    wait_s = self._worker_wait_s
                    log.warning(
                        "%s: steps wait for such a worker, up to %g s.", self._explain(need), wait_s
                    )
                on_wait(WAITING_WORKER)
                if time.monotonic() >= give_up:
                    raise ProviderError(
                        ErrorCode.UNAVAILABLE,
                        f"{self._explain(need)}, after {self._worker_wait_s:g} s"
                        " (`worker_wait_s`): start such a worker.",
                        retryable=False,
                    )
                await asyncio.sleep(MISSING_INTERVAL_S)
            self._missing.discard(need)
        finally:
            on_wait(None)

    async def _has_worker(self, resources: Mapping[str, float], max_age_s: float) -> bool:
        workers = await self._connection.list_workers(max_age_s)
        limit = STEPS_PER_THREAD * sum(worker.threads for worker in workers)
        if limit > self._semaphore.limit:
            self._semaphore.set_limit(limit)
        return any(worker.offers(resources) for worker in workers)

    def _explain(self, need: str) -> str:
        return f"No worker of the Dask cluster at {self._connection.address} {need}"

    def _make_call(self, step: RunInProcess, resources: Mapping[str, float]) -> dict[str, object]:
        module, name = step.name
        memory = int(resources.get(MEMORY_RESOURCE, 0))
        return {
            "version": read_installed_version(),
            "module": module,
            "name": name,
            "args": list(step.args),
            "timeout_s": min(step.timeout_s or self._timeout_s, self._timeout_s),
            "memory_bytes": max(memory, self._memory_bytes) if self._memory_bytes else 0,
        }

    async def _run_until_answered(
        self, step: RunInProcess, call: dict[str, object], resources: Mapping[str, float]
    ) -> Any:
        """Submit a step until it is answered; resubmit it each time the scheduler is lost.

        Raises:
            ProviderError: the engine was closed, or the process that talks to Dask died too often.
        """
        deaths = 0
        while True:
            client = await self._connection.get_client()
            try:
                return await self._run_once(client, step, call, resources)
            except OSError as error:  # the scheduler is lost, and the step with it
                self._connection.drop(client)
                deaths += isinstance(error, GatewayEndedError)
            if self._closed:
                raise make_worker_loss(step.name[1], "the engine was closed")
            if deaths >= MAX_GATEWAY_DEATHS:  # its answer may be the reason
                reason = f"the process that talks to Dask ended {deaths} times"
                raise make_worker_loss(step.name[1], reason)

    async def _run_once(
        self,
        client: DaskGateway,
        step: RunInProcess,
        call: dict[str, object],
        resources: Mapping[str, float],
    ) -> Any:
        key = f"toolkit-step-{uuid4().hex}"
        message = b"".join(encode_message({**call, "step": key}))
        try:
            answer = await self._await_answer(client, key, message, resources)
        except WorkerKilledError:
            reason = "every worker that ran the step was lost"
            raise make_worker_loss(step.name[1], reason) from None
        except (asyncio.CancelledError, _NoWorkerError):
            self._connection.start_chore(_cancel_call(client, key))
            raise
        except ClusterFailureError as error:  # Dask's own: its processes cannot load the function
            raise self._connection.make_failure(str(error)) from None
        try:
            received = read_message(BytesIO(answer))
        except Exception:  # the bytes may be anything
            received = None
        if not is_answer(received):
            raise self._connection.make_failure("a worker's answer is malformed")
        return received

    async def _await_answer(
        self, client: DaskGateway, key: str, message: bytes, resources: Mapping[str, float]
    ) -> bytes:
        """Return a worker's answer, as long as there is a worker that may give it.

        Raises:
            _NoWorkerError: no worker with the resources is left.
        """
        module, name = get_function_name(run_step)
        asking = client.ask(
            "run", key=key, module=module, name=name, args=[message], resources=dict(resources)
        )
        task: asyncio.Task[bytes] = asyncio.ensure_future(asking)
        try:
            while not (await asyncio.wait([task], timeout=LOOK_INTERVAL_S))[0]:
                if not await self._has_worker(resources, LOOK_INTERVAL_S):
                    raise _NoWorkerError
            return task.result()
        finally:
            task.cancel()

    def _read_answer(self, answer: Any, step: RunInProcess) -> object:
        """Return the value of a worker's answer, or raise its error."""
        error = answer.get("error") or {}
        match error.get("kind"):
            case "version":
                raise ProviderError(ErrorCode.UNAVAILABLE, error["message"], retryable=False)
            case "timeout":
                raise make_timeout(step.name[1], self._timeout_s)
            case "ended":
                raise make_worker_loss(step.name[1], error["message"])
        return read_result(answer, step)

    async def aclose(self) -> None:
        """Cancel all running steps, and leave the cluster."""
        self._closed = True
        await self._connection.aclose()
        await self._local.aclose()


async def _cancel_call(client: DaskGateway, key: str) -> None:
    """Cancel a call, if the scheduler is there; without it, the call is lost anyway."""
    with suppress(Exception):
        await client.ask("cancel", CLOSE_TIMEOUT_S, key=key)


def _describe_need(resources: Mapping[str, float]) -> str:
    """Describe the needs of a step, as the end of a sentence about a worker.

    >>> _describe_need({"GPU": 1, "memory": 16e9}), _describe_need({})
    ('offers GPU=1 memory=1.6e+10', 'is available')
    """
    needs = " ".join(f"{name}={much:g}" for name, much in resources.items())
    return f"offers {needs}" if needs else "is available"
