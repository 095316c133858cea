"""Dask clusters with TLS, and hostile Dask clusters."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.batch.conftest import write_notebook
from tests.support.dask_cluster import DaskCluster, write_certificates
from tests.support.hostile_dask import (
    SCHEDULER_PRELOAD,
    WORKER_PRELOAD,
    list_readers,
    start_hostile,
)
from tests.support.network_link import RecordingLink
from tests.support.ports import free_port
from tests.support.timing import PATIENCE_S
from tests.support.worker_capability import load_work_registry
from toolkit import Client, batch
from toolkit.cli import app
from toolkit.contract.base import ErrorInfo
from toolkit.contract.errors import ErrorCode, RequestError, ServiceError
from toolkit.settings import Settings

pytest.importorskip("distributed")

STEP = {"task": "find_parent"}


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The certificates of the cluster and its clients."""
    return write_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def tls_cluster(certificates: dict[str, Path]) -> Iterator[DaskCluster]:
    """A cluster that encrypts all connections."""
    with DaskCluster(workers=1, certificates=certificates["ca_file"].parent) as cluster:
        yield cluster


def open_client(folder: Path, port: int, files: dict[str, Path] | None) -> Client:
    """Open an engine on a cluster, with certificates."""
    settings = Settings(dispatch=f"tls://127.0.0.1:{port}", dispatch_tls=files, scheduler_wait_s=0)  # type: ignore[arg-type]
    return Client.local(folder, sandbox=True, settings=settings, registry=load_work_registry())


def run_batch_command(folder: Path, address: str) -> BaseException | None:
    """Run the batch command on a cluster, and return its exception."""
    notebook, grid = write_notebook(folder / "notebook.ipynb", "x: int = 1"), folder / "grid.yaml"
    grid.write_text("x: [1]")
    words = ["batch", str(notebook), "--grid", str(grid), "--out", str(folder / "out")]
    words += ["--dask", address, "--sandbox", "--data-dir", str(folder / "data")]
    return CliRunner().invoke(app, words).exception


def set_certificates(monkeypatch: pytest.MonkeyPatch, certificates: dict[str, Path]) -> None:
    """Set the certificates by environment variables."""
    for name, path in certificates.items():
        monkeypatch.setenv(f"TOOLKIT_DISPATCH_TLS__{name.upper()}", str(path))


def test_steps_run_on_a_cluster_that_encrypts(
    tls_cluster: DaskCluster, certificates: dict[str, Path], tmp_path: Path
) -> None:
    """Given certificates, then steps run on the workers, and a proxy cannot read them."""
    with RecordingLink(tls_cluster.port) as proxy:
        with open_client(tmp_path, proxy.port, certificates) as client:
            run = client.runs.create("test.work", STEP).wait()
        assert run.output["result"] != os.getpid()
        assert len(proxy.recorded) > 1_000
        assert b"find_parent" not in proxy.recorded


def test_rejects_a_cluster_of_another_authority(tls_cluster: DaskCluster, tmp_path: Path) -> None:
    """Given workers with a certificate of another authority, then a step fails with a reason."""
    strangers = write_certificates(tmp_path / "strangers")
    with open_client(tmp_path / "data", tls_cluster.port, strangers) as client:
        error = client.runs.create("test.work", STEP).wait(check=False).record.error
    assert error is not None
    assert error.code == ErrorCode.UNAVAILABLE.name
    assert "certificate" in error.message
    assert "\n" not in error.message


def test_rejects_missing_certificates(certificates: dict[str, Path], tmp_path: Path) -> None:
    """Given no certificates, or a missing file, then no engine opens, and the error says why."""
    with pytest.raises(ServiceError, match="name their files in `dispatch_tls`"):
        open_client(tmp_path, 1, None)
    lost = {**certificates, "key_file": tmp_path / "lost"}
    with pytest.raises(ServiceError, match="correct `dispatch_tls`"):
        open_client(tmp_path, 1, lost)


