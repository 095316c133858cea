"""The pool of worker processes for CPU work: fair between accounts, each step with a limit."""

import asyncio
import os
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self

from toolkit.engine.concurrency.fair_semaphore import FairSemaphore
from toolkit.engine.concurrency.threads import SerialThread
from toolkit.engine.transport.cpu_executor import (
    NO_RESOURCES,
    OnQueued,
    OnWait,
    ignore,
    make_timeout,
    make_worker_loss,
    read_result,
)
from toolkit.plugins import RunInProcess
from toolkit.settings import Settings
from toolkit.workers.process import WorkerEndedError, WorkerProcess
from toolkit.workers.serialization import NotSerializableError, get_function_name, load_functions

MIN_WORKERS = 2
# Further workers, each for an account that runs no step: its first step waits for no other account.
RESERVED_WORKERS = 1
# A deadline limits the time that a step uses a core. The whole step, with its waits for a core on a
# busy machine, may take this many times its deadline.
BUSY_MACHINE_FACTOR = 12
MIN_WAIT_S = 0.01  # between two checks of the time that a step has used
# A step that ignores an interruption for this many seconds is killed with its process.
INTERRUPT_GRACE_S = 1.0


class _InterruptedError(Exception):
    """A step must end early, at its deadline or because no caller waits for it any more."""

    def __init__(self, reason: BaseException, answer: "asyncio.Future[Any]") -> None:
        super().__init__(str(reason))
        self.reason = reason
        self.answer = answer


@dataclass(slots=True, eq=False)
class PooledWorker:
    """A worker process, and the thread in which this process talks to it.

    Attributes:
        modules: names of the modules that the process has loaded.
        is_lowered: True if its priority is lower than that of this process.
    """

    process: WorkerProcess
    thread: SerialThread = field(default_factory=SerialThread)
    modules: set[str] = field(default_factory=set)
    is_lowered: bool = False

    def kill(self) -> None:
        """Kill the process, and end the thread once it has seen that; does not wait."""
        self.process.kill()
        self.thread.end()


