"""Handles: the resources that they lead to, and their actions in place."""

import pytest

from toolkit import Client, RequestError, Workflow

LINE = {"objective": "One line on tides"}


def test_work_leads_to_its_results(client: Client) -> None:
    """Given completed work, then each handle reads the resources that its ids name."""
    run = client.runs.create("llm.generate", LINE).wait(progress=False)
    assert run.artifact().id == run.artifact_id
    flow = Workflow("lines")
    flow.add("line", "llm.generate", input=LINE)
    workflow = client.workflows.submit(flow).wait(progress=False)
    job = workflow.job("line")
    assert (job.node_id, job.workflow_id) == ("line", workflow.id)
    assert job.artifact().id == workflow.artifact("line").id == workflow.final_artifact_id
    with pytest.raises(KeyError):
        workflow.job("ghost")
    task = client.tasks.create("A social card about tea").wait(progress=False)
    assert task.workflow().id == task.workflow(task.workflow_ids[-1]).id == task.workflow_id
    assert task.workflow().task_id == task.id
    assert task.completed_at > task.created_at
    assert [review.decision for review in task.reviews] == [task.review and task.review.decision]


def test_work_without_a_result_says_so(bare: Client) -> None:
    """Given work without a result, then reading the result raises an error that says so."""
    task = bare.tasks.create("A narration about tea").wait(progress=False)
    with pytest.raises(RequestError, match="no workflow yet"):
        task.workflow()
    run = bare.runs.create("composition.layout", {"title": "Tea", "theme": "paper"})
    run.record = run.record.model_copy(update={"artifact_id": None})
    with pytest.raises(RequestError, match="no artifact yet"):
        run.artifact()


def test_resumes_and_reviews_a_task_in_place(bare: Client) -> None:
    """Given a blocked task, when its vendor is connected, then its handle resumes it."""
    task = bare.tasks.create("A narration about tea").wait(progress=False)
    assert task.status == "blocked"
    with pytest.raises(RequestError, match=r"^CONFLICT:"):
        task.submit_review("pass")
    bare.connections.connect("minimax", "openai", "elevenlabs")
    assert task.resume().wait(progress=False).status == "completed"
    with pytest.raises(RequestError, match=r"^CONFLICT:"):
        task.resume()
    assert task.submit_review("fail", issues=["It is about coffee."]) is task
    assert (task.status, task.review and task.review.decision) == ("failed", "fail")
