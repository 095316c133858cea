"""Notebooks written from their cells."""

from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

Write = Callable[..., Path]
KERNELSPEC = {"name": "python3", "display_name": "Python 3", "language": "python"}


def write_notebook(path: Path, *cells: str) -> Path:
    """A notebook whose first cell has its parameters."""
    made = [new_code_cell(cell) for cell in cells]
    made[0].metadata["tags"] = ["parameters"]
    nbformat.write(new_notebook(cells=made, metadata={"kernelspec": KERNELSPEC}), path)
    return path


@pytest.fixture
def notebook(tmp_path: Path) -> Write:
    """Writes a notebook into the test's folder."""
    return lambda *cells: write_notebook(tmp_path / "notebook.ipynb", *cells)
