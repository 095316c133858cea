"""Checks of a task's results that never end, or fail themselves."""

from pathlib import Path

import pytest

from tests.support import worker_functions
from tests.support.timing import PATIENCE_S
from toolkit import Client
from toolkit.engine.orchestration import planning_steps
from toolkit.planning import steps


def test_checks_that_take_too_long_fail_the_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given results that take too long to check, then the task fails, and a person decides."""
    monkeypatch.setattr(planning_steps, "TEXT_DEADLINE_S", 0.05)
    monkeypatch.setattr(steps, "check_results", worker_functions.spin)
    with Client.local(tmp_path, sandbox=True) as client:
        check_that_a_person_decides(client, "PROVIDER_TIMEOUT")


def test_checks_that_fail_themselves_fail_the_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a defect in the checks, then the task fails once, and a person decides."""
    monkeypatch.setattr(steps, "check_results", worker_functions.refuse)
    with Client.local(tmp_path, sandbox=True) as client:
        check_that_a_person_decides(client, "INTERNAL")


def check_that_a_person_decides(client: Client, code: str) -> None:
    """Check that a task fails with a code, and that a person's verdict completes it."""
    task = client.tasks.create("A short written summary of tea")
    task.wait(PATIENCE_S, check=False, progress=False)
    assert task.status == "failed"
    assert task.error is not None
    assert task.error.code == code
    assert "task.submit_review" in task.error.message
    task.submit_review("pass")
    assert task.status == "completed"
