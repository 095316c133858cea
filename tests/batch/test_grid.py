"""Grids of a batch, the address of its engine, and its documented examples."""

import re
import socket
from pathlib import Path
from typing import Any

import pytest

from tests.batch.conftest import PROCESSES, Write, run_batch
from tests.support.commands import run_toolkit
from tests.support.dask_cluster import DaskCluster
from toolkit.batch.grid import load_rows, read_defaults
from toolkit.batch.kernel.sources import RENEW_AFTER
from toolkit.cli.errors import EXIT_CODES
from toolkit.contract.errors import ErrorCode, RequestError

DEFAULTS = {"alpha": 0.1, "steps": 10, "city": "Rome", "tags": [], "deep": None}


def cell(source: str, *tags: str) -> dict[str, Any]:
    """Build a code cell."""
    return {"cell_type": "code", "source": source, "metadata": {"tags": list(tags)}}


def test_reads_parameters_of_the_tagged_cell() -> None:
    """Given assignments of every form, then their names and plain defaults are read."""
    cells = [
        cell("hidden = 1"),
        cell("a = 1\nb: str | None = None  # help\nc: float\nd = open\n%time\n", "parameters"),
        cell("not python at all", "parameters"),
    ]
    assert read_defaults({"cells": cells}) == {"a": 1, "b": None, "c": None, "d": None}


def test_reads_types_of_a_csv(tmp_path: Path) -> None:
    """Given a CSV, then numbers are numbers, text stays text, and empty cells are left out."""
    path = tmp_path / "grid.csv"
    path.write_text(
        '\ufeffalpha,steps,city,tags,deep\n0.5,3,007,"[1, 2]",True\n1e3,,Bonn,,plain words\n'
    )
    assert load_rows(path, DEFAULTS) == [
        {"alpha": 0.5, "steps": 3, "city": "007", "tags": [1, 2], "deep": True},
        {"alpha": 1000.0, "city": "Bonn", "deep": "plain words"},
    ]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("alpha: [1, 2.5]\ncity: [Rome, Bonn]\nsteps: 7\n",
         [{"alpha": 1, "city": "Rome", "steps": 7}, {"alpha": 1, "city": "Bonn", "steps": 7},
          {"alpha": 2.5, "city": "Rome", "steps": 7}, {"alpha": 2.5, "city": "Bonn", "steps": 7}]),
        ("- {alpha: 1, tags: [a, b]}\n- {steps: 2}\n",
         [{"alpha": 1, "tags": ["a", "b"]}, {"steps": 2}]),
    ],
    ids=["mapping", "list"],
)  # fmt: skip
def test_combines_a_mapping_but_not_a_list(
    tmp_path: Path, text: str, rows: list[dict[str, object]]
) -> None:
    """Given YAML, then a mapping of lists is their product, and a list holds the rows."""
    path = tmp_path / "grid.yaml"
    path.write_text(text)
    assert load_rows(path, DEFAULTS) == rows


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("grid.csv", "alpha,beta\n1,2\n", "no parameter `beta`; it has alpha, steps"),
        ("grid.csv", "alpha,steps\n1\n", "Row 1 of the grid"),
        ("grid.csv", "alpha\n", "no rows"),
        ("grid.yaml", "alpha: [1", "not YAML"),
        ("grid.yaml", "7", "a list of rows"),
        ("grid.yaml", "{}", "no rows"),
        ("grid.json", "{}", "use .csv or .yaml"),
        ("grid.yaml", "- {alpha: 1}\n- {alpha: 2}\n- {alpha: 1}", "Rows 1 and 3 are equal"),
        ("grid.yaml", "deep: [{inner: 2026-01-01}]", "is of type date: write it as text"),
        ("grid.yaml", "deep: [[{k: sk-abcdefghijklmnop}]]", "`rows.1.deep` looks like a key"),
    ],
)
def test_rejects_an_unusable_grid(tmp_path: Path, name: str, text: str, message: str) -> None:
    """Given an unusable grid, then the error says where and why, without the value."""
    (tmp_path / name).write_text(text)
    with pytest.raises(RequestError) as caught:
        load_rows(tmp_path / name, DEFAULTS)
    assert message in caught.value.message
    assert "sk-abc" not in str(caught.value)


