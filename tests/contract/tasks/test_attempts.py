"""Attempts of a task: all are kept and compared, and the best is delivered."""

import pytest

from tests.contract.conftest import expect_refusal
from tests.contract.tasks.scripts import (
    GOOD,
    GOOD_TOO,
    REFUSED,
    WORSE,
    AnswerScript,
    build_text_plan,
)
from toolkit import Client, RequestError, Task, Workflow
from toolkit.contract.tasks import Review

pytestmark = [pytest.mark.embedded, pytest.mark.sqlite("other tests have its statements")]

INSTRUCTION = "Write the text itself; nothing about it is forbidden."


def read_text(client: Client, artifact_id: str) -> str:
    """Return the text of an artifact."""
    return client.artifacts.get(artifact_id).content().decode()


def get_review(task: Task, n: int) -> Review:
    """Return the last verdict on an attempt, counted from 1."""
    review = task.attempts[n - 1].review
    assert review is not None
    return review


def list_artifacts(task: Task) -> list[str]:
    """List the artifact of the node `copy` in each attempt."""
    return [attempt.artifact_ids["copy"] for attempt in task.attempts]


def test_records_every_workflow_as_an_attempt(writer: Client, script: AnswerScript) -> None:
    """Given a refusal and then a good text, then both attempts are on record, each judged."""
    script.say(REFUSED, GOOD)
    task = writer.tasks.create(plan=build_text_plan()).wait()
    assert [attempt.workflow_id for attempt in task.attempts] == task.workflow_ids
    assert [get_review(task, n).decision for n in (1, 2)] == ["retry", "pass"]
    assert [review.attempt for review in task.record.reviews] == [1, 2]
    artifacts = list_artifacts(task)
    assert [read_text(writer, artifact_id) for artifact_id in artifacts] == [REFUSED, GOOD]
    assert task.final_attempt == 2
    assert task.final_artifact_id == task.best_artifact_id == artifacts[1]
    cost = sum(attempt.cost_usd or 0 for attempt in task.attempts)
    assert cost == pytest.approx(task.cost_usd)


def test_an_exhausted_task_names_its_best_attempt(writer: Client, script: AnswerScript) -> None:
    """Given texts that never pass, then the task has failed, and the best of them is named."""
    script.say(REFUSED, times=None)
    task = writer.tasks.create(plan=build_text_plan()).wait(check=False)
    assert (task.status, task.review_attempts) == ("failed", 2)
    assert task.error is not None
    assert task.error.code == "RETRIES_EXHAUSTED"
    assert task.final_artifact_id == ""
    assert len(task.attempts) == 3
    assert task.best_artifact_id in list_artifacts(task)


def test_keeps_the_better_text_after_a_retry(writer: Client, script: AnswerScript) -> None:
    """Given a person's retry whose text passes with a lower score, then the first text stays."""
    script.say(GOOD, WORSE)
    task = writer.tasks.create(plan=build_text_plan()).wait()
    task = task.submit_review("retry", issues=["Say more of its history."]).wait()
    assert task.status == "completed"
    assert get_review(task, 1).score is None  # the verdict of a person, without a score
    first, second = task.record.reviews[0].score, get_review(task, 2).score
    assert first is not None
    assert second is not None
    assert second < first
    assert task.final_attempt == 1
    assert read_text(writer, task.final_artifact_id) == GOOD
    assert read_text(writer, list_artifacts(task)[1]) == WORSE


def test_a_good_text_can_pass_after_a_failed_retry(writer: Client, script: AnswerScript) -> None:
    """Given a person's retry whose texts do not pass, then the first text can be passed."""
    script.say(GOOD)
    script.say(REFUSED, times=None)
    task = writer.tasks.create(plan=build_text_plan()).wait()
    task = task.submit_review("retry", issues=["Say more of its history."]).wait(check=False)
    assert task.status == "failed"
    assert read_text(writer, task.best_artifact_id) == GOOD
    task = task.submit_review("pass", attempt=1)
    assert (task.status, task.error, task.final_attempt) == ("completed", None, 1)
    assert read_text(writer, task.final_artifact_id) == GOOD
    assert get_review(task, 1).reviewer == "person"


def test_a_person_may_pass_any_completed_attempt(writer: Client, script: AnswerScript) -> None:
    """Given completed attempts, then a person's pass delivers the attempt that it names."""
    script.say(REFUSED, GOOD)
    task = writer.tasks.create(plan=build_text_plan()).wait()
    for n, text in ((1, REFUSED), (2, GOOD)):
        task = task.submit_review("pass", attempt=n)
        assert (task.status, task.final_attempt) == ("completed", n)
        assert read_text(writer, task.final_artifact_id) == text
        assert task.artifact_ids == task.attempts[n - 1].artifact_ids
    with expect_refusal("INVALID_REQUEST", "attempt"):
        task.submit_review("pass", attempt=3)


def test_a_failed_attempt_cannot_pass(writer: Client, script: AnswerScript) -> None:
    """Given a failed last attempt, then it cannot be passed, and the default is the best."""
    script.say(GOOD)
    script.say(" ", times=None)
    task = writer.tasks.create(plan=build_text_plan()).wait()
    task = task.submit_review("retry", issues=["Say more of its history."]).wait(check=False)
    assert task.status == "failed"
    with pytest.raises(RequestError, match=r"^CONFLICT:"):
        task.submit_review("pass", attempt=len(task.attempts))
    assert task.submit_review("pass").final_attempt == 1


