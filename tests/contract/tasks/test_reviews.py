"""A person's verdict on a task: pass, fail, or retry."""

import pytest

from tests.support.timing import PATIENCE_S, wait_until
from toolkit import Client, RequestError
from toolkit.client import Task

pytestmark = [pytest.mark.embedded, pytest.mark.sqlite("other tests have its statements")]


@pytest.fixture
def task(client: Client) -> Task:
    """A task that has completed."""
    return client.tasks.create("A short written summary of tea").wait()


def test_a_person_may_fail_a_passed_task_and_pass_it_again(client: Client, task: Task) -> None:
    """Given a passed task, then the last verdict stands, and all are on record."""
    artifacts = (task.final_artifact_id, task.record.artifact_ids)
    failed = client.tasks.submit_review(task.id, "fail", issues=["It is about coffee."])
    assert (failed.review.record.score, failed.review.record.criteria) == (None, None)
    assert (failed.status, failed.record.error.code) == ("failed", "REVIEW_FAILED")
    assert failed.final_artifact_id == ""
    assert (failed.review.decision, failed.review.record.reviewer) == ("fail", "person")
    assert failed.review.issues == ["It is about coffee."]
    assert "fail" in repr(failed.review)
    passed = client.tasks.submit_review(task.id, "pass", score=0.7)
    assert (passed.review.record.score, passed.review.record.criteria) == (0.7, None)
    assert (passed.status, passed.record.error) == ("completed", None)
    assert (passed.final_artifact_id, passed.record.artifact_ids) == artifacts
    assert [r.reviewer for r in passed.record.reviews] == ["checks", "person", "person"]


def test_a_retry_runs_a_node_again_with_constraints(client: Client, task: Task) -> None:
    """Given a person's retry, then the node runs with the constraints, and is reviewed."""
    workflow_id = task.workflow_id
    node = client.workflows.get(workflow_id).nodes[-1]
    task.submit_review("retry", node_id=node.id, constraints={"temperature": 0.1})
    assert task.status in ("executing", "reviewing", "completed")
    task.wait()
    assert (task.status, task.record.review_attempts) == ("completed", 1)
    assert task.workflow_id != workflow_id
    rerun = client.workflows.get(task.workflow_id)[node.id]
    assert rerun.input["temperature"] == 0.1
    assert rerun.job_id != node.job_id
    assert [r.reviewer for r in task.record.reviews] == ["checks", "person", "checks"]
    numbers = [event.n for event in task.events()]
    assert numbers == list(range(1, len(numbers) + 1))


def test_rejects_a_third_retry(client: Client, task: Task) -> None:
    """Given two retries, then a third is rejected, and another verdict is accepted."""
    for _ in range(2):
        client.tasks.submit_review(task.id, "retry").wait()
    with pytest.raises(RequestError, match=r"^CONFLICT:"):
        client.tasks.submit_review(task.id, "retry")
    assert client.tasks.get(task.id).record.review_attempts == 2
    assert client.tasks.submit_review(task.id, "fail").status == "failed"


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
def test_an_invalid_verdict_changes_nothing(
    client: Client, task: Task, verdict: dict[str, object]
) -> None:
    """Given a verdict that cannot be applied, then it is rejected, and the task is unchanged."""
    record = task.to_dict()
    with pytest.raises(RequestError, match=r"^INVALID_REQUEST:"):
        client.tasks.submit_review(task.id, **verdict)
    assert client.tasks.get(task.id).to_dict() == record


def test_retries_a_cancelled_task(client: Client) -> None:
    """Given a task cancelled during its workflow, then it cannot pass, and can be retried."""
    task = client.tasks.create("A social card and a spoken summary of tea")
    wait_until(lambda: client.tasks.get(task.id).workflow_id)
    task.cancel().wait(PATIENCE_S, check=False)
    if task.status == "completed":
        pytest.skip("it was over before it could be cancelled")
    with pytest.raises(RequestError, match=r"^CONFLICT:"):
        client.tasks.submit_review(task.id, "pass")
    assert client.tasks.submit_review(task.id, "retry").wait().status == "completed"
