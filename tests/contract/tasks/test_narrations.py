"""The review of narrations: a transcriber hears them, if one is connected and may be asked."""

from typing import Any

import pytest

from toolkit import Client, Workflow
from toolkit.client import Task
from toolkit.sandbox import Faults
from toolkit.sandbox.faults import Fault

pytestmark = pytest.mark.embedded
SCRIPT = (
    "The tide turns twice a day, and the old mill by the river turns with it, as it did when the"
    " miller was a boy."
)
CLOSE = SCRIPT.replace("tide", "tight").replace(",", "")
OTHER = "Please hold the line, all of our agents are busy, and your call matters to us."


def narrate(client: Client, **constraints: Any) -> Task:
    """Run a task that speaks the script, to its end."""
    flow = Workflow("A narration about the tide")
    flow.add("narration", "speech.generate", text=SCRIPT)
    return client.tasks.create(plan=flow, **constraints).wait(check=False, progress=False)


@pytest.fixture
def speaker(bare: Client) -> Client:
    """A client that can have a text spoken, and nothing else."""
    bare.connections.create("minimax", "environment", "MINIMAX_API_KEY")
    return bare


@pytest.fixture
def listener(speaker: Client) -> Client:
    """A client that can have a text spoken and transcribed."""
    speaker.connections.create("openai", "environment", "OPENAI_API_KEY")
    return speaker


def hear(faults: Faults, text: str) -> None:
    """Have the transcriber hear a text whatever is spoken."""
    body = {"text": text, "language": "english", "duration": 4.0, "segments": []}
    faults.add(Fault("openai", "audio/transcriptions", body=body))


def count_transcripts(faults: Faults) -> int:
    """Count the calls to the transcriber."""
    return sum("transcriptions" in call.path for call in faults.calls)


@pytest.mark.parametrize("heard", ["", CLOSE], ids=["as it is spoken", "with a wrong word"])
def test_a_narration_with_its_words_passes(listener: Client, faults: Faults, heard: str) -> None:
    """Given a narration of the script, then it passes, and the task pays for the transcript."""
    if heard:
        hear(faults, heard)
    task = narrate(listener, review="judge")
    assert task.status == "completed", task.review
    (job_id,) = task.record.llm_job_ids
    job = listener.jobs.get(job_id)
    assert job.capability == "speech.transcribe@1"
    assert job.cost_usd is not None
    assert task.cost_incurred_usd >= job.cost_usd > 0


def test_a_narration_with_other_words_runs_again(listener: Client, faults: Faults) -> None:
    """Given that something else is heard, then the narration is spoken again, and fails at last."""
    hear(faults, OTHER)
    task = narrate(listener, review="judge")
    assert task.status == "failed"
    assert task.review is not None
    (issue,) = [issue for issue in task.review.issues if "transcriber" in issue]
    assert "Please hold the line" in issue
    assert count_transcripts(faults) == len(task.attempts) > 1


@pytest.mark.parametrize("review", ["checks", "auto"])
def test_no_transcriber_is_asked_unless_wanted(
    listener: Client, faults: Faults, review: str
) -> None:
    """Given the checks alone, or the sandbox with `auto`, then no transcript is paid for."""
    hear(faults, OTHER)
    assert narrate(listener, review=review).status == "completed"
    assert count_transcripts(faults) == 0


def test_nothing_changes_without_a_transcriber(speaker: Client) -> None:
    """Given no transcriber, then the narration passes by the other checks."""
    task = narrate(speaker, review="judge")
    assert task.status == "completed"
    assert task.record.llm_job_ids == []


def test_a_budget_bounds_the_transcripts(listener: Client, faults: Faults) -> None:
    """Given a budget that the speech uses up, then it passes without a transcript."""
    cost = narrate(listener, review="checks").cost_usd
    assert cost is not None
    task = narrate(listener, review="judge", max_cost_usd=cost + 0.0001)
    assert task.status == "completed"
    assert task.cost_incurred_usd <= cost + 0.0001
    assert count_transcripts(faults) == 0
