"""Batches: what is recorded, kept, resumed and refused, and what a bad notebook does to others."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.batch.conftest import Write, run_batch, write_notebook
from tests.support.commands import run_toolkit
from tests.support.timing import PATIENCE_S, wait_until
from toolkit import batch
from toolkit.batch.progress import BatchProgress
from toolkit.batch.table import RowOutcome
from toolkit.contract.errors import ErrorCode, RequestError

SQUARE = ("x: int = 1", "from toolkit.batch import record\nrecord('square', x * x)")
# What may happen to a notebook, by a parameter.
BEGIN = """
import ctypes, os, sys, time
from toolkit.batch import record
record("began", fate)
"""
FATES = """
if fate == "raises":
    raise ValueError("no such\\nluck")
if fate == "exits":
    os._exit(3)
if fate == "crashes":
    ctypes.string_at(0)
if fate == "hangs":
    time.sleep(60)
if fate == "leaves":
    sys.exit(0)
record("ended", True)
"""
ENDS = {
    "nothing": ("completed", None),
    "raises": ("failed", "ValueError: no such luck"),
    "exits": ("failed", "The kernel died"),
    "crashes": ("failed", "The kernel died"),
    "hangs": ("failed", "Timed out after 1.5 s"),
    "leaves": ("completed", None),
}


@pytest.fixture(scope="module")
def fates(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, dict[str, Any]]]:
    """Given notebooks of every fate between two that are well, their rows and their folder."""
    folder = tmp_path_factory.mktemp("fates")
    path = write_notebook(folder / "fates.ipynb", "fate = ''\nturn = 0", BEGIN, FATES)
    ends = [fate for fate in ENDS if fate != "hangs"]
    grid = [{"fate": fate} for fate in ends] + [{"fate": "nothing", "turn": 1}]
    table = run_batch(path, grid, workers=3)
    assert list(table["fate"]) == [*ends, "nothing"]
    assert table["status"].iloc[-1] == "completed"
    rows = table.iloc[:-1].to_dict("records")
    # Alone: on a busy machine the others, too, may take longer than one waits for this.
    hung = batch.run(path, [{"fate": "hangs"}], out=folder / "hung", timeout=1.5, progress=False)
    (row,) = hung.to_dict("records")
    rows.append({**row, "path": Path("..", "hung", row["path"])})
    return folder / "out", {row["fate"]: row for row in rows}


@pytest.mark.parametrize("fate", ENDS)
def test_a_notebook_that_fails_is_kept_and_the_rest_go_on(
    fates: tuple[Path, dict[str, dict[str, Any]]], fate: str
) -> None:
    """Given a fate, then the row says what came of it, and the notebook is there to be read."""
    out, rows = fates
    row = rows[fate]
    assert (row["status"], row["error"]) == ENDS[fate]
    assert row["began"] == fate
    assert row.get("ended") == (True if fate == "nothing" else None)
    kept = nbformat.read(out / row["path"], as_version=4)
    nbformat.validate(kept)
    assert kept.metadata.toolkit_batch.error == row["error"]


def test_a_failed_cell_is_in_the_notebook(fates: tuple[Path, dict[str, dict[str, Any]]]) -> None:
    """Given a cell that raised, then its traceback is in the notebook, under papermill's banner."""
    out, rows = fates
    text = (out / rows["raises"]["path"]).read_text()
    assert "ValueError" in text
    assert "papermill-error-cell" in text