def test_accepts_a_long_path_of_an_existing_folder(tmp_path: Path) -> None:
    """Given a long path, then it is accepted if its folder exists, and looks like a key if not."""
    folder = tmp_path / ("long" * 12)
    folder.mkdir()
    assert load_rows([{"city": str(folder / "file")}], DEFAULTS)
    with pytest.raises(RequestError, match="looks like a key"):
        load_rows([{"city": "x" * 30 + "/" + "y" * 30}], DEFAULTS)


pytest.importorskip("distributed")

GRID = {"x": [1]}

ASK = """
import os
from toolkit import Client, batch
from toolkit.contract.errors import RequestError
batch.record("url", os.environ["TOOLKIT_BASE_URL"])
Client().info()
try:
    Client(api_key="").account.create("stranger@example.org")
except RequestError as error:
    batch.record("code", error.code.name)
"""


@pytest.fixture
def own_address() -> str:
    """An address of this machine that other machines can reach."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        try:
            client.connect(("198.51.100.7", 1))  # UDP sends nothing here
        except OSError:
            pytest.skip("this machine has no network")
        return str(client.getsockname()[0])


def test_rejects_loopback_for_remote_workers(
    notebook: Write, tmp_path: Path, own_address: str
) -> None:
    """Given a remote scheduler, then the error names an address that its workers can reach."""
    path = notebook("x: int = 1", "assert x")
    errors: list[BaseException | None] = []
    for scheduler in ("198.51.100.7:8786", "tls://198.51.100.7:8786", f"{own_address}:8786"):
        with pytest.raises(RequestError) as caught:
            run_batch(path, GRID, dask=scheduler)
        errors.append(caught.value)
    (tmp_path / "grid.yaml").write_text("x: [1]")
    words = ["--sandbox", "--out", tmp_path / "out", "--dask", "198.51.100.7:1"]
    words += ["--grid", tmp_path / "grid.yaml", "--host", "127.0.0.1"]
    errors.append(run_toolkit("batch", path, *words).exception)
    for error in errors:
        assert isinstance(error, RequestError)
        assert error.code is ErrorCode.INVALID_REQUEST
        assert f"--host {own_address}" in str(error)
        assert "\n" not in str(error)


@pytest.mark.parametrize("listens", ["all networks", "an address"])
def test_tells_workers_where_the_engine_listens(
    cluster: DaskCluster,
    notebook: Write,
    own_address: str,
    capsys: pytest.CaptureFixture[str],
    listens: str,
) -> None:
    """Given 0.0.0.0 or an address, then workers get a URL, and the log names both."""
    host, reachable = (
        (own_address, own_address) if listens == "an address" else ("0.0.0.0", "127.0.0.1")
    )
    table = run_batch(notebook("x: int = 1", ASK), GRID, dask=cluster.address, host=host)
    (row,) = table.to_dict("records")
    assert row["status"] == "completed", row
    assert row["url"].startswith(f"http://{reachable}:")
    assert row["code"] == "FORBIDDEN", "nobody else opens an account"
    log = capsys.readouterr().err
    assert f"listens on {host}:" in log
    assert row["url"] in log


def test_requires_an_address_for_an_executor(notebook: Write) -> None:
    """Given 0.0.0.0 and an executor, whose workers are unknown, then an address is required."""
    with pytest.raises(RequestError, match="give this machine's own address by --host"):
        run_batch(notebook("x: int = 1"), GRID, executor=PROCESSES, host="0.0.0.0")


DOCS = (Path(__file__).parents[2] / "docs" / "batch.md").read_text(encoding="utf-8")


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # papermill leaves its loop open
@pytest.mark.usefixtures("papermill_engine")
def test_runs_the_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given both Python blocks, when they run, then the table and the notebook exist."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in re.findall(r"^```python\n(.*?)^```", DOCS, re.M | re.S):
        exec(compile(block, "docs/batch.md", "exec"), names)
    assert list(names["table"]["grown"]) == [1.22, 1.49, 1.63, 2.65]  # type: ignore[index]
    assert (tmp_path / "grown.ipynb").is_file()


def test_documents_existing_exit_codes() -> None:
    """Given the documented exit codes, then the command line has each of them."""
    codes = {int(code) for code in re.findall(r"^\| (\d+) \|", DOCS, re.M)}
    assert codes == {0, 1, 2, 3, 130}
    assert codes <= set(EXIT_CODES)
    assert f"after {RENEW_AFTER} notebooks" in DOCS
