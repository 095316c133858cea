"""The notebooks of a batch, handed to an executor, and once more where a worker was lost."""

import json
import secrets
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    wait,
)
from contextlib import suppress
from typing import Any, Self, cast

import nbformat

from toolkit.batch.notebook_job import ExecutedNotebook, NotebookJob
from toolkit.batch.remote.dask_rows import DaskRowExecutor
from toolkit.batch.remote.engine_access import Access
from toolkit.batch.remote.executors import ExecutorFactory
from toolkit.batch.remote.row import RowAnswer, RowRequest
from toolkit.batch.remote.task import run_row
from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.profiles.resolution import NOTEBOOK_RUN_VARIABLE

MAX_ATTEMPTS = 3
MAX_ROWS_UNDER_WAY = 1_000
POLL_INTERVAL_S = 0.2
LOST_EXECUTOR = (BrokenExecutor, CancelledError, OSError)

OnDone = Callable[[NotebookJob, ExecutedNotebook | str], None]
MakeRequest = Callable[[NotebookJob, dict[str, str]], RowRequest]


def make_batch_id() -> str:
    """Make the id of a batch: what its notebooks ask for is theirs alone."""
    return secrets.token_hex(8)


class RowDispatcher:
    """Hands notebooks to an executor until each has come to an end.

    Args:
        factory: makes the executor, as this is entered, and once more where one was lost with its
            workers.
        make_request: makes what a worker is asked for, with the variables of its kernel.
        batch_id: the id of the batch.
        limit: how many are handed out at once; none for as many as there are.
        add: is told of each that has ended, or why it could not be run, in one line.
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
        self._attempts: Counter[str] = Counter()
        self._refusals = 0  # by executors, one after the other
        self._under_way: dict[Any, NotebookJob] = {}
        self._executor: Executor | None = None

    def __enter__(self) -> Self:
        self._executor = self._factory()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the executor without waiting for what it still does."""
        executor, self._executor = self._executor, None
        with suppress(Exception):  # it may be broken
            shutdown = getattr(executor, "shutdown", None)  # submitit's has none
            if shutdown is not None:
                shutdown(wait=False, cancel_futures=True)

    def run(self, jobs: Sequence[NotebookJob], access: Access) -> None:
        """Run all notebooks.

        Args:
            jobs: the notebooks.
            access: tells the variables by which they ask the engine.

        Raises:
            ServiceError: `UNAVAILABLE` where a worker has another version of the toolkit, or there
                is none for `worker_wait_s`.
        """
        waiting = deque(jobs)
        while waiting or self._under_way:
            try:
                while waiting and len(self._under_way) < self._limit:
                    self._submit(waiting[0], access())
                    waiting.popleft()
                    self._refusals = 0
            except (*LOST_EXECUTOR, RuntimeError) as error:
                # It takes no more. Who gives it nothing for ever is told.
                self._refusals += 1
                if self._refusals >= MAX_ATTEMPTS:
                    raise ServiceError(
                        ErrorCode.UNAVAILABLE,
                        f"The executor takes no notebooks ({_to_line(error)}).",
                    ) from None
                self._replace(waiting)
                continue
            if isinstance(self._executor, DaskRowExecutor):
                self._executor.check_workers()
            if self._collect(waiting):
                self._replace(waiting)

    def _submit(self, job: NotebookJob, variables: Mapping[str, str]) -> None:
        # The same in each attempt: what an earlier one asked for is not asked for again.
        run = f"{self._batch_id}-{job.fingerprint}"
        request = self._make_request(job, {**variables, NOTEBOOK_RUN_VARIABLE: run})
        executor = cast("Executor", self._executor)
        self._under_way[executor.submit(run_row, request.to_json())] = job

    def _collect(self, waiting: deque[NotebookJob]) -> bool:
        """Take what has ended; return whether the executor was lost."""
        lost, again = False, Counter[str]()
        for future in _wait_for_any(list(self._under_way)):
            job = self._under_way.pop(future)
            try:
                answer = RowAnswer(**json.loads(future.result()))
            except Exception as error:  # the executor's: a notebook's own is in the answer
                again.update(self._lose(job, error, waiting))
                lost = lost or isinstance(error, LOST_EXECUTOR)
                continue
            if answer.refusal is not None:
                raise ServiceError(ErrorCode.UNAVAILABLE, answer.refusal)
            if not answer.notebook:  # it was cancelled, as a scheduler does that is lost
                again.update(self._lose(job, CancelledError(), waiting))
                continue
            notebook = nbformat.reads(answer.notebook, as_version=4)
            self._add(job, ExecutedNotebook(notebook, answer.error, answer.seconds))
        for reason, count in again.items():
            print(f"Workers were lost ({reason}); notebooks run again: {count}.", file=sys.stderr)
        return lost

    def _lose(
        self, job: NotebookJob, error: BaseException, waiting: deque[NotebookJob]
    ) -> list[str]:
        """Have a notebook whose worker was lost run again, or fail after some attempts.

        Returns:
            the reason, if it is run again.
        """
        self._attempts[job.fingerprint] += 1
        reason = _to_line(error)
        if self._attempts[job.fingerprint] >= MAX_ATTEMPTS:
            self._add(job, f"Its worker was lost {MAX_ATTEMPTS} times ({reason})")
            return []
        waiting.append(job)
        return [reason]

    def _replace(self, waiting: deque[NotebookJob]) -> None:
        """Make another executor, which gets what the lost one had."""
        waiting.extend(self._under_way.values())
        self._under_way.clear()
        self.close()
        self._executor = self._factory()


def _wait_for_any(futures: list[Any]) -> list[Any]:
    """Wait a while for some to end; return those that have.

    Those of SLURM's submitit are no futures of the standard library, but have `done()`, too.
    """
    if all(isinstance(one, Future) for one in futures):
        wait(futures, timeout=POLL_INTERVAL_S, return_when=FIRST_COMPLETED)
        return [one for one in futures if one.done()]
    ended = [one for one in futures if one.done()]
    if not ended:
        time.sleep(POLL_INTERVAL_S)
    return ended


def _to_line(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:300].rstrip(" :")
