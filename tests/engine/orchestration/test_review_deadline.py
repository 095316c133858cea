"""The deadline of the checks that a task's results have to pass."""

from pathlib import Path

import pytest

from toolkit import Client
from toolkit.engine.orchestration import planning_steps


def test_checks_that_take_too_long_fail_the_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given results that take too long to check, then the task fails, and a person decides."""
    monkeypatch.setattr(planning_steps, "TEXT_DEADLINE_S", 1e-6)
    with Client.local(tmp_path, sandbox=True) as client:
        task = client.tasks.create("A short written summary of tea")
        task.wait(30, check=False, progress=False)
        assert task.status == "failed"
        assert task.error is not None
        assert task.error.code == "PROVIDER_TIMEOUT"
        assert "task.review" in task.error.message
        task.review("pass")
        assert task.status == "completed"
