"""Worker processes that are tried here are the test's own, and end when their engine does."""

import pytest

from toolkit.engine.transport import worker_pool
from toolkit.workers.process import WorkerProcess


@pytest.fixture(autouse=True)
def _workers_are_nobody_elses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_pool, "WorkerProcess", WorkerProcess)