def test_what_is_recorded_is_in_the_table_and_the_files(notebook: Write, tmp_path: Path) -> None:
    """Given records, then they are columns of their own type; no file names a folder of ours."""
    path = notebook(
        "x = 1\npath = ''\nname = 'a'",
        "import numpy\nfrom toolkit.batch import record",
        "record('square', x * x)\nrecord('big', 2**60 + x)\nrecord('share', numpy.float32(0.5))\n"
        "record('parts', {'a': [1, None]})\nrecord('name', 'told')\nrecord('cost_usd', 0.25)\n"
        "record('square', x * x + 0)",
    )
    out = tmp_path / "out"
    table = batch.run(path, {"x": [2, 3], "path": "p", "name": "n"}, out=out, progress=False)
    assert list(table.columns) == [
        *("x", "parameter.path", "name", "square", "big", "share", "parts", "recorded.name"),
        *("cost_usd", "status", "error", "seconds", "path"),
    ]
    assert list(table["big"]) == [2**60 + 2, 2**60 + 3]
    assert str(table["square"].dtype) == "int64"
    assert table["parts"][0] == {"a": [1, None]}
    report = json.loads((out / "report.json").read_text())
    assert report["counts"] == {"completed": 2, "failed": 0, "not run": 0}
    assert [row["recorded"]["share"] for row in report["rows"]] == [0.5, 0.5]
    assert str(tmp_path) not in (out / "report.json").read_text()
    assert (out / "results.csv").read_text().startswith("x,parameter.path,name,square,big")
    made = (out / table["path"][0]).read_text()
    assert str(tmp_path) not in made
    metadata = json.loads(made)["metadata"]
    assert metadata["papermill"]["input_path"] == os.path.join("..", "notebook.ipynb")
    assert metadata["papermill"]["output_path"] == table["path"][0]
    assert metadata["papermill"]["parameters"] == {"x": 2, "path": "p", "name": "n"}
    assert "widgets" not in metadata


