"""Tasks that ask: what is not understood blocks them, and the answer takes them on."""

import pytest

from toolkit import Client, RequestError
from toolkit.cli.output import ClientOutput
from toolkit.cli.work import wait_for_work
from toolkit.contract.errors import ToolkitError
from toolkit.display.text import format_event

pytestmark = [pytest.mark.embedded, pytest.mark.sqlite("other tests have its statements")]

VAGUE = "Something nice, please"
ANSWER = "A paragraph about tea"


def test_a_question_blocks_until_it_is_answered(client: Client) -> None:
    """Given an objective that says too little, then the task asks, and goes on with the answer."""
    assert client.plans.create(VAGUE).record.question
    task = client.tasks.create(VAGUE).wait()
    assert task.status == "blocked"
    asked = task.question
    assert asked
    event = task.events()[-1]
    assert (event.type, event.data["question"]) == ("task.blocked", asked)
    assert asked[:40] in format_event(event)
    done = task.resume(answer=ANSWER).wait(check=False)
    assert [(one.question, one.answer) for one in done.answers] == [(asked, ANSWER)]
    assert (done.question, done.objective) == (None, VAGUE)
    assert client.plans.get(done.plan_id).objective.endswith(ANSWER)
    assert done.artifact_ids


def test_a_question_needs_its_answer(client: Client) -> None:
    """Given a question, then the task is not resumed without an answer, or with an empty one."""
    task = client.tasks.create(VAGUE).wait()
    for answer in (None, " ", "x" * 2_001):
        with pytest.raises(RequestError) as refused:
            client.tasks.resume(task.id, answer)
        assert refused.value.code.name == "INVALID_REQUEST"
        assert refused.value.details[0].path == "answer"
    assert client.tasks.get(task.id).status == "blocked"


def test_an_answer_needs_its_question(bare: Client) -> None:
    """Given a task that lacks a connection, then an answer is refused, and none is needed."""
    task = bare.tasks.create("A narration about tea").wait()
    assert (task.status, task.question) == ("blocked", None)
    with pytest.raises(RequestError) as refused:
        task.resume(answer=ANSWER)
    assert refused.value.details[0].path == "answer"
    assert bare.tasks.resume(task.id).wait().status == "blocked"


def test_an_answer_that_says_too_little_is_asked_on(client: Client) -> None:
    """Given an answer that does not help, then it asks again, and both answers are kept."""
    task = client.tasks.create(VAGUE).wait()
    again = task.resume(answer="Whatever you like").wait()
    assert again.question
    done = again.resume(answer=ANSWER).wait(check=False)
    assert [one.answer for one in done.answers] == ["Whatever you like", ANSWER]
    assert done.status != "blocked"


def test_a_question_can_be_left_unanswered(client: Client) -> None:
    """Given a question, then the task can be cancelled, and asks nothing any more."""
    task = client.tasks.create(VAGUE).wait()
    cancelled = task.cancel()
    assert (cancelled.status, cancelled.question) == ("failed", None)


def test_a_command_says_how_to_answer(client: Client) -> None:
    """Given a task that asks, then a command that waits for it says what, and what to type."""
    task = client.tasks.create(VAGUE)
    with pytest.raises(ToolkitError, match=f"tasks resume {task.id} --answer"):
        wait_for_work(ClientOutput(client), "tasks", task, quiet=True)
