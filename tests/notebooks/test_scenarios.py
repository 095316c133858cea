"""The scenario notebooks: one execution proves their cells, outputs and secrecy."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.notebooks.execution import (
    NOTEBOOKS,
    ROOT,
    SANITIZE,
    Rules,
    execute,
    find_differences,
    list_outputs,
)
from tests.support.forked_programs import install_forked_kernel
from tests.support.sample_workflow import make_workflow
from toolkit.contract.workflows import WorkflowRecord
from toolkit.display.workflow.svg import draw_workflow_svg

CANARY = "sk-proj-c0ffee5d41402abc4b2a76b9719d911017c592"
VARIABLES = ("OPENAI_API_KEY", "MINIMAX_API_KEY", "RUNPOD_API_KEY", "MY_OWN_VARIABLE")
# Smaller parameters for tests; the cells whose outputs depend on them are not compared.
SMALLER: dict[str, dict[str, Any]] = {"07_batch": {"objectives": 2}}
# Notebooks that describe sounds of the sandbox, which differ if `[speech]` is installed.
SPOKEN = {"04_narration_and_voice"}
START = NOTEBOOKS[0]


@pytest.fixture(scope="module")
def forked_kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The folder of a Jupyter kernel that starts without imports."""
    with install_forked_kernel(tmp_path_factory.mktemp("forked")) as folder:
        yield str(folder)


@pytest.mark.parametrize("notebook", NOTEBOOKS[1:], ids=lambda path: path.stem)
def test_a_notebook_reproduces_its_outputs(
    notebook: Path, forked_kernel: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given keys in the environment, when a notebook runs, then its outputs are as committed.

    No output has a key.
    """
    if notebook.stem in SPOKEN and importlib.util.find_spec("espeakng_loader"):
        pytest.skip("the committed notebook has the sounds of a sandbox without real speech")
    for name in VARIABLES:
        monkeypatch.setenv(name, CANARY)
    monkeypatch.setenv("JUPYTER_PATH", forked_kernel)
    monkeypatch.setenv("TOOLKIT_CPU_WORKERS", "1")  # each takes a second to start
    result = execute(notebook, tmp_path, SMALLER.get(notebook.stem, {}))
    assert find_differences(notebook, result) == []
    text = json.dumps(list_outputs(result))
    assert CANARY not in text
    assert "sk_live_" not in text


def slow_workflow(flow: WorkflowRecord, factor: float) -> WorkflowRecord:
    """Multiply the duration of each node of a workflow."""
    nodes = []
    for node in flow.nodes:
        assert node.started_at is not None
        assert node.completed_at is not None
        took = (node.completed_at - node.started_at) * factor
        nodes.append(node.model_copy(update={"completed_at": node.started_at + took}))
    return flow.model_copy(update={"nodes": nodes})


@pytest.mark.parametrize("factor", [0.001, 7, 700, 5000])
def test_compares_pictures_without_times(factor: float) -> None:
    """Given a workflow that took longer or less, then its picture compares as equal.

    A picture with another state, cost or provider differs.
    """
    rules, flow = Rules(), make_workflow()
    compared = rules.sanitize(draw_workflow_svg(flow.name, flow.nodes))
    slow = slow_workflow(flow, factor)
    assert rules.sanitize(draw_workflow_svg(flow.name, slow.nodes)) == compared
    for change in ({"status": "failed"}, {"cost_usd": 0.5}, {"provider": "teapot"}):
        nodes = [slow.nodes[0].model_copy(update=change), *slow.nodes[1:]]
        assert rules.sanitize(draw_workflow_svg(flow.name, nodes)) != compared


# The start page, and a notebook whose code depends on the execution of its cells.
@pytest.mark.parametrize("name", ["00_start", "12_label_a_table"])
def test_nbval_passes_a_notebook(tmp_path: Path, name: str) -> None:
    """Given the command of the guide, when nbval runs a notebook, then no cell fails."""
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    copy = tmp_path / f"{name}.ipynb"
    copy.write_bytes((ROOT / "notebooks" / copy.name).read_bytes())
    command = [
        sys.executable, "-m", "pytest", "-c", "pytest.ini", "-p", "nbval.plugin", "--nbval",
        "--nbval-sanitize-with", str(SANITIZE), "-q", str(copy),
    ]  # fmt: skip
    env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    nbval = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=300, env=env
    )
    assert nbval.returncode == 0, nbval.stdout[-3000:]


def check_notebooks(project: Path) -> tuple[int, str]:
    """Run the check of notebooks of a project; return its exit status and its output."""
    command = [sys.executable, str(project / "scripts" / "notebooks.py"), "--check"]
    check = subprocess.run(command, capture_output=True, text=True, timeout=60)
    return check.returncode, check.stdout


def test_checks_that_notebooks_are_clean(tmp_path: Path) -> None:
    """Given the committed notebooks, then the check passes; for an unclean notebook it fails."""
    status, output = check_notebooks(ROOT)
    assert status == 0, output
    unclean = json.loads(START.read_text(encoding="utf-8"))
    code = next(
        cell for cell in unclean["cells"] if cell["cell_type"] == "code" and cell["outputs"]
    )
    code["outputs"] = [
        {"output_type": "stream", "name": "stdout", "text": "<Thing object at 0x7f00>"},
        {"output_type": "error", "ename": "E", "evalue": "", "traceback": []},
    ]
    unclean["cells"][1]["source"] = ["limit: int | None = None"]
    unclean["metadata"]["papermill"] = {"output_path": "/tmp/x"}
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "scripts").mkdir()
    (tmp_path / "notebooks" / START.name).write_text(json.dumps(unclean), encoding="utf-8")
    shutil.copy(ROOT / "scripts" / "notebooks.py", tmp_path / "scripts")
    status, output = check_notebooks(tmp_path)
    assert status == 1
    for words in ("not clean", "a parameter that is not", "shows a path", "needs a kernel"):
        assert words in output
