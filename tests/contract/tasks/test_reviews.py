"""Tasks that wait for a connection, an answer or a verdict."""

import pytest

from tests.contract.conftest import expect_refusal
from tests.support.timing import PATIENCE_S, wait_until
from tests.support.views import render_views
from toolkit import Client, RequestError
from toolkit.cli.output import ClientOutput
from toolkit.cli.work import wait_for_work
from toolkit.client import Task
from toolkit.contract.errors import ToolkitError
from toolkit.display.text import format_event
from toolkit.notebook import TaskReview, WorkflowGraph

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


VAGUE = "Something nice, please"

ANSWER = "A paragraph about tea"


def test_a_question_blocks_until_it_is_answered(client: Client) -> None:
    """Given an unclear objective, then the task asks, asks again, and continues with the answer."""
    assert client.plans.create(VAGUE).record.question
    task = client.tasks.create(VAGUE).wait()
    assert task.status == "blocked"
    question = task.question
    assert question
    event = task.events()[-1]
    assert (event.type, event.data["question"]) == ("task.blocked", question)
    assert question[:40] in format_event(event)
    assert task.resume(answer="Whatever you like").wait().question
    task.resume(answer=ANSWER).wait(check=False)
    assert task.answers[0].question == question
    assert [answer.answer for answer in task.answers] == ["Whatever you like", ANSWER]
    assert (task.question, task.objective) == (None, VAGUE)
    assert client.plans.get(task.plan_id).objective.endswith(ANSWER)
    assert task.artifact_ids


def test_a_question_needs_its_answer(client: Client) -> None:
    """Given a question, then the task is not resumed without a valid answer."""
    task = client.tasks.create(VAGUE).wait()
    for answer in (None, " ", "x" * 2_001):
        with expect_refusal("INVALID_REQUEST", "answer"):
            client.tasks.resume(task.id, answer)
    assert client.tasks.get(task.id).status == "blocked"


def test_an_answer_needs_its_question(bare: Client) -> None:
    """Given a task that lacks a connection, then an answer is rejected, and none is needed."""
    task = bare.tasks.create("A narration about tea").wait()
    assert (task.status, task.question) == ("blocked", None)
    with expect_refusal("INVALID_REQUEST", "answer"):
        task.resume(answer=ANSWER)
    assert bare.tasks.resume(task.id).wait().status == "blocked"


def test_a_task_with_a_question_can_be_cancelled(client: Client) -> None:
    """Given a question, then a command states how to answer it, and a cancel withdraws it."""
    task = client.tasks.create(VAGUE)
    with pytest.raises(ToolkitError, match=f"tasks resume {task.id} --answer"):
        wait_for_work(ClientOutput(client), "tasks", task, quiet=True)
    task.cancel()
    assert (task.status, task.question) == ("failed", None)


def test_names_the_missing_connections_of_each_capability(
    bare: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    """Given no connection, then every view of plan and task names the providers to connect."""
    objective = "A social card with a narration about tea, and an image of a kettle"
    plan = bare.plans.create(objective)
    gaps = {gap.capability: gap.any_of for gap in plan.missing}
    sources = {record.id: record.record.source for record in bare.capabilities.list()}
    for capability, any_of in gaps.items():
        assert sorted(any_of) == sorted(sources[capability].routing.allowed_connections)
        assert any_of[0] == sources[capability].routing.default_provider
    assert {"speech.generate", "image.generate"} <= gaps.keys()
    assert set(plan.missing_connections) == {name for any_of in gaps.values() for name in any_of}
    assert not plan.executable
    task = bare.tasks.create(objective).wait(check=False)
    assert (task.status, task.missing) == ("blocked", plan.missing)
    assert (task.cost_usd, task.cost_incurred_usd) == (0, 0)
    graph, review = WorkflowGraph(task), TaskReview(task)
    texts = [render_views(plan), render_views(task), format_event(task.events()[-1])]
    texts += [graph.headline.value, review.headline.value]
    for work in (plan, task):
        ClientOutput(bare).print_record(work)
        texts.append(capsys.readouterr().out)
    for text in texts:
        assert "speech.generate needs a connection to minimax or elevenlabs" in text
    graph.close()
    review.close()
    bare.connections.create("elevenlabs", "environment", "ELEVENLABS_API_KEY")
    capabilities = {gap.capability for gap in bare.plans.create(objective).missing}
    assert capabilities == gaps.keys() - {"speech.generate"}
    (gap,) = bare.plans.create("A video about tea").missing
    assert (gap.capability, gap.any_of) == ("video.generate", [])
