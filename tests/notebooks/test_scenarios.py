"""The scenario notebooks, cell by cell, as nbval runs them."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_cell_runs(notebook: Path, tmp_path: Path) -> None:
    """Given a scenario notebook in an empty folder, when run, then no cell fails."""
    copy = tmp_path / notebook.name
    shutil.copy(notebook, copy)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    command = ["-m", "pytest", "--nbval-lax", "--nbval-cell-timeout=60", "-q", str(copy)]
    done = subprocess.run(
        [sys.executable, *command], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert "failed" not in done.stdout


def test_notebooks_are_kept_clean() -> None:
    """Given the notebooks as committed, then they hold no output of a machine, and fixed ids."""
    command = [sys.executable, str(ROOT / "scripts" / "notebooks.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
