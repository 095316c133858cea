"""One notebook of a batch: parameterised, run by papermill, and kept even if it fails."""

import copy
import hashlib
import json
import os
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import nbformat
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from papermill.engines import papermill_engines
from papermill.exceptions import PapermillExecutionError
from papermill.execute import (
    prepare_notebook_metadata,
    raise_for_execution_errors,
    remove_error_markers,
)
from papermill.iorw import load_notebook_node
from papermill.parameterize import parameterize_notebook

from toolkit.batch import papermill_engine
from toolkit.batch.grid import Parameters
from toolkit.batch.kernel.sources import KernelSource
from toolkit.batch.records import read_records
from toolkit.batch.table import RowOutcome, RowStatus, replace_file
from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.input_parsing import make_file_error

METADATA_KEY = "toolkit_batch"  # key in a notebook's metadata with the row of its result
MAX_SLUG = 60
_HASH_DIGITS = 10
_MIN_TIMEOUT_S = 0.001  # nbclient reads zero as no limit


@dataclass(frozen=True, slots=True)
class NotebookJob:
    """One row of the grid, with the name of its notebook and its fingerprint."""

    parameters: Parameters
    name: str
    fingerprint: str


class NotebookTemplate:
    """A notebook that is run many times: read and checked once.

    Raises:
        RequestError: if it cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.notebook = load_notebook_node(str(path))
        except OSError as error:
            raise make_file_error(f"The notebook {path}", error) from None
        except (ValueError, nbformat.reader.NotJSONError):
            raise RequestError(
                ErrorCode.INVALID_REQUEST,
                f"{path.name} is not a Jupyter notebook: its content is not notebook JSON.",
            ) from None
        self.kernel = self.notebook.metadata.get("kernelspec", {}).get("name") or "python3"
        self._content = [
            [cell.cell_type, cell.source, cell.metadata.get("tags", [])]
            for cell in self.notebook.cells
        ]

    def create_job(self, parameters: Parameters) -> NotebookJob:
        """Create a row: its file name, and a fingerprint of the notebook, kernel and parameters."""
        content = json.dumps([self._content, self.kernel, parameters], sort_keys=True)
        fingerprint = hashlib.sha256(content.encode()).hexdigest()
        words = "-".join(f"{name}-{value}" for name, value in parameters.items())
        slug = re.sub(r"[^A-Za-z0-9.]+", "-", words)[:MAX_SLUG].strip("-.")
        return NotebookJob(
            parameters, f"{slug or self.path.stem}-{fingerprint[:_HASH_DIGITS]}.ipynb", fingerprint
        )


def load_outcome(job: NotebookJob, out: Path) -> RowOutcome | None:
    """Load the outcome of this row from an earlier batch. Returns None if it did not complete."""
    try:
        notebook = json.loads((out / job.name).read_text(encoding="utf-8"))
        mark = notebook["metadata"][METADATA_KEY]
        if mark["fingerprint"] != job.fingerprint or mark["status"] != "completed":
            return None
        return RowOutcome(
            job.parameters,
            job.name,
            "completed",
            seconds=mark["seconds"],
            recorded=read_records(notebook),
            reused=True,
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None  # missing, or of another program: the row is run


@dataclass(frozen=True, slots=True)
class KernelWish:
    """The requirements of a notebook for its kernel.

    Attributes:
        timeout: maximum seconds of all cells together.
        folder: working folder of the kernel. Default: None, the folder of this process.
        environment: variables that only this notebook has.
    """

    name: str
    source: KernelSource
    preload: tuple[str, ...]
    timeout: float | None
    folder: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ExecutedNotebook:
    """A notebook that was run, with its outputs, its error in one line, and its duration."""

    notebook: Any
    error: str | None
    seconds: float


def run_job(
    template: NotebookTemplate,
    job: NotebookJob,
    out: Path,
    wish: KernelWish,
    stopped: threading.Event,
) -> RowOutcome | None:
    """Run one row and save its notebook; return None if it failed after a stop of the batch."""
    execution = execute_notebook(
        template.notebook,
        job.parameters,
        name=job.name,
        came_from=describe_origin(template, out),
        wish=wish,
    )
    return None if execution.error and stopped.is_set() else keep_notebook(job, out, execution)


def describe_origin(template: NotebookTemplate, out: Path) -> str:
    """Return the path of a batch's notebook, as its results state it.

    The path is relative to the results, so that a shared folder reveals no path of this machine.
    """
    return os.path.relpath(template.path, out)


def execute_notebook(
    notebook: Any, parameters: Parameters, *, name: str, came_from: str, wish: KernelWish
) -> ExecutedNotebook:
    """Run a copy of a notebook with parameters, and return it even if it failed."""
    started = time.monotonic()
    notebook = parameterize_notebook(
        copy.deepcopy(notebook),
        parameters,
        kernel_name=wish.name,
        engine_name=papermill_engine.ENGINE_NAME,
    )
    notebook = remove_error_markers(prepare_notebook_metadata(notebook, came_from, name))
    error = _run_cells(notebook, wish)
    return ExecutedNotebook(notebook, error, round(time.monotonic() - started, 3))


def keep_notebook(job: NotebookJob, out: Path, execution: ExecutedNotebook) -> RowOutcome:
    """Save an executed notebook in the folder of its batch; return the outcome of its row."""
    status: RowStatus = "failed" if execution.error else "completed"
    execution.notebook.metadata[METADATA_KEY] = {
        "fingerprint": job.fingerprint,
        "status": status,
        "seconds": execution.seconds,
        "error": execution.error,
    }
    replace_file(out / job.name, nbformat.writes(execution.notebook))
    recorded = read_records(execution.notebook)
    return RowOutcome(
        job.parameters, job.name, status, execution.error, execution.seconds, recorded
    )


def _run_cells(notebook: Any, wish: KernelWish) -> str | None:
    """Run the cells of a notebook; return its error in one line, if it failed."""
    try:
        papermill_engines.execute_notebook_with_engine(
            papermill_engine.ENGINE_NAME,
            notebook,
            wish.name,
            output_path=None,
            progress_bar=False,
            autosave_cell_every=0,
            source=wish.source,
            preload=wish.preload,
            environment=wish.environment,
            resources={"metadata": {"path": wish.folder}},
            timeout_func=None if wish.timeout is None else _make_time_limit(wish.timeout),
        )
        raise_for_execution_errors(notebook, None)
    except PapermillExecutionError as failed:
        return _to_line(f"{failed.ename}: {failed.evalue}")
    except CellTimeoutError:
        return f"Timed out after {wish.timeout:g} s"
    except DeadKernelError:
        return "The kernel died"
    except Exception as failed:
        return _to_line(f"{type(failed).__name__}: {failed}")
    return None


def _make_time_limit(seconds: float) -> Callable[[object], float]:
    """Make a function that returns the time left for a cell, from the notebook's first cell on."""
    find_end = cache(lambda: time.monotonic() + seconds)
    return lambda _cell: max(find_end() - time.monotonic(), _MIN_TIMEOUT_S)


def _to_line(text: str) -> str:
    return " ".join(text.split())[:500]
