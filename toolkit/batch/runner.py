"""A batch: the rows of a grid, run side by side in warm kernels."""

import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from pathlib import Path
from typing import TYPE_CHECKING

from jupyter_core.utils import ensure_event_loop

from toolkit.batch import papermill_engine
from toolkit.batch.grid import Grid, load_rows, read_defaults
from toolkit.batch.imports import find_preloads
from toolkit.batch.kernel.sources import KernelSource
from toolkit.batch.notebook_job import (
    KernelWish,
    NotebookJob,
    NotebookTemplate,
    load_outcome,
    run_job,
)
from toolkit.batch.progress import BatchProgress
from toolkit.batch.records import RESERVED_NAMES
from toolkit.batch.remote.executors import (
    DEFAULT_MAX_COST_USD,
    BatchOptions,
    EngineChoice,
    ExecutorFactory,
    choose_workers,
)
from toolkit.batch.table import RowOutcome, to_frame, write_results
from toolkit.contract.errors import ErrorCode, RequestError

if TYPE_CHECKING:
    import pandas as pd

POLL_INTERVAL_S = 0.2


def run(
    notebook: str | Path,
    grid: Grid,
    *,
    out: str | Path = "batch-output",
    workers: int | None = None,
    timeout: float | None = None,
    resume: bool = True,
    preload: Sequence[str] | None = None,
    fork: bool = True,
    progress: bool = True,
    dask: str | None = None,
    executor: str | ExecutorFactory | None = None,
    host: str | None = None,
    base_url: str | None = None,
    data_dir: str | Path | None = None,
    sandbox: bool = False,
    max_cost_usd: float | None = None,
) -> "pd.DataFrame":
    """Run a notebook once for each row of a grid, and make one table of the results.

    A notebook that fails is kept with its error, and the others go on. Each runs in a fresh kernel.
    Ctrl-C stops all running notebooks, writes the table of the completed rows, and is raised.

    Args:
        notebook: path of a notebook with a cell tagged `parameters`.
        grid: a CSV or YAML file, a list of rows, or a mapping whose lists are combined.
        out: folder for the executed notebooks, `results.csv` and `report.json`.
        workers: number of notebooks that run side by side. Default: the number of processors.
        timeout: maximum seconds of a notebook.
        resume: keep the rows that completed before with the same notebook and parameters.
        preload: imports of kernels before the notebook starts, as `module` or `module:name`.
            Default: the notebook's top-level imports from installed packages.
        fork: whether kernels may be forked, if the platform allows it.
        progress: whether to report progress on standard error.
        dask: address of a Dask scheduler, on whose workers notebooks run (the extra `dask`).
        executor: factory of a `concurrent.futures.Executor` on whose workers they run instead: a
            function, or its `module:name`.
        host: address of this machine by which those workers reach the engine here, which all of
            their `Client()`s ask. Default: 127.0.0.1, which needs workers on this machine.
        base_url: server that they ask instead. Default: the server of the environment or profile.
        data_dir: folder of the engine here. Default: `./.toolkit`.
        sandbox: whether its vendors are simulated.
        max_cost_usd: maximum total cost of the work of notebooks on such workers, in US dollars.
            Default: 5. Their key spends no more.

    Returns:
        a row each, in the order of the grid: parameters, recorded values, status, error, seconds
        and path.

    Raises:
        RequestError: if the notebook or the grid cannot be used; nothing was run then.
        ServiceError: `UNAVAILABLE` if the workers, or the engine for them, are not available.
        KeyboardInterrupt: if it was stopped.
    """
    choice = EngineChoice(
        base_url,
        None if data_dir is None else Path(data_dir),
        sandbox,
        host,
        max_cost_usd=DEFAULT_MAX_COST_USD if max_cost_usd is None else max_cost_usd,
    )
    outcomes = run_batch(
        BatchOptions(
            Path(notebook),
            Path(out),
            workers,
            timeout,
            resume,
            None if preload is None else tuple(preload),
            fork,
            choose_workers(dask, executor, choice),
        ),
        grid,
        progress=progress,
    )
    return to_frame(outcomes)


