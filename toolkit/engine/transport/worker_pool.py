"""The pool of worker processes for CPU work: fair between accounts, each step with a limit."""

import asyncio
import os
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self

from toolkit.engine.concurrency.threads import SerialThread
from toolkit.engine.transport.cpu_executor import (
    NO_RESOURCES,
    OnQueued,
    OnWait,
    ignore_queued,
    ignore_wait,
    make_timeout,
    make_worker_loss,
    read_result,
)
from toolkit.engine.transport.cpu_slots import CpuSlots
from toolkit.plugins import RunInProcess
from toolkit.settings import Settings
from toolkit.workers.function_loading import load_functions
from toolkit.workers.process import WorkerEndedError, WorkerProcess
from toolkit.workers.serialization import NotSerializableError, get_function_name

MIN_WORKERS = 2
# Further workers, each for an account that runs no step: its first step waits for no other account.
RESERVED_WORKERS = 1


@dataclass(frozen=True, slots=True, eq=False)
class PooledWorker:
    """A worker process, and the thread in which this process talks to it."""

    process: WorkerProcess
    thread: SerialThread = field(default_factory=SerialThread)

    def kill(self) -> None:
        """Kill the process, and end the thread once it has seen that; does not wait."""
        self.process.kill()
        self.thread.end()


class WorkerPool:
    """A pool of worker processes, started when there is work for them and kept for more.

    Args:
        size: number of steps that run at once; an account that runs none may run one more.
        timeout_s: the longest that one step may take, in seconds.
        memory_bytes: the most that each may allocate; none for no limit.
    """

    def __init__(self, size: int, timeout_s: float, memory_bytes: int | None) -> None:
        self._timeout_s = timeout_s
        self._memory_bytes = memory_bytes or 0
        self._max_workers = size + RESERVED_WORKERS
        self._slots = CpuSlots(size, RESERVED_WORKERS)
        self._idle: list[PooledWorker] = []
        self._workers: set[PooledWorker] = set()
        self._used: dict[tuple[str, str], None] = {}
        # For a pool that nobody closes: it is garbage collected, or the interpreter exits.
        self._finalizer = weakref.finalize(self, _kill_all, self._workers, os.getpid())

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Make a pool by the operator's settings; it starts nothing yet."""
        size = settings.cpu_workers or max(MIN_WORKERS, count_cores())
        return cls(size, settings.cpu_timeout_s, settings.cpu_memory_bytes)

    @property
    def pids(self) -> list[int]:
        """The ids of the worker processes that there are now."""
        return [one.process.pid for one in self._workers if one.process.pid is not None]

    def prepare(self, functions: Sequence[Callable[..., object]]) -> None:
        """Start the first worker, and have it import the modules of functions.

        That takes some 20 ms, for which a flow would wait that asks a vendor first.
        """
        self._used |= dict.fromkeys(get_function_name(one) for one in functions)
        if functions and not self._workers:
            self._start_idle_worker()

    def _start_idle_worker(self) -> None:
        """Start a worker, and have it import the modules of all functions used so far."""
        worker = self._add_worker()
        self._idle.append(worker)
        loading = partial(_load_functions, worker.process, list(self._used), self._timeout_s)
        # A step that comes meanwhile takes its turn in the worker's thread. What fails here fails
        # there again, where somebody waits for it.
        worker.thread.start(loading).add_done_callback(lambda done: done.exception())

    async def dispatch(
        self,
        step: RunInProcess,
        account_id: str,
        resources: Mapping[str, float] = NO_RESOURCES,  # noqa: ARG002 - this machine has what it has
        on_wait: OnWait = ignore_wait,  # noqa: ARG002 - and waits for nothing else
        on_queued: OnQueued = ignore_queued,
    ) -> object:
        """Run a step in the first free worker; accounts that wait are served in turn."""
        began = time.monotonic()
        has_room = not self._idle and len(self._workers) < self._max_workers
        if has_room and not self._slots.can_start(account_id):
            # The account fills the pool: another account must not wait for a process to import.
            self._start_idle_worker()
        try:
            await self._slots.acquire(account_id)
        finally:  # also of a step that is cancelled while it waits
            on_queued(time.monotonic() - began)
        try:
            worker = self._take_worker()
            self._used[step.name] = None
            try:
                answer = await self._ask_worker(worker, step)
            except NotSerializableError:  # nothing was sent
                self._idle.append(worker)
                raise
            except BaseException:
                self._drop_worker(worker)
                raise
            self._idle.append(worker)
        finally:
            self._slots.release(account_id)
        return read_result(answer, step)

    async def _ask_worker(self, worker: PooledWorker, step: RunInProcess) -> Any:
        module, name = step.name
        talk = partial(worker.process.call_function, module, name, step.args, self._timeout_s)
        try:
            async with asyncio.timeout(self._timeout_s) as deadline:
                return await worker.thread.start(talk)
        except TimeoutError:
            if not deadline.expired():
                raise
            raise make_timeout(name, self._timeout_s) from None
        except WorkerEndedError as error:
            raise make_worker_loss(name, str(error)) from None

    def _take_worker(self) -> PooledWorker:
        """Take the worker that was used last, as its caches are warm; a new one if none is free."""
        while self._idle:
            worker = self._idle.pop()
            if worker.process.is_alive:
                return worker
            self._drop_worker(worker)
        return self._add_worker()

    def _add_worker(self) -> PooledWorker:
        worker = PooledWorker(WorkerProcess(self._memory_bytes))
        self._workers.add(worker)
        return worker

    def _drop_worker(self, worker: PooledWorker) -> None:
        worker.process.kill()
        self._workers.discard(worker)
        worker.thread.start(worker.process.join)
        worker.thread.end()

    async def aclose(self) -> None:
        """End every worker, busy or not, and wait until they are gone."""
        workers, self._idle = list(self._workers), []
        for worker in workers:
            worker.kill()
        for worker in workers:
            worker.process.join()  # here: a thread may not be there, as the interpreter exits
        self._workers.clear()


def _load_functions(
    process: WorkerProcess, names: Sequence[tuple[str, str]], timeout_s: float
) -> None:
    if process.is_alive:  # it may have been ended before its turn came
        module, name = get_function_name(load_functions)
        process.call_function(module, name, [names], timeout_s)


def count_cores() -> int:
    """Count the cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _kill_all(workers: set[PooledWorker], owner: int) -> None:
    if os.getpid() == owner:  # a fork of it has none of its own
        for worker in list(workers):
            worker.kill()
