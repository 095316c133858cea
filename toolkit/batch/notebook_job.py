"""One notebook of a batch: parameterised, run by papermill, and kept even if it fails."""

import copy
import hashlib
import json
import os
import re
import threading
import time
from dataclasses import dataclass
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
from toolkit.batch.kernel.protocols import KernelSource
from toolkit.batch.records import read_records
from toolkit.batch.table import RowOutcome, replace_file
from toolkit.contract.errors import ErrorCode, RequestError

METADATA_KEY = "toolkit_batch"  # the key in a notebook's metadata that says whose result it is
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
        except (OSError, ValueError, nbformat.reader.NotJSONError) as error:
            raise RequestError(
                ErrorCode.INVALID_REQUEST,
                f"{path.name} cannot be read as a notebook: {type(error).__name__}.",
            ) from None
        self.kernel = self.notebook.metadata.get("kernelspec", {}).get("name") or "python3"
        self._content = [
            [cell.cell_type, cell.source, cell.metadata.get("tags", [])]
            for cell in self.notebook.cells
        ]

    def create_job(self, parameters: Parameters) -> NotebookJob:
        """Create a row with its name and the fingerprint of notebook, kernel and parameters."""
        content = json.dumps([self._content, self.kernel, parameters], sort_keys=True)
        fingerprint = hashlib.sha256(content.encode()).hexdigest()
        words = "-".join(f"{name}-{value}" for name, value in parameters.items())
        slug = re.sub(r"[^A-Za-z0-9.]+", "-", words)[:MAX_SLUG].strip("-.")
        return NotebookJob(
            parameters, f"{slug or self.path.stem}-{fingerprint[:_HASH_DIGITS]}.ipynb", fingerprint
        )


def load_outcome(job: NotebookJob, out: Path) -> RowOutcome | None:
    """Load what an earlier batch left for this row, if it completed."""
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
        return None  # not there, or not ours: it is run


def run_job(
    template: NotebookTemplate,
    job: NotebookJob,
    out: Path,
    source: KernelSource,
    preload: tuple[str, ...],
    timeout: float | None,
    stopped: threading.Event,
) -> RowOutcome | None:
    """Run one row and keep its notebook; none if the batch was stopped before its end."""
    started = time.monotonic()
    notebook = parameterize_notebook(
        copy.deepcopy(template.notebook),
        job.parameters,
        kernel_name=template.kernel,
        engine_name=papermill_engine.ENGINE_NAME,
    )
    # Relative to the notebook, so that a folder that is passed on names none of this machine.
    came_from = os.path.relpath(template.path, out)
    notebook = remove_error_markers(prepare_notebook_metadata(notebook, came_from, job.name))
    error = _run_cells(notebook, source, preload, template.kernel, timeout)
    if error and stopped.is_set():
        return None
    seconds = round(time.monotonic() - started, 3)
    status = "failed" if error else "completed"
    mark = {"fingerprint": job.fingerprint, "status": status, "seconds": seconds, "error": error}
    notebook.metadata[METADATA_KEY] = mark
    replace_file(out / job.name, nbformat.writes(notebook))
    return RowOutcome(
        job.parameters,
        job.name,
        "failed" if error else "completed",
        error,
        seconds,
        read_records(notebook),
    )


def _run_cells(
    notebook: Any,
    source: KernelSource,
    preload: tuple[str, ...],
    kernel: str,
    timeout: float | None,
) -> str | None:
    """Run the cells of a notebook; return its error in one line, if it failed."""
    try:
        papermill_engines.execute_notebook_with_engine(
            papermill_engine.ENGINE_NAME,
            notebook,
            kernel,
            output_path=None,
            progress_bar=False,
            autosave_cell_every=0,
            source=source,
            preload=preload,
            timeout_func=None if timeout is None else _RemainingTime(timeout),
        )
        raise_for_execution_errors(notebook, None)
    except PapermillExecutionError as failed:
        return _to_line(f"{failed.ename}: {failed.evalue}")
    except CellTimeoutError:
        return f"Timed out after {timeout:g} s"
    except DeadKernelError:
        return "Its kernel died"
    except Exception as failed:
        return _to_line(f"{type(failed).__name__}: {failed}")
    return None


class _RemainingTime:
    """The time that a cell may still take; the time of a notebook begins with its first cell."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._ends: float | None = None

    def __call__(self, cell: object) -> float:
        del cell
        now = time.monotonic()
        if self._ends is None:
            self._ends = now + self._seconds
        return max(self._ends - now, _MIN_TIMEOUT_S)


def _to_line(text: str) -> str:
    return " ".join(text.split())[:500]
