"""The attempts of a task: kept, compared, and the better one delivered."""

import pytest

from tests.contract.tasks.scripts import (
    GOOD,
    GOOD_TOO,
    REFUSED,
    WORSE,
    AnswerScript,
    plan_text,
)
from toolkit import Client, RequestError, Task, Workflow
from toolkit.contract.tasks import Review

pytestmark = [pytest.mark.embedded, pytest.mark.sqlite("other tests have its statements")]


def list_scores(task: Task) -> list[float | None]:
    """The score of every attempt."""
    return [one.review.score if one.review else None for one in task.attempts]


def read_text(client: Client, artifact_id: str) -> str:
    """The text of an artifact."""
    return client.artifacts.get(artifact_id).content().decode()


TOLD = "Write the text itself; nothing about it is forbidden."


def get_review(task: Task, n: int) -> Review:
    """The last verdict on an attempt, counted from 1."""
    review = task.attempts[n - 1].review
    assert review is not None
    return review


def test_every_workflow_is_an_attempt(writer: Client, script: AnswerScript) -> None:
    """Given a text that is refused and one that is good, then both are on record, each judged."""
    script.say(REFUSED, GOOD)
    task = writer.tasks.create(plan=plan_text()).wait()
    assert [one.workflow_id for one in task.attempts] == task.workflow_ids
    assert [get_review(task, n).decision for n in (1, 2)] == ["retry", "pass"]
    assert [one.attempt for one in task.record.reviews] == [1, 2]
    assert [read_text(writer, one.artifact_ids["copy"]) for one in task.attempts] == [
        REFUSED,
        GOOD,
    ]
    assert task.final_attempt == 2
    assert task.final_artifact_id == task.best_artifact_id == task.attempts[1].artifact_ids["copy"]
    assert sum(one.cost_usd or 0 for one in task.attempts) == pytest.approx(task.cost_usd)


def test_an_exhausted_task_names_its_best(writer: Client, script: AnswerScript) -> None:
    """Given texts that never pass, then the task has failed, and the best of them is named."""
    script.say(REFUSED, times=None)
    task = writer.tasks.create(plan=plan_text()).wait(check=False)
    assert (task.status, task.review_attempts) == ("failed", 2)
    assert task.error is not None
    assert task.error.code == "RETRIES_EXHAUSTED"
    assert task.final_artifact_id == ""
    assert len(task.attempts) == 3
    assert task.best_artifact_id in {one.artifact_ids["copy"] for one in task.attempts}


def test_a_retry_that_comes_out_worse_loses_nothing(writer: Client, script: AnswerScript) -> None:
    """Given a person's retry and a text that passes but scores less, then the first stays."""
    script.say(GOOD, WORSE)
    first = writer.tasks.create(plan=plan_text()).wait()
    task = first.submit_review("retry", issues=["Say more of its history."]).wait()
    before, after = list_scores(task)
    assert task.status == "completed"
    assert after is not None
    assert before is None  # a person's verdict, without a score
    assert task.record.reviews[0].score is not None
    assert after < task.record.reviews[0].score
    assert task.final_attempt == 1
    assert read_text(writer, task.final_artifact_id) == GOOD
    assert read_text(writer, task.attempts[1].artifact_ids["copy"]) == WORSE


def test_a_retry_that_fails_loses_nothing(writer: Client, script: AnswerScript) -> None:
    """Given a person's retry and texts that do not pass, then the good one can be passed."""
    script.say(GOOD)
    script.say(REFUSED, times=None)
    first = writer.tasks.create(plan=plan_text()).wait()
    task = first.submit_review("retry", issues=["Say more of its history."]).wait(check=False)
    assert task.status == "failed"
    assert read_text(writer, task.best_artifact_id) == GOOD
    passed = task.submit_review("pass", attempt=1)
    assert (passed.status, passed.error, passed.final_attempt) == ("completed", None, 1)
    assert read_text(writer, passed.final_artifact_id) == GOOD
    assert get_review(passed, 1).reviewer == "person"