def run_batch(batch: BatchOptions, grid: Grid, *, progress: bool = True) -> list[RowOutcome]:
    """Run a batch, write its table, and return the outcome of each row.

    Raises:
        RequestError: if the notebook or the grid cannot be used; nothing was run then.
        KeyboardInterrupt: if it was stopped; the table is written then, too.
    """
    if batch.worker_count < 1:
        raise RequestError(ErrorCode.INVALID_REQUEST, "`workers` must be at least 1.")
    template = NotebookTemplate(batch.notebook)
    jobs = [template.create_job(row) for row in load_rows(grid, read_defaults(template.notebook))]
    batch.out.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    results = {
        job.fingerprint: old
        for job in jobs
        if batch.resume and (old := load_outcome(job, batch.out))
    }
    remaining = [job for job in jobs if job.fingerprint not in results]
    try:
        with BatchProgress(len(remaining), is_shown=progress) as bar:

            def add(job: NotebookJob, outcome: RowOutcome) -> None:
                results[job.fingerprint] = outcome
                bar.add(outcome)

            _run_jobs(batch, template, remaining, add)
    finally:
        outcomes = [
            results.get(j.fingerprint) or RowOutcome(j.parameters, j.name, "not run") for j in jobs
        ]
        write_results(
            batch.out, outcomes, _build_report(batch, outcomes, time.monotonic() - started)
        )
    return outcomes


def _run_jobs(
    batch: BatchOptions,
    template: NotebookTemplate,
    jobs: Sequence[NotebookJob],
    add: Callable[[NotebookJob, RowOutcome], None],
) -> None:
    """Run the remaining notebooks and report each as it ends; a stop kills the running ones."""
    if not jobs:
        return
    preload = find_preloads(template.notebook) if batch.preload is None else batch.preload
    if batch.remote is not None:
        from toolkit.batch.remote.rows import run_remote_jobs  # and with it an engine and a server

        run_remote_jobs(batch, batch.remote, template, jobs, preload, add)
        return
    papermill_engine.register_engine()
    workers = min(batch.worker_count, len(jobs))
    source = KernelSource(fork=batch.fork, spares=workers)
    wish = KernelWish(template.kernel, source, preload, batch.timeout)
    stopped, lock = threading.Event(), threading.Lock()

    def work(job: NotebookJob) -> None:
        if stopped.is_set():
            return
        try:
            outcome = run_job(template, job, batch.out, wish, stopped)
        finally:
            ensure_event_loop().close()  # this thread's, which papermill's client opens
        if outcome is not None:
            with lock:
                add(job, outcome)

    with ThreadPoolExecutor(workers, thread_name_prefix="batch") as pool:
        try:
            futures = {pool.submit(work, job) for job in jobs}
            while futures:
                # Not without limit, because a Ctrl-C in another thread does not end this wait.
                completed, futures = wait(
                    futures, timeout=POLL_INTERVAL_S, return_when=FIRST_EXCEPTION
                )
                for future in completed:
                    future.result()
        finally:
            stopped.set()
            source.close()


def _build_report(
    batch: BatchOptions, outcomes: Sequence[RowOutcome], seconds: float
) -> dict[str, object]:
    statuses = [outcome.status for outcome in outcomes]
    return {
        "notebook": os.path.relpath(batch.notebook, batch.out),
        "workers": batch.worker_count,
        "seconds": round(seconds, 3),
        "kept": sum(outcome.reused for outcome in outcomes),
        "counts": {name: statuses.count(name) for name in ("completed", "failed", "not run")},
        "rows": [
            {name: getattr(outcome, name) for name in ("parameters", "recorded", *RESERVED_NAMES)}
            for outcome in outcomes
        ],
    }
