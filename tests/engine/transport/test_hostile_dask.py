"""A Dask cluster whose answers run code when unpickled: never in a process with keys."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.batch.conftest import write_notebook
from tests.support.hostile_dask import (
    SCHEDULER_PRELOAD,
    WORKER_PRELOAD,
    list_readers,
    start_hostile,
)
from tests.support.ports import free_port
from tests.support.worker_capability import load_work_registry
from toolkit import Client, batch
from toolkit.contract.base import ErrorInfo
from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.settings import Settings

pytest.importorskip("distributed")
KEY = "sk-of-the-environment-0123456789"


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_fails_a_step_whose_answer_ends_its_reader(tmp_path: Path) -> None:
    """Given answers that end the process that reads them, then the step fails after retries."""
    preload = WORKER_PRELOAD.format(answer="answer_deadly")
    with start_cluster(tmp_path / "readers", "", preload) as address:
        error = fail_step(address, tmp_path / "data")
    assert "the process that talks to Dask ended 3 times" in error.message
