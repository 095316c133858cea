"""Notebooks written from their cells, batches of them, and the engine for papermill."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from toolkit import batch

Write = Callable[..., Path]
PROCESSES = "tests.support.batch_executors:open_processes"
KERNELSPEC = {"name": "python3", "display_name": "Python 3", "language": "python"}


def write_notebook(path: Path, *sources: str) -> Path:
    """Write a notebook whose first cell holds its parameters."""
    cells = [new_code_cell(source) for source in sources]
    cells[0].metadata["tags"] = ["parameters"]
    nbformat.write(new_notebook(cells=cells, metadata={"kernelspec": KERNELSPEC}), path)
    return path


def run_batch(path: Path, grid: Any, **options: Any) -> Any:
    """Run a batch of a notebook with an engine of its own; return the table."""
    folder = path.parent
    options = {"data_dir": folder / "data", "sandbox": True, **options}
    return batch.run(path, grid, out=folder / "out", progress=False, **options)


@pytest.fixture
def notebook(tmp_path: Path) -> Write:
    """Writes a notebook into the test's folder."""
    return lambda *sources: write_notebook(tmp_path / "notebook.ipynb", *sources)


@pytest.fixture
def papermill_engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Register the engine `toolkit-warm` with kernels that end after the test."""
    import papermill  # noqa: F401 - it loads our engine, which must not be half imported then

    from toolkit.batch import papermill_engine
    from toolkit.batch.kernel.sources import KernelSource

    source = KernelSource(fork=True, spares=1)
    monkeypatch.setattr(papermill_engine, "get_shared_source", lambda: source)
    papermill_engine.register_engine()  # its entry point needs an installed toolkit
    yield
    source.close()
