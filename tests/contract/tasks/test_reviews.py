"""A person's verdict on a task: passes, fails, or runs part of it again."""

import time

import pytest

from tests.support.timing import PATIENCE_S
from toolkit import Client, RequestError

pytestmark = [pytest.mark.embedded, pytest.mark.sqlite("other tests have its statements")]

OBJECTIVE = "A short written summary of tea"


@pytest.fixture
def task_id(client: Client) -> str:
    """A task that was done and passed."""
    return client.tasks.create(OBJECTIVE).wait().id


def test_a_person_fails_what_passed_and_passes_it_again(client: Client, task_id: str) -> None:
    """Given a task that passed, then a person's verdict stands, and both are on record."""
    first = client.tasks.get(task_id)
    failed = client.tasks.submit_review(task_id, "fail", issues=["It is about coffee."], score=0.2)
    assert (failed.status, failed.record.error.code) == ("failed", "REVIEW_FAILED")
    assert failed.final_artifact_id == ""
    assert (failed.review.decision, failed.review.record.reviewer) == ("fail", "person")
    assert failed.review.issues == ["It is about coffee."]
    passed = client.tasks.submit_review(task_id, "pass")
    assert (passed.status, passed.record.error) == ("completed", None)
    assert passed.final_artifact_id == first.final_artifact_id
    assert passed.record.artifact_ids == first.record.artifact_ids
    assert [r.reviewer for r in passed.record.reviews] == ["checks", "person", "person"]


def test_a_retry_runs_a_node_again_with_constraints(client: Client, task_id: str) -> None:
    """Given a person's retry, then the node runs with what was added, and is reviewed."""
    before = client.tasks.get(task_id)
    node = client.workflows.get(before.workflow_id).nodes[-1]
    again = client.tasks.submit_review(
        task_id, "retry", node_id=node.id, constraints={"temperature": 0.1}
    )
    assert again.status in ("executing", "reviewing", "completed")
    done = again.wait()
    assert (done.status, done.record.review_attempts) == ("completed", 1)
    assert done.workflow_id != before.workflow_id
    rerun = next(n for n in client.workflows.get(done.workflow_id).nodes if n.id == node.id)
    assert rerun.input["temperature"] == 0.1
    assert rerun.job_id != node.job_id
    assert [r.reviewer for r in done.record.reviews] == ["checks", "person", "checks"]
    numbers = [event.n for event in done.events()]
    assert numbers == list(range(1, len(numbers) + 1))


def test_retries_are_two_whoever_asks(client: Client, task_id: str) -> None:
    """Given two retries, then a third is refused, and a verdict is still taken."""
    for _ in range(2):
        client.tasks.submit_review(task_id, "retry").wait()
    with pytest.raises(RequestError, match=r"^CONFLICT:"):
        client.tasks.submit_review(task_id, "retry")
    assert client.tasks.get(task_id).record.review_attempts == 2
    assert client.tasks.submit_review(task_id, "fail").status == "failed"


@pytest.mark.parametrize(
    "verdict",
    [
        {"decision": "maybe"},
        {"decision": "retry", "node_id": "moon"},
        {"decision": "retry", "constraints": {"no_such_field": 1}},
        {"decision": "pass", "node_id": "copy"},
        {"decision": "pass", "score": 1.5},
        {"decision": "pass", "criteria": {"objective_alignment": 1.0}},
    ],
)
def test_a_verdict_that_is_none_changes_nothing(
    client: Client, task_id: str, verdict: dict[str, object]
) -> None:
    """Given a verdict that cannot be carried out, then it is refused and the task is as it was."""
    before = client.tasks.get(task_id).to_dict()
    with pytest.raises(RequestError, match=r"^INVALID_REQUEST:"):
        client.tasks.submit_review(task_id, **verdict)
    assert client.tasks.get(task_id).to_dict() == before
    assert client.tasks.submit_review(task_id, "pass").status == "completed"


def test_a_cancelled_task_may_be_run_on(client: Client) -> None:
    """Given a task cancelled in mid-workflow, then it cannot be passed, and can be retried."""
    task = client.tasks.create("A social card and a spoken summary of tea")
    until = time.monotonic() + PATIENCE_S
    while not client.tasks.get(task.id).workflow_id and time.monotonic() < until:
        pass
    cancelled = task.cancel().wait(PATIENCE_S, check=False)
    if cancelled.status == "completed":
        pytest.skip("it was over before it could be cancelled")
    with pytest.raises(RequestError, match=r"^CONFLICT:"):
        client.tasks.submit_review(task.id, "pass")
    assert client.tasks.submit_review(task.id, "retry").wait().status == "completed"
