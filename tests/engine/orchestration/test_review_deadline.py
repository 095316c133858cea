"""Checks of a task's results that do not end, or fail themselves."""

from pathlib import Path

import pytest

from tests.support import worker_functions
from tests.support.timing import PATIENCE_S
from toolkit import Client
from toolkit.engine.orchestration import planning_steps
from toolkit.planning import steps


@pytest.mark.parametrize(("check", "code"), [("spin", "PROVIDER_TIMEOUT"), ("refuse", "INTERNAL")])
def test_fails_the_task_if_its_checks_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, check: str, code: str
) -> None:
    """Given checks that do not end or raise, then the task fails, and a person's verdict counts."""
    if check == "spin":
        monkeypatch.setattr(planning_steps, "TEXT_DEADLINE_S", 2.0)
    monkeypatch.setattr(steps, "check_results", getattr(worker_functions, check))
    with Client.local(tmp_path, sandbox=True) as client:
        task = client.tasks.create("A short written summary of tea")
        task.wait(PATIENCE_S, check=False, progress=False)
        assert task.status == "failed"
        assert task.error is not None
        assert task.error.code == code
        assert "task.submit_review" in task.error.message
        task.submit_review("pass")
        assert task.status == "completed"
