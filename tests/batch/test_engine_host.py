"""The addresses of a batch's engine: where it listens, and how workers elsewhere reach it."""

import socket
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.batch.conftest import Write
from tests.support.dask_cluster import DaskCluster
from toolkit import batch
from toolkit.cli import app
from toolkit.contract.errors import ErrorCode, RequestError

pytest.importorskip("distributed")

PROCESSES = "tests.support.batch_executors:open_processes"
ASK = """
import os
from toolkit import AsyncClient, Client, batch
from toolkit.contract.errors import RequestError
batch.record("url", os.environ["TOOLKIT_BASE_URL"])
Client().info()
try:
    Client(api_key="").account.create("stranger@example.org")
except RequestError as error:
    batch.record("refused", error.code.name)
"""


@pytest.fixture
def own_address() -> str:
    """An address of this machine that others reach."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        try:
            asking.connect(("198.51.100.7", 1))  # of UDP: nothing is sent
        except OSError:
            pytest.skip("this machine has no network")
        return str(asking.getsockname()[0])


def run_batch(path: Path, **more: Any) -> Any:
    """Run a batch of one notebook, by an engine of its own."""
    folder = path.parent
    return batch.run(
        path, {"x": [1]}, out=folder / "out", progress=False, data_dir=folder / "data",
        sandbox=True, **more,
    )  # fmt: skip


def test_workers_elsewhere_do_not_reach_loopback(
    notebook: Write, tmp_path: Path, own_address: str
) -> None:
    """Given a scheduler elsewhere, then loopback is refused, and the address to name is told."""
    path = notebook("x: int = 1", "assert x")
    (tmp_path / "grid.yaml").write_text("x: [1]")
    for scheduler in ("198.51.100.7:8786", "tls://198.51.100.7:8786", f"{own_address}:8786"):
        with pytest.raises(RequestError) as refused:
            run_batch(path, dask=scheduler)
        assert refused.value.code is ErrorCode.INVALID_REQUEST
        assert f"--host {own_address}" in str(refused.value)
        assert "\n" not in str(refused.value)
    words = ["batch", str(path), "--grid", str(tmp_path / "grid.yaml"), "--sandbox"]
    told = CliRunner().invoke(
        app,
        [*words, "--out", str(tmp_path / "out"), "--dask", "198.51.100.7:1", "--host", "127.0.0.1"],
    )
    assert isinstance(told.exception, RequestError)
    assert f"--host {own_address}" in str(told.exception)


def test_all_networks_are_listened_on_and_one_address_is_told(
    cluster: DaskCluster, notebook: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    """Given 0.0.0.0, then workers are told an address that is one, and a line says who can ask."""
    (row,) = run_batch(notebook("x: int = 1", ASK), dask=cluster.address, host="0.0.0.0").to_dict(
        "records"
    )
    assert row["status"] == "completed", row
    assert row["url"].startswith("http://127.0.0.1:")
    assert row["refused"] == "FORBIDDEN", "nobody else opens an account"
    told = capsys.readouterr().err
    assert "listens on 0.0.0.0:" in told
    assert row["url"] in told


def test_an_executor_does_not_tell_where_its_workers_are(notebook: Write) -> None:
    """Given 0.0.0.0 and an executor, then an address is asked for, as none can be found."""
    with pytest.raises(RequestError, match="name this machine's own by --host"):
        run_batch(notebook("x: int = 1"), executor=PROCESSES, host="0.0.0.0")


def test_an_address_that_is_named_is_told_and_listened_on(
    cluster: DaskCluster, notebook: Write, own_address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Given an address of this machine, then workers ask it there, and a line says so."""
    (row,) = run_batch(notebook("x: int = 1", ASK), dask=cluster.address, host=own_address).to_dict(
        "records"
    )
    assert row["url"].startswith(f"http://{own_address}:")
    assert f"listens on {own_address}:" in capsys.readouterr().err
