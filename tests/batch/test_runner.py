"""Batches: records, files, resuming, rejected input, and notebooks that fail."""

import io
import json
import os
import signal
import subprocess
import sys
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

BEGIN = """
import ctypes, os, sys, time
from toolkit.batch import record
record("began", fate)
"""
# A notebook fails in one of several ways, which a parameter names.
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
    """The folder and the rows of notebooks with each fate, between two that complete."""
    folder = tmp_path_factory.mktemp("fates")
    path = write_notebook(folder / "fates.ipynb", "fate = ''\nturn = 0", BEGIN, FATES)
    names = [name for name in ENDS if name != "hangs"]
    grid = [{"fate": name} for name in names] + [{"fate": "nothing", "turn": 1}]
    table = run_batch(path, grid, workers=3)
    assert list(table["fate"]) == [*names, "nothing"]
    assert table["status"].iloc[-1] == "completed"
    rows = table.iloc[:-1].to_dict("records")
    # It runs alone, because other notebooks may also exceed this timeout on a busy machine.
    table = batch.run(path, [{"fate": "hangs"}], out=folder / "hung", timeout=1.5, progress=False)
    (row,) = table.to_dict("records")
    rows.append({**row, "path": Path("..", "hung", row["path"])})
    return folder / "out", {row["fate"]: row for row in rows}


@pytest.mark.parametrize("fate", ENDS)
def test_keeps_a_failed_notebook_and_runs_the_others(
    fates: tuple[Path, dict[str, dict[str, Any]]], fate: str
) -> None:
    """Given a fate, then the row has status and error, and the notebook is saved."""
    out, rows = fates
    row = rows[fate]
    assert (row["status"], row["error"]) == ENDS[fate]
    assert row["began"] == fate
    assert row.get("ended") == (True if fate == "nothing" else None)
    saved = nbformat.read(out / row["path"], as_version=4)
    nbformat.validate(saved)
    assert saved.metadata.toolkit_batch.error == row["error"]
    if fate == "raises":
        assert "papermill-error-cell" in (out / row["path"]).read_text()


def test_writes_records_to_the_table_and_the_files(notebook: Write, tmp_path: Path) -> None:
    """Given records, then they are columns with their own type, and no file names our folders."""
    path = notebook(
        "x = 1\npath = ''\nname = 'a'",
        "import numpy\nfrom toolkit.batch import record",
        "record('square', x * x)\nrecord('big', 2**60 + x)\nrecord('share', numpy.float32(0.5))\n"
        "record('parts', {'a': [1, None]})\nrecord('name', 'label')\nrecord('cost_usd', 0.25)\n"
        "record('square', x * x + 0)",
    )
    table = run_batch(path, {"x": [2, 3], "path": "p", "name": "n"})
    assert list(table.columns) == [
        *("x", "parameter.path", "name", "square", "big", "share", "parts", "recorded.name"),
        *("cost_usd", "status", "error", "seconds", "path"),
    ]
    assert list(table["big"]) == [2**60 + 2, 2**60 + 3]
    assert str(table["square"].dtype) == "int64"
    assert table["parts"][0] == {"a": [1, None]}
    out = tmp_path / "out"
    report = json.loads((out / "report.json").read_text())
    assert report["counts"] == {"completed": 2, "failed": 0, "not run": 0}
    assert [row["recorded"]["share"] for row in report["rows"]] == [0.5, 0.5]
    assert str(tmp_path) not in (out / "report.json").read_text()
    assert (out / "results.csv").read_text().startswith("x,parameter.path,name,square,big")
    text = (out / table["path"][0]).read_text()
    assert str(tmp_path) not in text
    metadata = json.loads(text)["metadata"]
    assert metadata["papermill"]["input_path"] == os.path.join("..", "notebook.ipynb")
    assert metadata["papermill"]["output_path"] == table["path"][0]
    assert metadata["papermill"]["parameters"] == {"x": 2, "path": "p", "name": "n"}
    assert "widgets" not in metadata


