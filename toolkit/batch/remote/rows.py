"""The rows of a batch on remote workers: their engine, their dispatch, and their results."""

import os
import secrets
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import closing

import nbformat

from toolkit.batch.notebook_job import (
    ExecutedNotebook,
    NotebookJob,
    NotebookTemplate,
    describe_origin,
    keep_notebook,
)
from toolkit.batch.remote.dask_rows import DaskRowExecutor
from toolkit.batch.remote.dispatch import RowDispatcher
from toolkit.batch.remote.engine_access import choose_engine_host, open_access
from toolkit.batch.remote.executors import BatchOptions, RemoteWorkers
from toolkit.batch.remote.row import RowRequest
from toolkit.batch.table import RowOutcome
from toolkit.contract.version import read_installed_version


def run_remote_jobs(
    batch: BatchOptions,
    remote: RemoteWorkers,
    template: NotebookTemplate,
    jobs: Sequence[NotebookJob],
    preload: tuple[str, ...],
    add: Callable[[NotebookJob, RowOutcome], None],
) -> None:
    """Run the remaining jobs on remote workers, which all use the same engine."""
    # An unreachable address is reported before any worker starts.
    host = choose_engine_host(remote.engine) if remote.engine.is_own else None
    batch_id = secrets.token_hex(8)  # makes the notebooks' idempotency keys unique
    text = nbformat.writes(template.notebook)

    def make_request(job: NotebookJob, variables: dict[str, str]) -> RowRequest:
        return RowRequest(
            version=read_installed_version(),
            batch_id=batch_id,
            notebook=text,
            parameters=job.parameters,
            name=job.name,
            came_from=describe_origin(template, batch.out),
            kernel=template.kernel,
            preload=preload,
            timeout=batch.timeout,
            folder=os.getcwd(),
            environment=variables,
            fork=batch.fork,
        )

    def keep(job: NotebookJob, execution: ExecutedNotebook | str) -> None:
        if isinstance(execution, str):
            add(job, RowOutcome(job.parameters, job.name, "failed", execution))
        else:
            add(job, keep_notebook(job, batch.out, execution))

    def open_executor() -> Executor:
        executor = remote.factory()
        if isinstance(executor, DaskRowExecutor):
            preloads = preload if template.kernel == "python3" else None
            executor.prepare(batch_id, preloads, fork=batch.fork)
        return executor

    # The workers first: they get ready while the engine is opened.
    with (
        RowDispatcher(open_executor, make_request, batch_id, batch.workers, keep) as dispatcher,
        open_access(remote.engine, host) as access,
        closing(dispatcher),  # before the engine that its notebooks ask
    ):
        dispatcher.run(jobs, access)