def test_a_person_passes_any_attempt_that_completed(writer: Client, script: AnswerScript) -> None:
    """Given attempts that completed, then a person's pass delivers the one that it names."""
    script.say(REFUSED, GOOD)
    task = writer.tasks.create(plan=plan_text()).wait()
    for n, text in ((1, REFUSED), (2, GOOD)):
        task = task.submit_review("pass", attempt=n)
        assert (task.status, task.final_attempt) == ("completed", n)
        assert read_text(writer, task.final_artifact_id) == text
        assert task.artifact_ids == task.attempts[n - 1].artifact_ids
    with pytest.raises(RequestError) as refused:
        task.submit_review("pass", attempt=3)
    assert refused.value.details[0].path == "attempt"


def test_a_person_passes_a_good_attempt_after_a_workflow_that_failed(
    writer: Client, script: AnswerScript
) -> None:
    """Given a last workflow that failed, then an earlier attempt can be passed, and it cannot."""
    script.say(GOOD)
    script.say(" ", times=None)
    first = writer.tasks.create(plan=plan_text()).wait()
    task = first.submit_review("retry", issues=["Say more of its history."]).wait(check=False)
    assert task.status == "failed"
    with pytest.raises(RequestError, match=r"^CONFLICT:"):
        task.submit_review("pass", attempt=len(task.attempts))
    assert task.submit_review("pass").final_attempt == 1  # the best, where none is named


def test_scores_that_nobody_gave_are_null(writer: Client, script: AnswerScript) -> None:
    """Given a person's verdict without scores, then there are none, and those given are kept."""
    script.say(GOOD)
    task = writer.tasks.create(plan=plan_text()).wait()
    failed = task.submit_review("fail")
    assert failed.review is not None
    assert (failed.review.score, failed.review.criteria) == (None, None)
    assert "fail" in repr(failed.review)
    scored = task.submit_review("pass", score=0.7)
    assert scored.review is not None
    assert (scored.review.score, scored.review.criteria) == (0.7, None)


def test_what_a_person_says_reaches_what_runs_again(writer: Client, script: AnswerScript) -> None:
    """Given a person's issues, then the node is told them, fenced and apart from its brief."""
    script.say(GOOD, GOOD)
    task = writer.tasks.create(plan=plan_text()).wait()
    again = task.submit_review("retry", issues=["Name the emperor.", "Say when."]).wait()
    asked = writer.workflows.get(again.workflow_id)["copy"].input["objective"]
    assert isinstance(asked, str)
    brief, _, told = asked.partition("\n\n")
    assert brief == "A 30-word text about tea"
    assert "A person" in told
    assert told.index("<material-") < told.index("- Name the emperor.") < told.index("- Say when.")
    assert again.review is not None
    assert again.review.decision == "pass"


def test_remarks_find_the_node_that_can_be_told(client: Client) -> None:
    """Given a card that takes its words from a text, then remarks on it have the text rewritten."""
    flow = Workflow("A card about tea")
    text = flow.add("text", "llm.generate", objective="A 20-word text about tea")
    flow.add("card", "composition.layout", title="Tea", depends_on=[text])
    task = client.tasks.create(plan=flow).wait(check=False)
    before = {node.job_id for node in client.workflows.get(task.workflow_id).nodes}
    again = task.submit_review("retry", issues=["Too dry."]).wait(check=False)
    nodes = {node.id: node for node in client.workflows.get(again.workflow_id).nodes}
    assert "Too dry." in str(nodes["text"].input["objective"])
    assert before.isdisjoint(node.job_id for node in nodes.values())


def test_an_instruction_of_a_review_is_no_part_of_the_brief(
    writer: Client, script: AnswerScript
) -> None:
    """Given an instruction of a review, then a text that echoes it does not pass."""
    script.say(REFUSED, f"{REFUSED} {TOLD}", REFUSED)
    task = writer.tasks.create(plan=plan_text()).wait(check=False)
    action = task.record.reviews[0].recommended_action
    assert action is not None
    assert action.instructions == [TOLD]
    assert all(one in str(action.constraints["objective"]) for one in action.instructions)
    assert task.record.reviews[1].decision == "retry"
    (last,) = task.record.reviews[1].recommended_actions
    assert last.instructions != action.instructions


