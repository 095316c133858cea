"""The part of a batch on a worker: one notebook runs in a warm kernel of the worker's machine.

A row arrives and leaves as JSON, so any executor can carry it.
"""

import json
import os
import sys
import threading
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import nbformat
from jupyter_core.utils import ensure_event_loop

from toolkit.batch import papermill_engine
from toolkit.batch.notebook_job import KernelWish, execute_notebook
from toolkit.batch.remote.source_keeper import get_source_keeper
from toolkit.workers.remote_step import explain_other_version, get_step_runner


@dataclass(frozen=True, slots=True)
class RowRequest:
    """A request to a worker to run one notebook.

    Attributes:
        batch_id: id of the batch, whose rows share kernels.
        came_from: path of the notebook, as recorded in its result.
        timeout: maximum seconds of all cells.
        folder: working folder of the kernel, if this machine has it.
        environment: variables that only this notebook has.
    """

    version: str
    batch_id: str
    notebook: str
    parameters: dict[str, Any]
    name: str
    came_from: str
    kernel: str
    preload: tuple[str, ...]
    timeout: float | None
    folder: str
    environment: dict[str, str]
    fork: bool

    def to_json(self) -> str:
        """Serialize the request as JSON for a worker."""
        return json.dumps(asdict(self))


@dataclass(frozen=True, slots=True)
class RowAnswer:
    """The result of a row on a worker.

    Attributes:
        error: error of the notebook, in one line.
        refusal: reason why the worker did not run it, in one line.
    """

    notebook: str = ""
    error: str | None = None
    seconds: float = 0.0
    refusal: str | None = None


def _kill_kernels(batch_id: str) -> None:
    """Kill the kernels of a batch that was cancelled as a whole."""
    threading.Thread(target=get_source_keeper().close, args=(batch_id,), daemon=True).start()


def answer_request(text: str) -> str:
    """Run the notebook of a row; return its answer as JSON."""
    request = RowRequest(**json.loads(text))
    refusal = explain_other_version(request.version)
    if refusal is not None:
        return json.dumps(asdict(RowAnswer(refusal=refusal)))
    papermill_engine.register_engine()
    task_id = _find_task_id() or f"{request.batch_id}/{request.name}"
    with get_step_runner().hold(task_id, partial(_kill_kernels, request.batch_id)) as is_active:
        if not is_active:
            return json.dumps(asdict(RowAnswer(error="It was cancelled")))
        return json.dumps(asdict(_execute(request)))


def _execute(request: RowRequest) -> RowAnswer:
    keeper = get_source_keeper()
    with keeper.use(request.batch_id, fork=request.fork) as source:
        try:
            execution = execute_notebook(
                nbformat.reads(request.notebook, as_version=4),
                request.parameters,
                name=request.name,
                came_from=request.came_from,
                wish=KernelWish(
                    request.kernel,
                    source,
                    tuple(request.preload),
                    request.timeout,
                    request.folder if os.path.isdir(request.folder) else None,
                    request.environment,
                ),
            )
        finally:
            with suppress(RuntimeError):
                ensure_event_loop().close()  # this thread's, which papermill's client opens
    return RowAnswer(nbformat.writes(execution.notebook), execution.error, execution.seconds)


def _find_task_id() -> str | None:
    """Find the name by which Dask cancels this thread's task. Returns None outside of Dask."""
    worker = sys.modules.get("distributed.worker")
    key = getattr(getattr(worker, "thread_state", None), "key", None)
    return None if key is None else str(key)
