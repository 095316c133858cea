"""The addresses of a batch's engine: where it listens, and how workers elsewhere reach it."""

import socket
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.batch.conftest import PROCESSES, Write, run_batch
from tests.support.dask_cluster import DaskCluster
from toolkit.cli import app
from toolkit.contract.errors import ErrorCode, RequestError

pytest.importorskip("distributed")

ONE = {"x": [1]}
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


def test_workers_elsewhere_do_not_reach_loopback(
    notebook: Write, tmp_path: Path, own_address: str
) -> None:
    """Given a scheduler elsewhere, then loopback is refused, and the address to name is told."""
    path = notebook("x: int = 1", "assert x")
    (tmp_path / "grid.yaml").write_text("x: [1]")
    for scheduler in ("198.51.100.7:8786", "tls://198.51.100.7:8786", f"{own_address}:8786"):
        with pytest.raises(RequestError) as refused:
            run_batch(path, ONE, dask=scheduler)
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


@pytest.mark.parametrize("listens", ["all networks", "an address"])
def test_an_address_is_listened_on_and_told(
    cluster: DaskCluster,
    notebook: Write,
    own_address: str,
    capsys: pytest.CaptureFixture[str],
    listens: str,
) -> None:
    """Given 0.0.0.0 or an address, then workers are told one, and a line says who can ask."""
    host = own_address if listens == "an address" else "0.0.0.0"
    table = run_batch(notebook("x: int = 1", ASK), ONE, dask=cluster.address, host=host)
    (row,) = table.to_dict("records")
    assert row["status"] == "completed", row
    told = own_address if listens == "an address" else "127.0.0.1"
    assert row["url"].startswith(f"http://{told}:")
    assert row["refused"] == "FORBIDDEN", "nobody else opens an account"
    said = capsys.readouterr().err
    assert f"listens on {host}:" in said
    assert row["url"] in said


def test_an_executor_does_not_tell_where_its_workers_are(notebook: Write) -> None:
    """Given 0.0.0.0 and an executor, then an address is asked for, as none can be found."""
    with pytest.raises(RequestError, match="give this machine's own address by --host"):
        run_batch(notebook("x: int = 1"), ONE, executor=PROCESSES, host="0.0.0.0")
