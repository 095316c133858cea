"""Dispatch of a batch's notebooks to an executor, and again after a worker was lost."""

import json
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    wait,
)
from contextlib import suppress
from typing import Any, Final, Self, cast

import nbformat

from toolkit.batch.notebook_job import ExecutedNotebook, NotebookJob
from toolkit.batch.remote.dask_rows import DaskRowExecutor
from toolkit.batch.remote.engine_access import Access
from toolkit.batch.remote.executors import ExecutorFactory
from toolkit.batch.remote.row import RowAnswer, RowRequest
from toolkit.batch.remote.task import run_row
from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.profiles.resolution import NOTEBOOK_RUN_VARIABLE
from toolkit.workers.dask_gateway import ClusterLostError, WorkerKilledError

MAX_ATTEMPTS: Final = 3
MAX_SUSPECTS_TOGETHER: Final = 16
MAX_ROWS_UNDER_WAY = 1_000
POLL_INTERVAL_S = 0.2
LOST_EXECUTOR = (BrokenExecutor, CancelledError, ClusterLostError)
OnDone = Callable[[NotebookJob, ExecutedNotebook | str], None]
MakeRequest = Callable[[NotebookJob, dict[str, str]], RowRequest]


class RowQueue:
    """The notebooks that are still to be run.

    A lost worker does not show which notebook broke it: a pool that breaks loses all its notebooks.
    The notebooks that had begun are suspects. They are set aside while the others go on, and run
    again at the end: some at once, then half as many after each further loss. At last a single
    suspect runs alone, and is to blame for a loss.
    """

    def __init__(self, jobs: Iterable[NotebookJob], limit: int) -> None:
        self._waiting = deque(jobs)
        self._suspects: deque[NotebookJob] = deque()
        self._limit = limit
        self._group = 0  # maximum number of suspects under way; 0 while others are
        self._attempts: Counter[str] = Counter()

    def __bool__(self) -> bool:
        return bool(self._waiting or self._suspects)

    def take(self, under_way: int) -> NotebookJob | None:
        """Take the next notebook. Returns None if none is left, or if it must wait for others."""
        if self._group and not self._suspects and not under_way:
            self._group = 0
        if not self._group and self._waiting:
            return self._waiting.popleft() if under_way < self._limit else None
        if not self._suspects or (not self._group and under_way):
            return None
        if not self._group:
            self._group = self._compute_group(len(self._suspects))
        return self._suspects.popleft() if under_way < self._group else None

    def give_back(self, jobs: Sequence[NotebookJob]) -> None:
        """Take back notebooks that an executor did not run, through no fault of theirs."""
        (self._suspects if self._group else self._waiting).extendleft(reversed(jobs))

    @property
    def is_alone(self) -> bool:
        """Return True if one notebook that may have ended its worker runs now without any other."""
        return self._group == 1

    def blame(self, job: NotebookJob, *, is_certain: bool = False) -> bool:
        """Count the loss of a worker against its notebook; return whether that runs again.

        Args:
            is_certain: whether it has run often enough to be given up.
        """
        self._attempts[job.fingerprint] += 1
        if self._attempts[job.fingerprint] < MAX_ATTEMPTS and not is_certain:
            self._suspects.appendleft(job)
            return True
        if self._group:
            self._group = self._compute_group(len(self._suspects))
        return False

    def suspect(self, jobs: Sequence[NotebookJob]) -> None:
        """Set aside notebooks that were under way when a worker was lost, to run again later."""
        self._suspects.extendleft(reversed(jobs))
        if self._group:
            self._group = self._compute_group(min(self._group, len(jobs)))

    def _compute_group(self, suspects: int) -> int:
        """Compute how many suspects run at once: half of the given number, within limits."""
        return max(1, min(suspects // 2, self._limit, MAX_SUSPECTS_TOGETHER))


class RowDispatcher:
    """A dispatcher that hands notebooks to an executor until each of them has ended.

    Args:
        factory: function that makes the executor on entry, and again after an executor was lost
            with its workers.
        make_request: function that makes the request to a worker, with its kernel's variables.
        limit: maximum number of notebooks handed out at once; None for no limit.
        add: callback for each notebook that has ended, or could not be run (why, in one line).
    """

    def __init__(
        self,
        factory: ExecutorFactory,
        make_request: MakeRequest,
        batch_id: str,
        limit: int | None,
        add: OnDone,
    ) -> None:
        self._factory = factory
        self._make_request = make_request
        self._batch_id = batch_id
        self._limit = min(limit or MAX_ROWS_UNDER_WAY, MAX_ROWS_UNDER_WAY)
        self._add = add
        self._refusals = 0  # by executors, one after the other
        self._losses = 0  # executors lost since a notebook ended
        self._under_way: dict[Any, NotebookJob] = {}
        self._running: set[Any] = set()  # of these, if the executor reports it
        self._executor: Executor | None = None

    def __enter__(self) -> Self:
        self._executor = self._factory()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the executor without waiting for the notebooks that it still runs."""
        executor, self._executor = self._executor, None
        with suppress(Exception):  # it may be broken
            shutdown = getattr(executor, "shutdown", self._cancel_all)  # submitit's has none
            shutdown(wait=False, cancel_futures=True)

    def _cancel_all(self, **_: bool) -> None:
        for future in self._under_way:
            with suppress(Exception):  # it may have ended meanwhile
                future.cancel()

    def run(self, jobs: Sequence[NotebookJob], access: Access) -> None:
        """Hand all notebooks to the executor and return once each has ended or was given up.

        Raises:
            ServiceError: `UNAVAILABLE` if a worker has another version of the toolkit, if there is
                no worker for `worker_wait_s`, or if several executors are lost in a row.
        """
        rows = RowQueue(jobs, self._limit)
        while rows or self._under_way:
            refusal = self._hand_out(rows, access)
            if isinstance(self._executor, DaskRowExecutor):
                self._executor.check_workers()
            lost = self._collect(rows) or refusal
            if lost is not None:
                self._take_back(rows, lost)
                self.close()
                self._executor = self._factory()

    def _hand_out(self, rows: RowQueue, access: Access) -> Exception | None:
        """Hand out as many as may be under way; return why the executor takes no more, if so.

        Raises:
            ServiceError: `UNAVAILABLE` if several executors in a row take nothing.
        """
        while (job := rows.take(len(self._under_way))) is not None:
            try:
                self._submit(job, access())
                self._refusals = 0
            except (*LOST_EXECUTOR, OSError, RuntimeError) as error:
                rows.give_back([job])
                # It takes no more now; an executor that never takes any is an error.
                self._refusals += 1
                if self._refusals >= MAX_ATTEMPTS:
                    raise ServiceError(
                        ErrorCode.UNAVAILABLE,
                        f"The executor rejects notebooks ({_to_line(error)}): check that it runs.",
                    ) from None
                return error
        return None

    def _submit(self, job: NotebookJob, variables: Mapping[str, str]) -> None:
        # The same key in each attempt, so that work of an earlier attempt is not requested again.
        run = f"{self._batch_id}-{job.fingerprint}"
        request = self._make_request(job, {**variables, NOTEBOOK_RUN_VARIABLE: run})
        executor = cast("Executor", self._executor)
        self._under_way[executor.submit(run_row, request.to_json())] = job

    def _collect(self, rows: RowQueue) -> Exception | None:
        """Collect the notebooks that have ended; return how the executor was lost, if it was."""
        # Futures of submitit do not report that they run.
        running = {future for future in self._under_way if getattr(future, "running", bool)()}
        self._running = running | (self._running & self._under_way.keys())
        again, killed = Counter[str](), []
        lost: Exception | None = None
        for future in _wait_for_any(list(self._under_way)):
            try:
                answer = RowAnswer(**json.loads(future.result()))
            except LOST_EXECUTOR as error:
                lost = error
                continue
            except Exception as error:  # the executor's: a notebook's own is in the answer
                job = self._under_way.pop(future)
                if _is_killed_worker(error) and not rows.is_alone:
                    killed.append(job)
                    again[_to_line(error)] += 1
                else:
                    again.update(self._blame(rows, job, error))
                continue
            job = self._under_way.pop(future)
            if answer.refusal is not None:
                raise ServiceError(ErrorCode.UNAVAILABLE, answer.refusal)
            if not answer.notebook:  # it was cancelled, because the scheduler was lost
                again.update(self._blame(rows, job, CancelledError()))
                continue
            self._losses = 0
            notebook = nbformat.reads(answer.notebook, as_version=4)
            self._add(job, ExecutedNotebook(notebook, answer.error, answer.seconds))
        if killed:
            rows.suspect(killed)
        _tell_losses(again)
        return lost

    def _take_back(self, rows: RowQueue, lost: Exception) -> None:
        """Take back the notebooks of a lost executor, to be run again.

        No notebook is to blame for a lost scheduler. If a pool broke, a notebook that had not begun
        is not to blame. A notebook that had begun is to blame only if it was alone.

        Raises:
            ServiceError: `UNAVAILABLE` if that makes no progress.
        """
        reason, jobs = _to_line(lost), list(self._under_way.values())
        suspects = [job for future, job in self._under_way.items() if future in self._running]
        idle = [job for future, job in self._under_way.items() if future not in self._running]
        self._under_way, self._running = {}, set()
        if not jobs:
            return
        if not isinstance(lost, BrokenExecutor):
            self._losses += 1
            if self._losses >= MAX_ATTEMPTS:
                raise ServiceError(
                    ErrorCode.UNAVAILABLE,
                    f"The executor was lost {MAX_ATTEMPTS} times before any notebook ended"
                    f" ({reason}): repair it and run the batch again, which continues from here.",
                )
            rows.give_back(jobs)
        elif len(jobs) == 1:
            _tell_losses(Counter(self._blame(rows, jobs[0], lost)))
            return
        elif suspects:
            rows.give_back(idle)
            rows.suspect(suspects)
        else:  # the executor does not report it: all may have begun
            rows.suspect(jobs)
        _tell_losses(Counter({reason: len(jobs)}))

    def _blame(self, rows: RowQueue, job: NotebookJob, error: BaseException) -> list[str]:
        """Put back a notebook whose worker was lost; after some attempts, report it as failed.

        Returns:
            the reason, if it is run again.
        """
        reason, is_certain = _to_line(error), _is_killed_worker(error)
        if rows.blame(job, is_certain=is_certain):
            return [reason]
        self._losses = 0
        attempts = "at each attempt" if is_certain else f"at {MAX_ATTEMPTS} attempts"
        self._add(job, f"The worker was lost {attempts} ({reason})")
        return []


def _is_killed_worker(error: BaseException) -> bool:
    """Return True for Dask's own error of a call that ran on several workers that were lost."""
    # By name for an executor of the caller, because Dask may not be installed.
    return isinstance(error, WorkerKilledError) or type(error).__name__ == "KilledWorker"


def _tell_losses(again: Counter[str]) -> None:
    for reason, count in again.items():
        print(f"Workers were lost ({reason}); notebooks run again: {count}.", file=sys.stderr)


def _wait_for_any(futures: list[Any]) -> list[Any]:
    """Wait a while for some futures to end; return the ended futures.

    SLURM's submitit has no futures of the standard library, but its jobs have `done()`, too.
    """
    if all(isinstance(future, Future) for future in futures):
        wait(futures, timeout=POLL_INTERVAL_S, return_when=FIRST_COMPLETED)
        return [future for future in futures if future.done()]
    completed = [future for future in futures if future.done()]
    if not completed:
        time.sleep(POLL_INTERVAL_S)
    return completed


def _to_line(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:300].rstrip(" :")