def test_all_nodes_to_blame_run_again_at_once(writer: Client, script: AnswerScript) -> None:
    """Given two texts that are refusals, then one retry runs both, and what depends on them."""
    flow = Workflow("Two texts about tea")
    flow.add("one", "llm.generate", objective="A 30-word text about tea")
    flow.add("two", "llm.generate", objective="A 30-word text about tea for children")
    script.say(REFUSED, REFUSED)
    script.say(GOOD, GOOD_TOO)
    task = writer.tasks.create(plan=flow).wait(check=False)
    review = task.record.reviews[0]
    assert [one.node_id for one in review.recommended_actions] == ["one", "two"]
    assert review.recommended_action == review.recommended_actions[0]
    assert (task.status, task.review_attempts) == ("completed", 1)


def test_what_is_kept_is_listed_in_each_attempt(writer: Client, script: AnswerScript) -> None:
    """Given one text of two that is refused, then the other's artifact is in both attempts."""
    flow = Workflow("Two texts")
    flow.add("tea", "llm.generate", objective="A 30-word text about tea")
    flow.add("salt", "llm.generate", objective="A 30-word text about tea", temperature=0.3)
    script.say(GOOD, REFUSED)
    script.say(GOOD_TOO)
    task = writer.tasks.create(plan=flow).wait(check=False)
    first, second = (one.artifact_ids for one in task.attempts)
    assert first.keys() == second.keys() == {"tea", "salt"}
    assert sum(first[name] == second[name] for name in first) == 1


def test_a_retry_that_would_change_nothing_is_refused(client: Client) -> None:
    """Given a card by itself, then a person's retry needs something that changes it."""
    flow = Workflow("A card")
    flow.add("card", "composition.layout", title="Tea", body="Tea is a drink.")
    task = client.tasks.create(plan=flow).wait(check=False)
    with pytest.raises(RequestError, match=r"^CONFLICT:"):
        task.submit_review("retry")
    assert (
        task.submit_review("retry", constraints={"title": "Tea!"}).wait(check=False).review_attempts
    )


def test_a_lasting_invalid_output_is_not_paid_for_again(
    writer: Client, script: AnswerScript
) -> None:
    """Given a model that always answers nothing, then it is asked again only with a change."""
    script.say(" ", times=None)
    task = writer.tasks.create(plan=plan_text()).wait(check=False)
    assert (task.status, task.review_attempts) == ("failed", 1)
    assert script.calls == 4  # twice as planned, twice as changed
    assert task.review is not None
    assert "nothing is left to change" in task.review.issues[-1]
    asked = [writer.workflows.get(one)["copy"].input for one in task.workflow_ids]
    assert asked[0] != asked[1]


def test_another_provider_is_asked_where_one_fails_for_good(
    writer: Client, script: AnswerScript
) -> None:
    """Given a model that always answers nothing and another one, then that one is asked at last."""
    writer.connections.create("anthropic", "environment", "ANTHROPIC_API_KEY")
    script.say(" ", times=None)
    writer.connections.create("google", "environment", "GEMINI_API_KEY")
    flow = plan_text()
    task = writer.tasks.create(plan=flow).wait(check=False)
    flow.nodes[0]["options"] = {"provider": "openai"}
    pinned = writer.tasks.create(plan=flow).wait(check=False)
    assert task.status == "completed"
    asked = {writer.workflows.get(one)["copy"].provider for one in pinned.workflow_ids}
    assert (pinned.status, asked) == ("failed", {"openai"})


@pytest.mark.parametrize("text", ["Nope.", "N/A"])
def test_a_card_says_something(writer: Client, script: AnswerScript, text: str) -> None:
    """Given a card whose body is a word or two that nobody gave, then it is made again."""
    flow = Workflow("A card about tea")
    copy = flow.add("copy", "llm.generate", objective="Text for a card about tea")
    flow.add("card", "composition.layout", title="Tea", depends_on=[copy])
    script.say(text, GOOD)
    task = writer.tasks.create(plan=flow).wait()
    assert [get_review(task, n).decision for n in (1, 2)] == ["retry", "pass"]
    assert any("says nothing" in issue for issue in get_review(task, 1).issues)
    assert script.calls == 2