def test_a_batch_takes_up_where_it_ended(
    notebook: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a batch that ran, then the same again runs only what failed, is new or has changed."""
    monkeypatch.setenv("FAIL", "2")
    cells = ("x = 1", "import os, time\nfrom toolkit.batch import record")
    check = "record('at', time.time())\nassert str(x) != os.environ.get('FAIL')"
    out = tmp_path / "out"

    def at(path: Path, values: list[int], **more: bool) -> dict[int, float | None]:
        table = batch.run(path, {"x": values}, out=out, workers=1, progress=False, **more)
        assert set(table["status"]) <= {"completed", "failed"}
        return dict(zip(table["x"], table["at"], strict=True))

    first = at(notebook(*cells, check), [1, 2])
    monkeypatch.delenv("FAIL")
    second = at(notebook(*cells, check), [1, 2, 3])
    assert second[1] == first[1]
    assert second[2] != first[2]
    assert at(notebook(*cells, check), [3, 1])[3] == second[3]
    assert at(notebook(*cells, check), [1], resume=False)[1] != first[1]
    assert at(notebook(*cells, check + "  # changed"), [1])[1] != first[1]


def test_a_batch_of_which_some_failed(tmp_path: Path, notebook: Write) -> None:
    """Given a grid of which two rows fail, then the exit code is 1, and how many is said.

    With `--json`, stdout is one document, and stderr tells how far it is.
    """
    path = notebook("x = 1", "from toolkit.batch import record\nrecord('y', x)\nassert x < 3")
    grid = tmp_path / "grid.yaml"
    grid.write_text("x: [1, 2, 3, 4]\n")
    given = ["batch", path, "--grid", grid, "--out", tmp_path / "out"]
    shown = run_toolkit(*given, "--workers", 2)
    assert shown.exit_code == 1
    assert "2 completed, 2 failed" in shown.stdout
    assert "AssertionError" in shown.stderr
    failed = run_toolkit(*given, "--json")  # those that completed are kept
    assert failed.exit_code == 1
    rows = json.loads(failed.stdout)["rows"]
    assert [row["status"] for row in rows] == ["completed"] * 2 + ["failed"] * 2
    assert rows[2]["parameters"] == {"x": 3}
    assert "2/2, 2 failed" in failed.stderr
    grid.write_text("x: [1, 2]\n")
    again = run_toolkit(*given, "--json")  # they are kept: nothing runs
    assert again.exit_code == 0
    told = json.loads(again.stdout)
    assert told["counts"] == {"completed": 2, "failed": 0, "not run": 0}
    assert [row["recorded"] for row in told["rows"]] == [{"y": 1}, {"y": 2}]
    assert told["out"] == str(tmp_path / "out")


def test_a_refused_grid_runs_nothing(tmp_path: Path, notebook: Write) -> None:
    """Given a grid that cannot be used, then it is refused in a line, and nothing ran."""
    (tmp_path / "grid.yaml").write_text("y: [1]")
    given = [notebook(*SQUARE), "--grid", tmp_path / "grid.yaml", "--out", tmp_path / "out"]
    shown = run_toolkit("batch", *given)
    assert isinstance(shown.exception, RequestError)  # which ends a command by 3
    assert "no parameter `y`" in str(shown.exception)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda path: path.write_text("print(1)"), r"a\.ipynb is not a Jupyter notebook"),
        (Path.mkdir, "directory"),
    ],
)
def test_what_is_no_notebook(tmp_path: Path, make: Callable[[Path], object], says: str) -> None:
    """Given another file, or a folder, then it is refused by what it is."""
    make(tmp_path / "a.ipynb")
    with pytest.raises(RequestError, match=says):
        batch.run(tmp_path / "a.ipynb", {"x": [1]}, out=tmp_path / "out")


@pytest.mark.parametrize("missing", ["notebook", "grid"])
def test_a_file_that_is_missing(tmp_path: Path, notebook: Write, missing: str) -> None:
    """Given no such notebook or grid, then the command says that it is not found, and where."""
    paths = {"notebook": notebook("x = 0"), "grid": tmp_path / "grid.csv"}
    paths["grid"].write_text("x\n1\n")
    paths[missing].unlink()
    given = [paths["notebook"], "--grid", paths["grid"], "--out", tmp_path / "out"]
    shown = run_toolkit("batch", *given)
    assert isinstance(shown.exception, RequestError)
    assert shown.exception.code is ErrorCode.NOT_FOUND
    assert str(paths[missing]) in shown.exception.message
    assert "Error" not in shown.exception.message


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT is sent to a process")
@pytest.mark.usefixtures("heed_interrupts")
def test_ctrl_c_keeps_what_is_done(tmp_path: Path, notebook: Write) -> None:
    """Given a batch of which one row is done and one hangs, when Ctrl-C, then 130 and the table."""
    path = notebook("x = 0", "import os, time\nprint('pid', os.getpid())\ntime.sleep(60 * x)")
    (tmp_path / "grid.csv").write_text("x\n0\n1\n2\n3\n")
    out = tmp_path / "out"
    command = [sys.executable, "-m", "toolkit", "batch", str(path), "--workers", "2"]
    command += ["--grid", str(tmp_path / "grid.csv"), "--out", str(out)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        wait_until(lambda: list(out.glob("*.ipynb")))
        process.send_signal(signal.SIGINT)
        try:
            _, told = process.communicate(timeout=PATIENCE_S)
        finally:
            process.kill()
    assert process.returncode == 130
    assert "results.csv" in told
    assert "Traceback" not in told
    statuses = [row["status"] for row in json.loads((out / "report.json").read_text())["rows"]]
    assert statuses == ["completed", "not run", "not run", "not run"]
    assert len(list(out.glob("*.ipynb"))) == 1


def test_progress_is_lines_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """Given no terminal, then failures and the end are lines, on standard error alone."""
    with BatchProgress(2) as bar:
        bar.add(RowOutcome({}, "a.ipynb", "failed", "It broke"))
        bar.add(RowOutcome({}, "b.ipynb", "completed"))
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.splitlines() == ["a.ipynb: It broke", "2/2, 1 failed, 0 s"]


def test_progress_is_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a terminal, then one line is written anew, with the time that is left."""
    written: list[str] = []

    class Terminal:
        isatty: Callable[[], bool] = staticmethod(lambda: True)
        flush: Callable[[], None] = staticmethod(lambda: None)
        write: Callable[[str], None] = staticmethod(written.append)

    clock = iter(range(0, 1000, 100))
    monkeypatch.setattr("toolkit.batch.progress.time.monotonic", lambda: next(clock))
    with BatchProgress(2, stream=Terminal()) as bar:  # type: ignore[arg-type]
        bar.add(RowOutcome({}, "a.ipynb", "completed"))
    assert "[████████████            ] 1/2, " in written[-2]
    assert written[-2].endswith(" left")
    assert written[-1] == "\n"


def test_a_record_outside_of_a_batch_does_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """Given plain Python, when something is recorded, then nothing happens, but it is checked."""
    batch.record("score", 0.5)
    assert capsys.readouterr().out == ""
    with pytest.raises(RequestError, match="status"):
        batch.record("status", 1)
    with pytest.raises(RequestError, match="cannot be recorded"):
        batch.record("thing", object())
