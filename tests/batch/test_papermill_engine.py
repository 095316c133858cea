"""The engine `toolkit-warm`, used by papermill itself and by a batch."""

import pkgutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from papermill.exceptions import PapermillExecutionError
from papermill.execute import execute_notebook

from tests.batch.conftest import Write, run_batch
from toolkit.batch import papermill_engine
from toolkit.batch.imports import find_preloads
from toolkit.batch.kernel import sources
from toolkit.batch.papermill_engine import WarmEngine

ROOT = Path(__file__).parents[2]
RECORD = "import os, sys, time\nfrom toolkit.batch import record\n"
needs_fork = pytest.mark.skipif(not sources.can_fork(), reason="nothing can be forked here")


def test_declares_an_entry_point_for_papermill() -> None:
    """Given the project file, then papermill's group has the engine under its name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    ((engine_name, target),) = project["entry-points"]["papermill.engine"].items()
    assert engine_name == papermill_engine.ENGINE_NAME
    assert pkgutil.resolve_name(target).execute_notebook == WarmEngine.execute_notebook


@pytest.mark.parametrize("first", ["toolkit.batch.papermill_engine", "papermill.execute"])
def test_papermill_and_engine_import_in_either_order(first: str) -> None:
    """Given papermill, which loads engines while it is imported, then no order fails."""
    code = f"import {first}, toolkit.batch.papermill_engine, papermill.engines as p; " + (
        "print(p.papermill_engines.get_engine('toolkit-warm').execute_notebook)"
    )
    output = subprocess.check_output([sys.executable, "-c", code], text=True, timeout=60)
    assert "WarmEngine" in output


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # papermill leaves its loop open
@pytest.mark.usefixtures("papermill_engine")
def test_papermill_saves_a_notebook_that_fails(notebook: Write, tmp_path: Path) -> None:
    """Given a cell that fails, when papermill uses the engine, then it saves and raises."""
    path, out = notebook("x = 1", "print('x is', x)\nassert x < 3"), tmp_path / "out.ipynb"
    with pytest.raises(PapermillExecutionError, match="AssertionError"):
        execute_notebook(
            str(path), str(out), {"x": 3}, engine_name="toolkit-warm", progress_bar=False
        )
    assert "x is 3" in out.read_text()


def test_finds_the_packages_to_preload() -> None:
    """Given a notebook, then installed packages are found, own modules and magics are not."""
    source = (
        "%matplotlib inline\nimport numpy as np, own_module\nfrom matplotlib import pyplot\n"
        "from toolkit.local import Client\nfrom . import nothing\nimport papermill.iorw\n!ls"
    )
    cells = [
        {"cell_type": "markdown", "source": "import pandas", "metadata": {}},
        {"cell_type": "code", "source": source, "metadata": {}},
        {"cell_type": "code", "source": "this is not python", "metadata": {}},
    ]
    assert find_preloads({"cells": cells}) == (
        *("numpy", "matplotlib:pyplot", "toolkit.local:Client", "papermill.iorw"),
    )


@pytest.mark.parametrize("name", ["Client", "AsyncClient", "toolkit.Client"])
def test_preloads_the_engine_of_a_local_client(name: str) -> None:
    """Given a notebook that calls `Client.local`, then its kernels preload the engine."""
    local = {"cell_type": "code", "source": f"client = {name}.local('x')", "metadata": {}}
    remote = {"cell_type": "code", "source": f"client = {name}('http://x')", "metadata": {}}
    assert find_preloads({"cells": [local]}) == ("toolkit.local",)
    assert find_preloads({"cells": [remote]}) == ()


@needs_fork
def test_shows_figures_of_a_preloaded_pyplot(notebook: Write, tmp_path: Path) -> None:
    """Given pyplot imported before the fork, then figures are still shown in the notebook."""
    check = "import sys\nis_loaded = 'matplotlib.pyplot' in sys.modules"
    plot = "import matplotlib.pyplot as plt\nplt.plot([x, 2]);"
    path = notebook("x = 1", check, plot, RECORD + "record('loaded', is_loaded)")
    table = run_batch(path, {"x": [1, 2]})
    assert list(table["loaded"]) == [True, True]
    assert all("image/png" in file.read_text() for file in (tmp_path / "out").glob("*.ipynb"))


@needs_fork
def test_replaces_the_parent_of_forked_kernels(
    notebook: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a limit, or a notebook that kills its parent, then later kernels get a new parent."""
    kill = "import signal\nif kills: os.kill(os.getppid(), signal.SIGKILL); time.sleep(60)"
    path = notebook("turn = 0\nkills = False", RECORD + "record('parent', os.getppid())", kill)
    grid = [{"turn": turn, "kills": turn == 3} for turn in range(5)]
    monkeypatch.setattr(sources, "RENEW_AFTER", 2)
    table = run_batch(path, grid, workers=1)
    assert list(table["status"]) == ["completed"] * 3 + ["failed", "completed"]
    parents = list(table["parent"])
    assert parents[0] == parents[1]
    assert len({parents[1], parents[2], parents[4]}) == 3
    assert table["error"][3] == "The kernel died"


def test_does_not_fork_a_preload_that_starts_threads(
    notebook: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given imports that start a thread, which a fork loses, then kernels are started instead."""
    (tmp_path / "threaded.py").write_text(
        "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()"
    )
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{ROOT}")
    path = notebook(
        "x = 1", RECORD + "record('loaded', 'threaded' in sys.modules)\nimport threaded"
    )
    table = run_batch(path, [{"x": 2}], preload=["threaded"])
    assert (table["status"][0], table["loaded"][0]) == ("completed", False)


def test_starts_another_kind_of_kernel_by_its_own_command(
    notebook: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a kernel that is not IPython's, then papermill starts it by its own command."""
    spec = tmp_path / "jupyter" / "kernels" / "other"
    spec.mkdir(parents=True)
    start = "import sys; sys.argv[0] = 'other'; from ipykernel.kernelapp import main; main()"
    (spec / "kernel.json").write_text(
        f'{{"argv": ["{sys.executable}", "-c", "{start}", "-f", "{{connection_file}}"],'
        ' "display_name": "Other", "language": "python"}'
    )
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    path = notebook("x = 1", "import sys\nassert sys.argv[0] == 'other'\nx")
    path.write_text(path.read_text().replace('"name": "python3"', '"name": "other"'))
    table = run_batch(path, [{"x": 2}])
    assert list(table["error"]) == [None]


@pytest.mark.parametrize("fork", [True, False], ids=["forked", "spare"])
def test_a_kernel_exits_in_order(notebook: Write, tmp_path: Path, fork: bool) -> None:
    """Given an open file, an exit handler and a thread pool, then each is closed at the end."""
    code = (
        "import atexit, os\nfrom concurrent.futures import ThreadPoolExecutor\n"
        f"file = open('{tmp_path}/open.txt', 'w'); file.write('written')\n"
        f"atexit.register(lambda: open('{tmp_path}/exit.txt', 'w').write('left'))\n"
        "pool = ThreadPoolExecutor(1); pool.submit(os.getpid)\nos.chdir('/')"
    )
    table = run_batch(notebook("x = 1", code), [{"x": 1}], fork=fork)
    assert list(table["error"]) == [None]
    assert (tmp_path / "open.txt").read_text() == "written"
    assert (tmp_path / "exit.txt").read_text() == "left"
