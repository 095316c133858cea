"""A Dask cluster whose answers run code as they are unpickled: never in a process with keys."""

import os
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

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


@pytest.fixture
def start_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> "Callable[[ExitStack, str, str], tuple[str, Path]]":
    """Start a cluster with these preloads; return its address and the folder of the readers."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)

    def start(stack: ExitStack, scheduler: str, worker: str) -> tuple[str, Path]:
        folder, port = tmp_path / "readers", free_port()
        folder.mkdir()
        stack.enter_context(start_hostile(folder, "scheduler", scheduler, "--port", str(port)))
        address = f"tcp://127.0.0.1:{port}"
        stack.enter_context(
            start_hostile(folder, "worker", worker, address, "--no-nanny", "--nthreads", "1")
        )
        return f"127.0.0.1:{port}", folder

    return start


def check_readers(folder: Path) -> int:
    """Check that hostile code ran in no process with a key; return in how many it ran."""
    readers = list_readers(folder)
    assert os.getpid() not in readers
    assert not [pid for pid, environment in readers.items() if KEY in environment]
    return len(readers)


def fail_batch(address: str, folder: Path) -> None:
    """Have a batch of notebooks fail on a cluster."""
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
    """Have a step fail on a cluster; its error."""
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
def test_an_answer_of_a_cluster_runs_no_code_beside_a_key(
    scheduler: str, worker: str, settings: dict[str, float], start_cluster: Any, tmp_path: Path
) -> None:
    """Given a cluster whose answers run code, then steps and notebooks fail; it runs elsewhere."""
    with ExitStack() as stack:
        address, folder = start_cluster(stack, scheduler, worker)
        error = fail_step(address, tmp_path / "data", **settings)
        assert error.code == ErrorCode.UNAVAILABLE.name
        assert "\n" not in error.message
        by_step = check_readers(folder)
        assert by_step, "the hostile answer has reached nobody"
        if worker:
            fail_batch(address, tmp_path)
            assert check_readers(folder) >= by_step


def test_an_answer_that_ends_its_reader_fails_the_step(start_cluster: Any, tmp_path: Path) -> None:
    """Given a worker whose answers end the process that reads them, then the step fails at last."""
    with ExitStack() as stack:
        address, _ = start_cluster(stack, "", WORKER_PRELOAD.format(answer="answer_deadly"))
        error = fail_step(address, tmp_path / "data")
    assert "the process that talks to Dask ended 3 times" in error.message
