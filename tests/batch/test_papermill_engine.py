"""The engine `toolkit-warm`, under papermill's own door and under a batch."""

import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
from papermill.exceptions import PapermillExecutionError
from papermill.execute import execute_notebook

from tests.batch.conftest import Write, run_batch
from toolkit.batch import papermill_engine
from toolkit.batch.imports import find_preloads
from toolkit.batch.kernel import sources

ROOT = Path(__file__).parents[2]
RECORD = "import os, sys, time\nfrom toolkit.batch import record\n"
needs_fork = pytest.mark.skipif(not sources.can_fork(), reason="nothing can be forked here")


def test_papermill_finds_the_engine_by_its_entry_point() -> None:
    """Given the project file, then papermill's group has the engine, under its name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (entry,) = project["entry-points"]["papermill.engine"].items()
    module, _, name = entry[1].partition(":")
    assert entry[0] == papermill_engine.ENGINE_NAME
    found = getattr(import_module(module), name)
    assert found.execute_notebook == papermill_engine.WarmEngine.execute_notebook


@pytest.mark.parametrize("first", ["toolkit.batch.papermill_engine", "papermill.execute"])
def test_either_may_be_imported_first(first: str) -> None:
    """Given papermill, which loads engines while it is imported, then no order fails."""
    asked = f"import {first}, toolkit.batch.papermill_engine, papermill.engines as p; " + (
        "print(p.papermill_engines.get_engine('toolkit-warm').execute_notebook)"
    )
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "WarmEngine" in done.stdout


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # papermill's own: it leaves its loop open
def test_papermill_runs_with_it(
    notebook: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given papermill's own API, when it names the engine, then it is run, saved and raised."""
    source = sources.KernelSource(fork=True, spares=1, renew_after=papermill_engine.RENEW_AFTER)
    monkeypatch.setattr(papermill_engine, "get_shared_source", lambda: source)
    papermill_engine.register_engine()
    path = notebook("x = 1", "print('found', x)\nassert x < 3")
    out = tmp_path / "out.ipynb"
    try:
        for value in (2, 3):
            given = {
                "parameters": {"x": value},
                "engine_name": papermill_engine.ENGINE_NAME,
                "progress_bar": False,
            }
            if value == 3:
                with pytest.raises(PapermillExecutionError, match="AssertionError"):
                    execute_notebook(str(path), str(out), **given)
            else:
                execute_notebook(str(path), str(out), **given)
            assert f"found {value}" in out.read_text()
    finally:
        source.close()


def test_what_it_imports_is_imported_before() -> None:
    """Given a notebook, then installed packages are named, own modules and magics are not."""
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
def test_an_engine_that_it_opens_is_imported_before(name: str) -> None:
    """Given a notebook that calls `Client.local`, then its kernels have the engine already."""
    opened = {"cell_type": "code", "source": f"client = {name}.local('x')", "metadata": {}}
    served = {"cell_type": "code", "source": f"client = {name}('http://x')", "metadata": {}}
    assert find_preloads({"cells": [opened]}) == ("toolkit.local",)
    assert find_preloads({"cells": [served]}) == ()


@needs_fork
def test_forked_kernels_have_their_imports_and_their_figures(
    notebook: Write, tmp_path: Path
) -> None:
    """Given pyplot imported before the fork, then figures are still shown in the notebook."""
    look = "import sys\nseen = 'matplotlib.pyplot' in sys.modules"
    plot = "import matplotlib.pyplot as plt\nplt.plot([x, 2]);"
    path = notebook("x = 1", look, plot, RECORD + "record('seen', seen)")
    table = run_batch(path, {"x": [1, 2]})
    assert list(table["seen"]) == [True, True]
    assert all("image/png" in made.read_text() for made in (tmp_path / "out").glob("*.ipynb"))


@needs_fork
def test_what_kernels_are_forked_from_is_replaced(notebook: Write) -> None:
    """Given a limit, and a notebook that kills its parent, then later ones have another parent."""
    kill = "import signal\nif kills: os.kill(os.getppid(), signal.SIGKILL); time.sleep(60)"
    path = notebook("turn = 0\nkills = False", RECORD + "record('parent', os.getppid())", kill)
    grid = [{"turn": turn, "kills": turn == 3} for turn in range(5)]
    table = run_batch(path, grid, workers=1, renew_after=2)
    assert list(table["status"]) == ["completed"] * 3 + ["failed", "completed"]
    parents = list(table["parent"])
    assert parents[0] == parents[1]
    assert len({parents[1], parents[2], parents[4]}) == 3
    assert table["error"][3] == "The kernel died"


def test_a_preload_that_starts_threads_is_not_forked(
    notebook: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given imports that leave a thread running, then kernels are started, as a fork loses it."""
    (tmp_path / "threaded.py").write_text(
        "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()"
    )
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{ROOT}")
    path = notebook("x = 1", RECORD + "record('had', 'threaded' in sys.modules)\nimport threaded")
    table = run_batch(path, [{"x": 2}], preload=["threaded"])
    assert (table["status"][0], table["had"][0]) == ("completed", False)


def test_a_kernel_of_another_kind_is_started_as_ever(
    notebook: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a kernel that is not started as IPython's is, then papermill's own way is taken."""
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
def test_a_notebook_ends_in_order(notebook: Write, tmp_path: Path, fork: bool) -> None:
    """Given a file left open, an exit handler and a pool of threads, then all come to their end."""
    code = (
        "import atexit, os\nfrom concurrent.futures import ThreadPoolExecutor\n"
        "left_open = open('open.txt', 'w'); left_open.write('written')\n"
        "atexit.register(lambda: open('exit.txt', 'w').write('left'))\n"
        "pool = ThreadPoolExecutor(1); pool.submit(os.getpid)\nos.chdir('/')"
    ).replace("'open.txt'", f"{str(tmp_path / 'open.txt')!r}")
    code = code.replace("'exit.txt'", f"{str(tmp_path / 'exit.txt')!r}")
    table = run_batch(notebook("x = 1", code), [{"x": 1}], fork=fork)
    assert list(table["error"]) == [None]
    assert (tmp_path / "open.txt").read_text() == "written"
    assert (tmp_path / "exit.txt").read_text() == "left"
