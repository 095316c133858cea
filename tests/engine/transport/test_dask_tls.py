"""A Dask cluster whose workers encrypt: certificates by settings, and those of strangers."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.batch.conftest import write_notebook
from tests.support.dask_cluster import DaskCluster, write_certificates
from tests.support.recording_proxy import RecordingProxy
from tests.support.timing import PATIENCE_S
from tests.support.worker_capability import load_work_registry
from toolkit import Client, batch
from toolkit.cli import app
from toolkit.contract.errors import ErrorCode, RequestError, ServiceError
from toolkit.settings import Settings

pytest.importorskip("distributed")
ASKED = {"task": "find_parent"}


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The certificates of the cluster and its clients."""
    return write_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def tls_cluster(certificates: dict[str, Path]) -> Iterator[DaskCluster]:
    """A cluster whose connections are all encrypted."""
    with DaskCluster(workers=1, certificates=certificates["ca_file"].parent) as cluster:
        yield cluster


def open_client(folder: Path, port: int, files: dict[str, Path] | None) -> Client:
    """Open an engine on the cluster with certificates of its own."""
    settings = Settings(dispatch=f"tls://127.0.0.1:{port}", dispatch_tls=files, scheduler_wait_s=0)  # type: ignore[arg-type]
    return Client.local(folder, sandbox=True, settings=settings, registry=load_work_registry())


def test_steps_run_on_a_cluster_that_encrypts(
    tls_cluster: DaskCluster, certificates: dict[str, Path], tmp_path: Path
) -> None:
    """Given certificates, then steps run on the cluster, and nobody between reads them."""
    with RecordingProxy(tls_cluster.port) as proxy:
        with open_client(tmp_path, proxy.port, certificates) as client:
            run = client.runs.create("test.work", ASKED).wait()
        assert run.output["result"] != os.getpid()
        assert len(proxy.recorded) > 1_000
        assert b"find_parent" not in proxy.recorded


def test_a_cluster_of_another_authority_is_refused(
    tls_cluster: DaskCluster, tmp_path: Path
) -> None:
    """Given a scheduler that another authority vouches for, then a step fails, and says so."""
    others = write_certificates(tmp_path / "others")
    with open_client(tmp_path / "data", tls_cluster.port, others) as client:
        run = client.runs.create("test.work", ASKED)
        error = run.wait(check=False).record.error
    assert error is not None
    assert error.code == ErrorCode.UNAVAILABLE.name
    assert "certificate" in error.message
    assert "\n" not in error.message


def test_certificates_are_looked_for_when_it_is_opened(
    certificates: dict[str, Path], tmp_path: Path
) -> None:
    """Given none, or a file that is not there, then no engine is opened, and a line says why."""
    with pytest.raises(ServiceError, match="name their files in `dispatch_tls`"):
        open_client(tmp_path, 1, None)
    lost = {**certificates, "key_file": tmp_path / "lost"}
    with pytest.raises(ServiceError, match="correct `dispatch_tls`"):
        open_client(tmp_path, 1, lost)


@pytest.mark.usefixtures("fork_programs")
def test_certificates_are_for_an_address_that_encrypts(
    certificates: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given certificates and an address that encrypts nothing, then a line says how to write it."""
    for name, path in certificates.items():
        monkeypatch.setenv(f"TOOLKIT_DISPATCH_TLS__{name.upper()}", str(path))
    with pytest.raises(RequestError) as refused:
        Client.local(tmp_path / "data", sandbox=True, dispatch="dask://127.0.0.1:1")
    write_notebook(tmp_path / "notebook.ipynb", "x: int = 1")
    (tmp_path / "grid.yaml").write_text("x: [1]")
    words = ["batch", str(tmp_path / "notebook.ipynb"), "--grid", str(tmp_path / "grid.yaml")]
    words += ["--out", str(tmp_path / "out"), "--dask", "127.0.0.1:1"]
    where = ["--sandbox", "--data-dir", str(tmp_path / "data")]
    batched = CliRunner().invoke(app, [*words, *where]).exception
    for error in (refused.value, batched):
        assert isinstance(error, RequestError), error
        assert error.code is ErrorCode.INVALID_REQUEST
        assert "write tls://127.0.0.1:1" in error.message
        assert "\n" not in error.message
    words = ["serve", "--port", "0", "--dispatch", "dask://127.0.0.1:1"]
    served = subprocess.run(
        [sys.executable, "-m", "toolkit", *words, *where],
        capture_output=True, check=False, text=True, timeout=PATIENCE_S,
    )  # fmt: skip
    assert served.returncode == 3
    assert "write tls://127.0.0.1:1" in served.stderr


def test_a_batch_needs_a_port(tmp_path: Path) -> None:
    """Given what is no address of a scheduler, then a batch says so, and how one is written."""
    write_notebook(tmp_path / "notebook.ipynb", "x: int = 1")
    (tmp_path / "grid.yaml").write_text("x: [1]")
    words = ["batch", str(tmp_path / "notebook.ipynb"), "--grid", str(tmp_path / "grid.yaml")]
    words += ["--out", str(tmp_path / "out"), "--data-dir", str(tmp_path / "data"), "--sandbox"]
    for wrong in ("foo", "dask://foo", "tcp://foo", "foo:99999", "http://foo:1", "tls://foo:x"):
        error = CliRunner().invoke(app, [*words, "--dask", wrong]).exception
        assert isinstance(error, RequestError), error
        assert error.code is ErrorCode.INVALID_REQUEST
        assert f"`{wrong}` is not the address of a Dask scheduler" in error.message
        assert "\n" not in error.message


def test_a_batch_runs_on_a_cluster_that_encrypts(
    tls_cluster: DaskCluster,
    certificates: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Given certificates by variables, then notebooks run on the cluster."""
    for name, path in certificates.items():
        monkeypatch.setenv(f"TOOLKIT_DISPATCH_TLS__{name.upper()}", str(path))
    table = batch.run(
        write_notebook(tmp_path / "notebook.ipynb", "x: int = 1", "assert x == 2"),
        {"x": [2]},
        out=tmp_path / "out",
        progress=False,
        dask=f"tls://127.0.0.1:{tls_cluster.port}",
        sandbox=True,
        data_dir=tmp_path / "data",
    )
    assert list(table["status"]) == ["completed"]