@pytest.mark.usefixtures("fork_programs")
def test_rejects_certificates_for_an_address_without_tls(
    certificates: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given certificates and an address without TLS, then each error has the correct address."""
    set_certificates(monkeypatch, certificates)
    with pytest.raises(RequestError) as caught:
        Client.local(tmp_path / "data", sandbox=True, dispatch="dask://127.0.0.1:1")
    for error in (caught.value, run_batch_command(tmp_path, "127.0.0.1:1")):
        assert isinstance(error, RequestError), error
        assert error.code is ErrorCode.INVALID_REQUEST
        assert "write tls://127.0.0.1:1" in error.message
        assert "\n" not in error.message
    words = ["serve", "--port", "0", "--dispatch", "dask://127.0.0.1:1", "--sandbox"]
    served = subprocess.run(
        [sys.executable, "-m", "toolkit", *words, "--data-dir", str(tmp_path / "data")],
        capture_output=True, check=False, text=True, timeout=PATIENCE_S,
    )  # fmt: skip
    assert served.returncode == 3
    assert "write tls://127.0.0.1:1" in served.stderr


@pytest.mark.parametrize("address", ["foo", "dask://foo", "foo:99999", "http://foo:1"])
def test_a_batch_rejects_a_wrong_address(tmp_path: Path, address: str) -> None:
    """Given a text that is not the address of a scheduler, then a batch fails in one line."""
    error = run_batch_command(tmp_path, address)
    assert isinstance(error, RequestError), error
    assert error.code is ErrorCode.INVALID_REQUEST
    assert f"`{address}` is not the address of a Dask scheduler" in error.message
    assert "\n" not in error.message


def test_a_batch_runs_on_a_cluster_that_encrypts(
    tls_cluster: DaskCluster,
    certificates: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Given certificates by variables, then notebooks run on the cluster."""
    set_certificates(monkeypatch, certificates)
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


KEY = "sk-of-the-environment-0123456789"


@pytest.fixture
def environment_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """The key of a provider in the environment."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@contextmanager
def start_cluster(folder: Path, scheduler: str, worker: str) -> Iterator[str]:
    """Start a cluster with preloads whose readers leave files in a folder; yield its address."""
    folder.mkdir()
    port = str(free_port())
    address = f"127.0.0.1:{port}"
    options = (f"tcp://{address}", "--no-nanny", "--nthreads", "1")
    with (
        start_hostile(folder, "scheduler", scheduler, "--port", port),
        start_hostile(folder, "worker", worker, *options),
    ):
        yield address


def count_readers(folder: Path) -> int:
    """Count the processes that ran hostile code, after checking that none has a key."""
    readers = list_readers(folder)
    assert os.getpid() not in readers
    assert not [pid for pid, environment in readers.items() if KEY in environment]
    return len(readers)


def fail_batch(address: str, folder: Path) -> None:
    """Run a batch of notebooks that fails on a cluster."""
    with suppress(ServiceError):
        table = batch.run(
            write_notebook(folder / "one.ipynb", "x = 1", "x"),
            {"x": [1]},
            dask=address,
            sandbox=True,
            progress=False,
            out=folder / "out",
            data_dir=folder / "data",
        )
        assert set(table["status"]) == {"failed"}


def fail_step(address: str, folder: Path, **settings: float) -> ErrorInfo:
    """Run a step that fails on a cluster, and return its error."""
    with Client.local(
        folder,
        sandbox=True,
        registry=load_work_registry(),
        dispatch=f"dask://{address}",
        settings=Settings(**settings),
    ) as client:
        run = client.runs.create("test.work", {"task": "find_parent"}).wait(check=False)
        assert run.status == "failed"
        error: ErrorInfo = run.record.error
        return error


@pytest.mark.parametrize(
    ("scheduler", "worker", "settings"),
    [
        ("", WORKER_PRELOAD.format(answer="answer_hostile"), {}),
        ("", WORKER_PRELOAD.format(answer="raise_hostile"), {}),
        (SCHEDULER_PRELOAD, "", {"worker_wait_s": 0.5}),
    ],
    ids=["a worker answers", "a worker raises", "the scheduler"],
)
@pytest.mark.usefixtures("environment_key")
def test_an_answer_of_a_cluster_runs_no_code_in_a_process_with_keys(
    scheduler: str, worker: str, settings: dict[str, float], tmp_path: Path
) -> None:
    """Given a cluster whose answers run code, then work fails, and the code sees no key."""
    folder = tmp_path / "readers"
    with start_cluster(folder, scheduler, worker) as address:
        error = fail_step(address, tmp_path / "data", **settings)
        assert error.code == ErrorCode.UNAVAILABLE.name
        assert "\n" not in error.message
        readers = count_readers(folder)
        assert readers, "no process has read the hostile answer"
        if worker:
            fail_batch(address, tmp_path)
            assert count_readers(folder) >= readers


@pytest.mark.usefixtures("environment_key")
def test_fails_a_step_whose_answer_ends_its_reader(tmp_path: Path) -> None:
    """Given answers that end the process that reads them, then the step fails after retries."""
    preload = WORKER_PRELOAD.format(answer="answer_deadly")
    with start_cluster(tmp_path / "readers", "", preload) as address:
        error = fail_step(address, tmp_path / "data")
    assert "the process that talks to Dask ended 3 times" in error.message