def test_a_person_s_issues_reach_the_node(writer: Client, script: AnswerScript) -> None:
    """Given a person's issues, then the node gets them, fenced and apart from its brief."""
    script.say(GOOD, GOOD)
    task = writer.tasks.create(plan=build_text_plan()).wait()
    task = task.submit_review("retry", issues=["Name the emperor.", "Say when."]).wait()
    objective = str(writer.workflows.get(task.workflow_id)["copy"].input["objective"])
    brief, _, remarks = objective.partition("\n\n")
    assert brief == "A 30-word text about tea"
    assert "A person" in remarks
    places = [remarks.index(part) for part in ("<material-", "- Name the emperor.", "- Say when.")]
    assert places == sorted(places)
    assert task.review is not None
    assert task.review.decision == "pass"


def test_a_text_that_echoes_an_instruction_does_not_pass(
    writer: Client, script: AnswerScript
) -> None:
    """Given an instruction of a review, then a text that repeats it does not pass."""
    script.say(REFUSED, f"{REFUSED} {INSTRUCTION}", REFUSED)
    task = writer.tasks.create(plan=build_text_plan()).wait(check=False)
    first, second = task.record.reviews[:2]
    assert first.recommended_action is not None
    assert first.recommended_action.instructions == [INSTRUCTION]
    assert INSTRUCTION in str(first.recommended_action.constraints["objective"])
    assert second.decision == "retry"
    (action,) = second.recommended_actions
    assert action.instructions != [INSTRUCTION]


@pytest.mark.parametrize(
    ("answers", "reruns"), [([REFUSED, REFUSED, GOOD, GOOD_TOO], 2), ([GOOD, REFUSED, GOOD_TOO], 1)]
)
def test_a_retry_runs_all_failed_nodes_and_keeps_the_others(
    writer: Client, script: AnswerScript, answers: list[str], reruns: int
) -> None:
    """Given two texts with refusals, then one retry runs the refused ones, and keeps the other."""
    flow = Workflow("Two texts")
    flow.add("tea", "llm.generate", objective="A 30-word text about tea")
    flow.add("salt", "llm.generate", objective="A 30-word text about tea", temperature=0.3)
    script.say(*answers)
    task = writer.tasks.create(plan=flow).wait(check=False)
    assert (task.status, task.review_attempts) == ("completed", 1)
    review = task.record.reviews[0]
    assert len(review.recommended_actions) == reruns
    assert review.recommended_action == review.recommended_actions[0]
    first, second = (attempt.artifact_ids for attempt in task.attempts)
    assert first.keys() == second.keys() == {"tea", "salt"}
    assert sum(first[name] != second[name] for name in first) == reruns


def test_rejects_a_retry_that_changes_nothing(client: Client) -> None:
    """Given a card by itself, then a person's retry needs a change of its input."""
    flow = Workflow("A card")
    flow.add("card", "composition.layout", title="Tea", body="Tea is a drink.")
    task = client.tasks.create(plan=flow).wait(check=False)
    with pytest.raises(RequestError, match=r"^CONFLICT:"):
        task.submit_review("retry")
    assert task.submit_review("retry", constraints={"title": "Tea!"}).wait().review_attempts


def test_pays_for_no_invalid_output_again(writer: Client, script: AnswerScript) -> None:
    """Given a model that always answers nothing, then it is called again only with a change."""
    script.say(" ", times=None)
    task = writer.tasks.create(plan=build_text_plan()).wait(check=False)
    assert (task.status, task.review_attempts) == ("failed", 1)
    assert script.calls == 4  # twice as planned, twice as changed
    assert task.review is not None
    assert "nothing is left to change" in task.review.issues[-1]
    first, second = (writer.workflows.get(id)["copy"].input for id in task.workflow_ids)
    assert first != second


def test_tries_another_provider_unless_one_is_pinned(writer: Client, script: AnswerScript) -> None:
    """Given a model that always answers nothing, then another is tried, unless it is pinned."""
    writer.connections.create("anthropic", "environment", "ANTHROPIC_API_KEY")
    writer.connections.create("google", "environment", "GEMINI_API_KEY")
    script.say(" ", times=None)
    flow = build_text_plan()
    task = writer.tasks.create(plan=flow).wait(check=False)
    assert task.status == "completed"
    flow.nodes[0]["options"] = {"provider": "openai"}
    pinned = writer.tasks.create(plan=flow).wait(check=False)
    providers = {writer.workflows.get(id)["copy"].provider for id in pinned.workflow_ids}
    assert (pinned.status, providers) == ("failed", {"openai"})


def test_an_empty_card_is_made_again(writer: Client, script: AnswerScript) -> None:
    """Given a card whose written body is a single word, then it is made again."""
    flow = Workflow("A card about tea")
    copy = flow.add("copy", "llm.generate", objective="Text for a card about tea")
    flow.add("card", "composition.layout", title="Tea", depends_on=[copy])
    script.say("N/A", GOOD)
    task = writer.tasks.create(plan=flow).wait()
    assert [get_review(task, n).decision for n in (1, 2)] == ["retry", "pass"]
    assert any("says nothing" in issue for issue in get_review(task, 1).issues)
    assert script.calls == 2