class WorkerPool:
    """A pool of worker processes, started when there is work for them and kept for more.

    Args:
        size: number of steps that run at once; an account that runs none may run one more.
        timeout_s: maximum duration of a step, in seconds.
        memory_bytes: maximum bytes that each process may allocate; None for no limit.
    """

    def __init__(self, size: int, timeout_s: float, memory_bytes: int | None) -> None:
        self._timeout_s = timeout_s
        self._memory_bytes = memory_bytes or 0
        self._max_workers = size + RESERVED_WORKERS
        self._slots = FairSemaphore(size, reserved=RESERVED_WORKERS)
        self._idle: list[PooledWorker] = []
        self._workers: set[PooledWorker] = set()
        self._used: dict[tuple[str, str], None] = {}
        self._has_short_steps = False
        self._chores: set[asyncio.Task[None]] = set()
        # For a pool that is not closed before it is garbage collected, or the interpreter exits.
        self._finalizer = weakref.finalize(self, _kill_all, self._workers, os.getpid())

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Make a pool by the operator's settings; it starts nothing yet."""
        size = settings.cpu_workers or max(MIN_WORKERS, count_cores())
        return cls(size, settings.cpu_timeout_s, settings.cpu_memory_bytes)

    @property
    def pids(self) -> list[int]:
        """The ids of the current worker processes."""
        return [worker.process.pid for worker in self._workers if worker.process.pid is not None]

    def prepare(self, functions: Sequence[Callable[..., object]]) -> None:
        """Start the first worker, and have it import the modules of functions.

        That takes up to a quarter of a second, for which a first step would wait. If the first
        worker is there and idle, it imports the modules that it lacks.
        """
        names = dict.fromkeys(get_function_name(function) for function in functions)
        self._used |= names
        if functions and not self._workers:
            self._start_idle_worker()
        elif len(self._workers) == len(self._idle) == 1:
            missing = [name for name in names if name[0] not in self._idle[0].modules]
            if missing:
                self._start_loading(self._idle[0], missing)

    def _start_idle_worker(self) -> None:
        """Start a worker, and have it import the modules of all functions used so far."""
        worker = self._add_worker()
        self._idle.append(worker)
        self._start_loading(worker, list(self._used))

    def _start_loading(
        self, worker: PooledWorker, names: Sequence[tuple[str, str]]
    ) -> "asyncio.Future[None]":
        """Have a worker import the modules of functions, and their requirements; does not wait."""
        # A step that comes meanwhile takes its turn in the worker's thread. An import that fails
        # here fails there again, where a caller waits for it.

        def note_modules(future: "asyncio.Future[None]") -> None:
            if not future.cancelled() and future.exception() is None:
                worker.modules.update(module for module, _ in names)

        loading = partial(_load_functions, worker.process, names, self._timeout_s)
        started = worker.thread.start(loading)
        started.add_done_callback(note_modules)
        return started

    async def dispatch(
        self,
        step: RunInProcess,
        account_id: str,
        resources: Mapping[str, float] = NO_RESOURCES,  # noqa: ARG002 - this machine's are fixed
        on_wait: OnWait = ignore,  # noqa: ARG002 - and waits for nothing else
        on_queued: OnQueued = ignore,
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
        is_reclaimed = False
        try:
            worker = self._take_worker(step)
            self._used[step.name] = None
            try:
                answer = await self._ask_worker(worker, step)
            except NotSerializableError:  # nothing was sent
                self._idle.append(worker)
                raise
            except _InterruptedError as error:
                is_reclaimed = True
                reclaiming = self._reclaim(worker, error.answer, account_id)
                if not isinstance(error.reason, asyncio.CancelledError):
                    await asyncio.wait([reclaiming])  # so that the next step finds the worker
                raise error.reason from None
            except BaseException:
                self._drop_worker(worker)
                raise
            self._idle.append(worker)
        finally:
            if not is_reclaimed:
                self._slots.release(account_id)
        return read_result(answer, step)

    async def _ask_worker(self, worker: PooledWorker, step: RunInProcess) -> Any:
        """Have a worker run a step, and return its answer.

        Raises:
            _InterruptedError: a step with a deadline of its own must end early.
            ProviderError: it took too long, or the worker died.
        """
        module, name = step.name
        timeout_s = min(step.timeout_s or self._timeout_s, self._timeout_s)
        has_deadline = step.timeout_s is not None
        longest_s = timeout_s * BUSY_MACHINE_FACTOR if has_deadline else timeout_s
        talk = partial(
            worker.process.call_function, module, name, step.args, longest_s, is_short=has_deadline
        )
        try:
            if has_deadline and module not in worker.modules:
                # A short deadline is for the function, and not for the imports of a new process.
                try:
                    async with asyncio.timeout(self._timeout_s):
                        await self._start_loading(worker, [step.name])
                except TimeoutError:
                    raise make_timeout(load_functions.__name__, self._timeout_s) from None
            answer = worker.thread.start(talk)
            try:
                if has_deadline:
                    return await _await_by_core_time(worker.process, answer, timeout_s)
                async with asyncio.timeout(timeout_s):
                    return await answer
            except (TimeoutError, asyncio.CancelledError) as error:
                is_late = isinstance(error, TimeoutError)
                reason = make_timeout(name, timeout_s) if is_late else error
                if has_deadline and not answer.done():
                    raise _InterruptedError(reason, answer) from None
                raise reason from None
        except WorkerEndedError as error:
            raise make_worker_loss(name, str(error)) from None

    def _reclaim(
        self, worker: PooledWorker, answer: "asyncio.Future[Any]", account_id: str
    ) -> "asyncio.Task[None]":
        """Interrupt a step, and keep its worker, which has loaded much, if the step ends soon."""

        async def finish() -> None:
            try:
                worker.process.interrupt()
                await asyncio.wait([answer], timeout=INTERRUPT_GRACE_S)
                if answer.done() and answer.exception() is None:
                    self._idle.append(worker)
                else:
                    self._drop_worker(worker)
                    if not self._idle:
                        self._start_idle_worker()
            finally:
                self._slots.release(account_id)

        # Retrieve the exception, which is known already.
        answer.add_done_callback(lambda future: future.cancelled() or future.exception())
        task = asyncio.create_task(finish(), name="reclaim worker")
        self._chores.add(task)
        task.add_done_callback(self._chores.discard)
        return task

    def _take_worker(self, step: RunInProcess) -> PooledWorker:
        """Take an idle worker, or start a worker.

        A step with a deadline of its own takes a worker with this process's priority if there is
        one. Any other step takes a worker of lower priority, or lowers its worker's priority for
        good. The worker that was used last has the warmest caches.
        """
        is_short = step.timeout_s is not None
        self._has_short_steps |= is_short
        for worker in [candidate for candidate in self._idle if not candidate.process.is_alive]:
            self._idle.remove(worker)
            self._drop_worker(worker)
        candidates = [
            candidate for candidate in self._idle if candidate.is_lowered is not is_short
        ] or self._idle
        worker = candidates[-1] if candidates else self._add_worker()
        if candidates:
            self._idle.remove(worker)
        if not (is_short or worker.is_lowered):
            worker.is_lowered = True
            has_room = len(self._workers) < self._max_workers
            if (
                self._has_short_steps
                and has_room
                and all(peer.is_lowered for peer in self._workers)
            ):
                self._start_idle_worker()
        return worker

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
        for chore in list(self._chores):
            chore.cancel()
        for worker in workers:
            worker.kill()
        for worker in workers:
            worker.process.join()  # here: a thread may not be there, as the interpreter exits
        self._workers.clear()


async def _await_by_core_time(
    process: WorkerProcess, answer: "asyncio.Future[Any]", timeout_s: float
) -> Any:
    """Wait for the answer to a step, which may use a core for a limited time.

    Raises:
        TimeoutError: it has used that time, or waits too long for a core; it still runs.
    """
    began_s = process.read_core_time_s()
    latest = time.monotonic() + timeout_s * BUSY_MACHINE_FACTOR
    left_s = timeout_s
    while not answer.done():
        if left_s <= 0 or time.monotonic() >= latest:
            raise TimeoutError
        await asyncio.wait([answer], timeout=max(left_s, MIN_WAIT_S))
        left_s = timeout_s - (process.read_core_time_s() - began_s)
    return answer.result()


def _load_functions(
    process: WorkerProcess, names: Sequence[tuple[str, str]], timeout_s: float
) -> None:
    if process.is_alive:  # it may have been ended before its turn came
        module, name = get_function_name(load_functions)
        process.call_function(module, name, [names], timeout_s, is_short=True)


def count_cores() -> int:
    """Count the cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _kill_all(workers: set[PooledWorker], owner: int) -> None:
    if os.getpid() == owner:  # a fork has no workers of its own
        for worker in list(workers):
            worker.kill()
