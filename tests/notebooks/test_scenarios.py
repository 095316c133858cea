"""The scenario notebooks: one execution by papermill proves the cells, the outputs, the secrets."""

import importlib.util
import json
import os
import re
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
# What is run with less here than by hand; the cells whose outputs tell of it are not compared.
SMALLER: dict[str, dict[str, Any]] = {"07_batch": {"objectives": 2}}
# What tells of the sounds that the sandbox makes, which are others where `[speech]` is installed.
SPOKEN = {"04_narration_and_voice"}
START = NOTEBOOKS[0]


@pytest.fixture(scope="module")
def forked_kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The folder by which Jupyter finds a kernel that costs no imports."""
    with install_forked_kernel(tmp_path_factory.mktemp("forked")) as folder:
        yield str(folder)


@pytest.mark.parametrize("notebook", NOTEBOOKS[1:], ids=lambda path: path.stem)
def test_a_notebook_does_what_it_shows(
    notebook: Path, forked_kernel: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given keys in the environment, when a notebook is run, then its outputs are as committed.

    And no key is in any of them.
    """
    if notebook.stem in SPOKEN and importlib.util.find_spec("espeakng_loader"):
        pytest.skip("the committed notebook has the sounds of a sandbox without real speech")
    for name in VARIABLES:
        monkeypatch.setenv(name, CANARY)
    monkeypatch.setenv("JUPYTER_PATH", forked_kernel)
    monkeypatch.setenv("TOOLKIT_CPU_WORKERS", "1")  # each takes a second to start
    made = execute(notebook, tmp_path, SMALLER.get(notebook.stem, {}))
    assert find_differences(notebook, made) == []
    text = json.dumps(list_outputs(made))
    assert CANARY not in text
    assert "sk_live_" not in text


def slow_workflow(flow: WorkflowRecord, factor: float) -> WorkflowRecord:
    """A workflow whose every node took so many times as long."""
    nodes = []
    for node in flow.nodes:
        assert node.started_at is not None
        assert node.completed_at is not None
        took = (node.completed_at - node.started_at) * factor
        nodes.append(node.model_copy(update={"completed_at": node.started_at + took}))
    return flow.model_copy(update={"nodes": nodes})


@pytest.mark.parametrize("factor", [0.001, 0.1, 1, 7, 60, 700, 5000])
def test_a_picture_is_compared_without_its_times(factor: float) -> None:
    """Given a workflow that took longer or less, then its picture compares as the same.

    But not one with another state or cost.
    """
    rules, flow = Rules(), make_workflow()
    compared = rules.sanitize(draw_workflow_svg(flow.name, flow.nodes))
    slow = slow_workflow(flow, factor)
    assert rules.sanitize(draw_workflow_svg(flow.name, slow.nodes)) == compared
    for other in ({"status": "failed"}, {"cost_usd": 0.5}, {"provider": "teapot"}):
        nodes = [slow.nodes[0].model_copy(update=other), *slow.nodes[1:]]
        assert rules.sanitize(draw_workflow_svg(flow.name, nodes)) != compared


# The start page, and the notebook whose code depends on how its cells are executed.
@pytest.mark.parametrize("name", ["00_start", "12_label_a_table"])
def test_nbval_takes_them_by_hand(tmp_path: Path, name: str) -> None:
    """Given the command of the guide, when nbval runs a notebook, then no cell fails."""
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    copy = tmp_path / f"{name}.ipynb"
    copy.write_bytes((ROOT / "notebooks" / copy.name).read_bytes())
    command = [
        sys.executable, "-m", "pytest", "-c", "pytest.ini", "-p", "nbval.plugin", "--nbval",
        "--nbval-sanitize-with", str(SANITIZE), "-q", str(copy),
    ]  # fmt: skip
    done = subprocess.run(
        command,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert "failed" not in done.stdout


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_committed_outputs_read_well_without_a_kernel(notebook: Path) -> None:
    """Given a notebook as committed, then pictures are static, and tables and texts are there."""
    kinds = {kind for output in list_outputs(notebook) for kind in output.get("data", {})}
    assert kinds & {"image/png", "image/svg+xml"}
    assert "application/vnd.jupyter.widget-view+json" not in kinds
    text = json.dumps(list_outputs(notebook))
    assert "object at 0x" not in text
    assert not re.search(r"<(Figure|Axes|AxesSubplot)\b[^>]*> *$", text)


def test_notebooks_are_kept_clean(tmp_path: Path) -> None:
    """Given the notebooks as committed, then nothing is to be cleaned; and a foul one is told."""
    script = ROOT / "scripts" / "notebooks.py"
    done = subprocess.run(
        [sys.executable, str(script), "--check"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout
    foul = json.loads(START.read_text(encoding="utf-8"))
    code = next(cell for cell in foul["cells"] if cell["cell_type"] == "code" and cell["outputs"])
    code["outputs"] = [
        {"output_type": "stream", "name": "stdout", "text": "<Thing object at 0x7f00>"},
        {"output_type": "error", "ename": "E", "evalue": "", "traceback": []},
    ]
    foul["cells"][1]["source"] = ["limit: int | None = None"]
    foul["metadata"]["papermill"] = {"output_path": "/tmp/x"}
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "scripts").mkdir()
    (tmp_path / "notebooks" / START.name).write_text(json.dumps(foul), encoding="utf-8")
    (tmp_path / "scripts" / script.name).write_bytes(script.read_bytes())
    done = subprocess.run(
        [sys.executable, str(tmp_path / "scripts" / script.name), "--check"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    for said in ("not clean", "a parameter that is not", "shows a path", "needs a kernel"):
        assert said in done.stdout
