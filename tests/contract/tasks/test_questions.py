"""Questions of tasks: an unclear objective blocks a task, and the answer continues it."""

import pytest

from tests.contract.conftest import expect_refusal
from toolkit import Client
from toolkit.cli.output import ClientOutput
from toolkit.cli.work import wait_for_work
from toolkit.contract.errors import ToolkitError
from toolkit.display.text import format_event

pytestmark = [pytest.mark.embedded, pytest.mark.sqlite("other tests have its statements")]

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