def test_resumes_only_rows_that_failed_or_changed(
    notebook: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a batch that ran, when it runs again, then only failed, new or changed rows run."""
    monkeypatch.setenv("FAIL", "2")
    code = "record('at', time.time())\nassert str(x) != os.environ.get('FAIL')"

    def run(values: list[int], code: str = code, **options: bool) -> dict[int, float | None]:
        path = notebook("x = 1", "import os, time\nfrom toolkit.batch import record", code)
        table = run_batch(path, {"x": values}, workers=1, **options)
        assert set(table["status"]) <= {"completed", "failed"}
        return dict(zip(table["x"], table["at"], strict=True))

    first = run([1, 2])
    monkeypatch.delenv("FAIL")
    second = run([1, 2, 3])
    assert second[1] == first[1]
    assert second[2] != first[2]
    assert run([3, 1])[3] == second[3]
    assert run([1], resume=False)[1] != first[1]
    assert run([1], code + "  # changed")[1] != first[1]


def test_reports_failed_rows_by_exit_code_and_json(tmp_path: Path, notebook: Write) -> None:
    """Given a grid with two failing rows, then the exit code is 1, and the output counts them.

    With `--json`, stdout is one document, and stderr shows the progress.
    """
    path = notebook("x = 1", "from toolkit.batch import record\nrecord('y', x)\nassert x < 3")
    grid = tmp_path / "grid.yaml"
    grid.write_text("x: [1, 2, 3, 4]\n")
    command = ["batch", path, "--grid", grid, "--out", tmp_path / "out"]
    result = run_toolkit(*command, "--workers", 2)
    assert result.exit_code == 1
    assert "2 completed, 2 failed" in result.stdout
    assert "AssertionError" in result.stderr
    result = run_toolkit(*command, "--json")  # completed rows do not run again
    assert result.exit_code == 1
    rows = json.loads(result.stdout)["rows"]
    assert [row["status"] for row in rows] == ["completed"] * 2 + ["failed"] * 2
    assert rows[2]["parameters"] == {"x": 3}
    assert "2/2, 2 failed" in result.stderr
    grid.write_text("x: [1, 2]\n")
    result = run_toolkit(*command, "--json")
    assert result.exit_code == 0
    report = json.loads(result.stdout)
    assert report["counts"] == {"completed": 2, "failed": 0, "not run": 0}
    assert [row["recorded"] for row in report["rows"]] == [{"y": 1}, {"y": 2}]
    assert report["out"] == str(tmp_path / "out")


@pytest.mark.parametrize(
    ("name", "text", "code", "message"),
    [
        ("notebook.ipynb", None, ErrorCode.NOT_FOUND, "notebook.ipynb"),
        ("notebook.ipynb", "print(1)", ErrorCode.INVALID_REQUEST, "is not a Jupyter notebook"),
        ("grid.csv", None, ErrorCode.NOT_FOUND, "grid.csv"),
        ("grid.csv", "y\n1\n", ErrorCode.INVALID_REQUEST, "no parameter `y`"),
    ],
)
def test_rejects_an_unusable_file(
    tmp_path: Path, notebook: Write, name: str, text: str | None, code: ErrorCode, message: str
) -> None:
    """Given a missing or unusable file, then the command says so, and nothing runs."""
    notebook("x = 0")
    (tmp_path / "grid.csv").write_text("x\n1\n")
    if text is None:
        (tmp_path / name).unlink()
    else:
        (tmp_path / name).write_text(text)
    options = ["--grid", tmp_path / "grid.csv", "--out", tmp_path / "out"]
    error = run_toolkit("batch", tmp_path / "notebook.ipynb", *options).exception
    assert isinstance(error, RequestError)
    assert error.code is code
    assert message in error.message
    assert "Error" not in error.message
    assert not (tmp_path / "out").exists()


def test_rejects_a_folder_as_notebook(tmp_path: Path) -> None:
    """Given a folder instead of a notebook, then it is rejected."""
    (tmp_path / "a.ipynb").mkdir()
    with pytest.raises(RequestError, match="directory"):
        batch.run(tmp_path / "a.ipynb", {"x": [1]}, out=tmp_path / "out")


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT is sent to a process")
@pytest.mark.usefixtures("heed_interrupts")
def test_ctrl_c_keeps_completed_rows(tmp_path: Path, notebook: Write) -> None:
    """Given a completed row and a hanging row, when Ctrl-C, then exit code 130 and a table."""
    path = notebook("x = 0", "import os, time\nprint('pid', os.getpid())\ntime.sleep(60 * x)")
    (tmp_path / "grid.csv").write_text("x\n0\n1\n2\n3\n")
    out = tmp_path / "out"
    command = [sys.executable, "-m", "toolkit", "batch", str(path), "--workers", "2"]
    command += ["--grid", str(tmp_path / "grid.csv"), "--out", str(out)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        wait_until(lambda: list(out.glob("*.ipynb")))
        process.send_signal(signal.SIGINT)
        try:
            _, stderr = process.communicate(timeout=PATIENCE_S)
        finally:
            process.kill()
    assert process.returncode == 130
    assert "results.csv" in stderr
    assert "Traceback" not in stderr
    statuses = [row["status"] for row in json.loads((out / "report.json").read_text())["rows"]]
    assert statuses == ["completed", "not run", "not run", "not run"]
    assert len(list(out.glob("*.ipynb"))) == 1


def test_shows_progress_as_lines_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """Given no terminal, then failures and the end are lines on standard error."""
    with BatchProgress(2) as progress:
        progress.add(RowOutcome({}, "a.ipynb", "failed", "It broke"))
        progress.add(RowOutcome({}, "b.ipynb", "completed"))
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.splitlines() == ["a.ipynb: It broke", "2/2, 1 failed, 0 s"]


def test_shows_progress_as_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a terminal, then one line is rewritten, with the remaining time."""
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: True)
    clock = iter(range(0, 1000, 100))
    monkeypatch.setattr("toolkit.batch.progress.time.monotonic", lambda: next(clock))
    with BatchProgress(2, stream=stream) as progress:
        progress.add(RowOutcome({}, "a.ipynb", "completed"))
    assert "[████████████            ] 1/2, " in stream.getvalue()
    assert stream.getvalue().endswith(" left\n")


def test_ignores_a_record_outside_of_a_batch(capsys: pytest.CaptureFixture[str]) -> None:
    """Given plain Python, when a value is recorded, then it is validated and ignored."""
    batch.record("score", 0.5)
    assert capsys.readouterr().out == ""
    with pytest.raises(RequestError, match="status"):
        batch.record("status", 1)
    with pytest.raises(RequestError, match="cannot be recorded"):
        batch.record("thing", object())
