"""The addresses of a batch's engine: where it listens, and how remote workers reach it."""

import socket
from pathlib import Path

import pytest

from tests.batch.conftest import PROCESSES, Write, run_batch
from tests.support.commands import run_toolkit
from tests.support.dask_cluster import DaskCluster
from toolkit.contract.errors import ErrorCode, RequestError

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
