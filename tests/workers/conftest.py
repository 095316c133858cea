"""Fixtures of the tests of worker processes: an engine starts and ends its own workers."""

import pytest

from toolkit.engine.transport import worker_pool
from toolkit.workers.process import WorkerProcess


@pytest.fixture(autouse=True)
def _workers_are_nobody_elses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_pool, "WorkerProcess", WorkerProcess)
