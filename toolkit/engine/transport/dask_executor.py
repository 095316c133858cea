"""CPU work on a Dask cluster: steps that are lost with a worker or a scheduler are run again."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from io import BytesIO
from typing import Any
from uuid import uuid4

from distributed import Client
from distributed.client import FutureCancelledError
from distributed.scheduler import KilledWorker

from toolkit.contract.errors import ErrorCode
from toolkit.contract.version import read_installed_version
from toolkit.engine.concurrency.fair_semaphore import FairSemaphore
from toolkit.engine.transport.cpu_executor import (
    NO_RESOURCES,
    make_timeout,
    make_worker_loss,
    read_result,
)
from toolkit.engine.transport.worker_pool import WorkerPool
from toolkit.plugins import ProviderError, RunInProcess
from toolkit.workers.dask_plugin import StepCancelPlugin
from toolkit.workers.remote_step import run_step
from toolkit.workers.serialization import encode_message, read_message

CONNECT_TIMEOUT_S = 5.0
CLOSE_TIMEOUT_S = 2.0
RECONNECT_S = 60.0  # how long a scheduler may be away before steps fail
RETRY_INTERVAL_S = 0.2
COUNT_INTERVAL_S = 5.0  # between two looks at how many threads the cluster has
# One runs and one is there when it has ended; the others wait here, where accounts take turns.
STEPS_PER_THREAD = 2
MEMORY_RESOURCE = "memory"
RUNNING_STATUS = "running"  # of Dask's client


class DaskExecutor:
    """An executor that has steps run by the workers of a Dask cluster.

    It connects at its first step. What a step is given travels as a message of plain values; what
    has to be on this machine goes to its worker processes.

    Args:
        address: of the scheduler, as Dask writes it.
        local: the worker processes of this machine.
        timeout_s: the longest that one step may take, in seconds, once it has begun.
        memory_bytes: the most that the process of a step may allocate; none for no limit.
        reconnect_s: how long a scheduler that is away is waited for.
    """

    def __init__(
        self,
        address: str,
        local: WorkerPool,
        timeout_s: float,
        memory_bytes: int | None,
        reconnect_s: float = RECONNECT_S,
    ) -> None:
        self._address = address
        self._local = local
        self._timeout_s = timeout_s
        self._memory_bytes = memory_bytes or 0
        self._reconnect_s = reconnect_s
        self._client: Client | None = None
        self._closed = False
        self._connecting = asyncio.Lock()
        self._semaphore = FairSemaphore(STEPS_PER_THREAD)
        self._places = STEPS_PER_THREAD
        self._counted_at = 0.0
        self._chores: set[asyncio.Task[None]] = set()

    def prepare(self, functions: Sequence[Callable[..., object]]) -> None:
        """Do nothing: which worker will have the step is the scheduler's to say."""
        del functions

    async def dispatch(
        self,
        step: RunInProcess,
        account_id: str,
        resources: Mapping[str, float] = NO_RESOURCES,
    ) -> object:
        """Run a step on a worker of the cluster; accounts that wait are served in turn."""
        if step.here:
            return await self._local.dispatch(step, account_id, resources)
        call = self._make_call(step, resources)
        encode_message(call)  # what cannot travel is refused before there is a cluster
        await self._semaphore.acquire(account_id)
        try:
            answer = await self._run_until_answered(step, call, resources)
        finally:
            self._semaphore.release()
        return self._read_answer(answer, step)

    def _make_call(self, step: RunInProcess, resources: Mapping[str, float]) -> dict[str, object]:
        module, name = step.name
        memory = int(resources.get(MEMORY_RESOURCE, 0))
        return {
            "version": read_installed_version(),
            "module": module,
            "name": name,
            "args": list(step.args),
            "timeout_s": self._timeout_s,
            "memory_bytes": max(memory, self._memory_bytes) if self._memory_bytes else 0,
        }

    async def _run_until_answered(
        self, step: RunInProcess, call: dict[str, object], resources: Mapping[str, float]
    ) -> Any:
        """Submit a step until it is answered: each time that the scheduler is lost, once more."""
        give_up = time.monotonic() + self._reconnect_s
        while True:
            client = await self._connect(give_up)
            try:
                return await self._run_once(client, step, call, resources)
            except (FutureCancelledError, OSError):  # the scheduler is lost, and the step with it
                self._drop(client)
            if self._closed:
                raise make_worker_loss(step.name[1], "the engine was closed")
            give_up = time.monotonic() + self._reconnect_s

    async def _run_once(
        self,
        client: Client,
        step: RunInProcess,
        call: dict[str, object],
        resources: Mapping[str, float],
    ) -> Any:
        step_id = f"toolkit-step-{uuid4().hex}"
        message = b"".join(encode_message({**call, "step": step_id}))
        future = client.submit(
            run_step, message, key=step_id, resources=dict(resources) or None, pure=False
        )
        try:
            return read_message(BytesIO(await future))
        except KilledWorker:
            reason = "each worker of the cluster that ran it was lost"
            raise make_worker_loss(step.name[1], reason) from None
        except asyncio.CancelledError:
            self._start_chore(_cancel_quietly(client, future))
            raise
        except (FutureCancelledError, OSError):
            raise
        except Exception as error:
            if client.status != RUNNING_STATUS:
                raise OSError(str(error)) from None
            # Dask's own: its processes cannot load the function.
            raise ProviderError(
                ErrorCode.UNAVAILABLE,
                f"The Dask cluster at {self._address} cannot run steps of this toolkit"
                f" ({type(error).__name__}): install capability-toolkit[dask]"
                f" {read_installed_version()} on its scheduler and workers.",
                retryable=False,
            ) from None
        finally:
            future.release()

    async def _connect(self, give_up: float) -> Client:
        """Return a client of the scheduler; one that is away is waited for."""
        async with self._connecting:
            if self._client is not None and self._client.status != RUNNING_STATUS:
                self._drop(self._client)
            while self._client is None:
                try:
                    left_s = max(give_up - time.monotonic(), RETRY_INTERVAL_S)
                    self._client = await self._open_client(min(CONNECT_TIMEOUT_S, left_s))
                except OSError:
                    if time.monotonic() >= give_up:
                        raise ProviderError(
                            ErrorCode.UNAVAILABLE,
                            f"The Dask scheduler at {self._address} does not answer: start it, or"
                            " correct `dispatch`.",
                            retryable=True,
                        ) from None
                    await asyncio.sleep(RETRY_INTERVAL_S)
            client = self._client
            if time.monotonic() - self._counted_at > COUNT_INTERVAL_S:
                self._counted_at = time.monotonic()
                with suppress(OSError):
                    self._widen(await client.nthreads())
            return client

    async def _open_client(self, timeout_s: float) -> Client:
        """Open a client, and have each worker learn how steps are cancelled."""
        client = Client(self._address, asynchronous=True, set_as_default=False, timeout=timeout_s)
        try:
            await client
            await client.register_plugin(StepCancelPlugin())
        except BaseException as error:
            await _close_quietly(client)
            if isinstance(error, TimeoutError | OSError):
                raise OSError(str(error)) from None
            raise
        self._counted_at = 0.0
        return client

    def _widen(self, threads: Mapping[str, int]) -> None:
        """Let as many steps go as the cluster has threads for by now."""
        wanted = STEPS_PER_THREAD * sum(threads.values())
        if wanted > self._places:
            self._semaphore.widen(wanted - self._places)
            self._places = wanted

    def _drop(self, client: Client) -> None:
        """Close a client that has lost its scheduler; the next step opens another."""
        if self._client is client:
            self._client = None
            self._start_chore(_close_quietly(client))

    def _start_chore(self, work: Any) -> None:
        """Have something done that nobody waits for."""
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work)
        self._chores.add(task)
        task.add_done_callback(self._chores.discard)

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
        """Cancel all steps under way, and leave the cluster."""
        self._closed = True
        client, self._client = self._client, None
        if client is not None:
            # The scheduler forgets what only this client wanted, so its workers end it.
            await _close_quietly(client)
        if self._chores:
            await asyncio.wait(self._chores, timeout=CLOSE_TIMEOUT_S)
        await self._local.aclose()


async def _cancel_quietly(client: Client, future: Any) -> None:
    with suppress(Exception):  # the scheduler may be away: the step is lost with it
        async with asyncio.timeout(CLOSE_TIMEOUT_S):
            await client.cancel([future], reason="the work was cancelled", force=True)


async def _close_quietly(client: Client) -> None:
    with suppress(Exception):  # the scheduler may be away
        async with asyncio.timeout(CLOSE_TIMEOUT_S):
            await client.close()
