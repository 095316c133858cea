"""Notebooks written from their cells, and batches of them on workers elsewhere."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from toolkit import batch

Write = Callable[..., Path]
PROCESSES = "tests.support.batch_executors:open_processes"
KERNELSPEC = {"name": "python3", "display_name": "Python 3", "language": "python"}


def write_notebook(path: Path, *cells: str) -> Path:
    """A notebook whose first cell has its parameters."""
    made = [new_code_cell(cell) for cell in cells]
    made[0].metadata["tags"] = ["parameters"]
    nbformat.write(new_notebook(cells=made, metadata={"kernelspec": KERNELSPEC}), path)
    return path


def run_batch(path: Path, grid: Any, **more: Any) -> Any:
    """Run a batch of a notebook, by an engine of its own."""
    folder = path.parent
    return batch.run(
        path, grid, out=folder / "out", progress=False, data_dir=folder / "data", sandbox=True,
        **more,
    )  # fmt: skip


@pytest.fixture
def notebook(tmp_path: Path) -> Write:
    """Writes a notebook into the test's folder."""
    return lambda *cells: write_notebook(tmp_path / "notebook.ipynb", *cells)
