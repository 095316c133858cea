"""Runs: one capability, executed once."""

import json
from io import BytesIO

import pytest
from PIL import Image
from pydantic import ValidationError

from tests.capabilities.conftest import mp3
from toolkit import Client, Workflow


def test_a_run_ends_with_its_output(client: Client) -> None:
    """Given a connection, when text is asked for, then it comes, routed, priced and simulated."""
    run = client.runs.create("llm.generate", {"objective": "One line on tidal power"}).wait()
    assert run.id.startswith("run_")
    assert run.status == "completed"
    assert "tid" in str(run.output["text"]).lower()
    record = run.record
    assert record.provider == "minimax"
    assert record.routing.candidates[0].provider == "minimax"
    assert record.cost_usd is not None
    assert record.cost_usd > 0
    assert record.usage["simulated"] is True
    assert "sandbox" in str(record.model)
    assert [attempt.status for attempt in record.attempts] == ["completed"]


def test_records_are_their_readers_own(client: Client) -> None:
    """Given records of runs, then what a reader changes is changed nowhere else, and routing never.

    Runs that measure the same share one decision, and in one process their readers do, too.
    """
    first, second = (
        client.runs.create("llm.generate", {"objective": f"A line on tea, {n}"}).wait()
        for n in (1, 2)
    )
    for changed in (first.record.input, first.record.output, first.record.usage):
        changed.clear()
    first.record.attempts.clear()
    decision = first.record.routing
    with pytest.raises(ValidationError, match="frozen"):
        decision.policy = "none"
    with pytest.raises(ValidationError, match="frozen"):
        decision.candidates[0].score = 0.0
    with pytest.raises(TypeError):
        decision.candidates[0] = decision.candidates[1]
    for run in (client.runs.get(first.id), second):
        assert run.record.input["objective"]
        assert run.record.output["text"]
        assert run.record.usage
        assert [attempt.status for attempt in run.record.attempts] == ["completed"]
        assert list(run.to_dict()) == list(type(run.record).model_fields)
    assert client.runs.get(first.id).record.routing == decision


def test_an_image_is_an_image(client: Client) -> None:
    """Given a prompt, when an image is asked for, then it opens in the size asked for."""
    given = {"prompt": "a lighthouse by the sea", "width": 512, "height": 256, "steps": 4}
    run = client.runs.create("image.generate", given).wait()
    picture = Image.open(BytesIO(client.artifacts.get(run.artifact_id).content()))
    assert picture.size == (512, 256)


def test_a_voice_is_cloned_and_then_speaks(client: Client) -> None:
    """Given reference audio, when a voice is cloned, then later speech can name it."""
    uploaded = client.artifacts.upload(mp3(12.0), filename="me.mp3")
    run = client.runs.create(
        "voice.clone", {"reference_audio": uploaded.id, "name": "narrator"}
    ).wait()
    spoken = client.runs.create(
        "speech.generate", {"text": "Hello from a new voice.", "voice": run.output["voice"]}
    ).wait()
    assert spoken.status == "completed"
    wf = Workflow("a new voice at once")
    voice = wf.add("voice", "voice.clone", reference_audio=uploaded.id, name="narrator")
    wf.add("speech", "speech.generate", text="Hello.", depends_on=[voice])
    done = client.workflows.submit(wf).wait()
    made, said = (client.jobs.get(node.job_id).record.output for node in done.nodes)
    assert said["voice"] == made["voice"]


def test_events_tell_the_story_without_gaps(client: Client) -> None:
    """Given a run that ended, when its events are read, then they number from 1 to the end."""
    run = client.runs.create("research.gather", {"topic": "Tea"}).wait()
    events = client.runs.events(run.id)
    assert [event.n for event in events] == list(range(1, len(events) + 1))
    assert [events[0].type, events[-1].type] == ["run.queued", "run.completed"]
    job = client.jobs.events(run.record.job_id)
    assert [event.type.partition(".")[2] for event in events] == [
        event.type.partition(".")[2] for event in job
    ]
    assert {event.type.partition(".")[0] for event in job} == {"job"}


def test_a_job_is_the_run(client: Client) -> None:
    """Given a run, when its job is read, then it is the same work under its own id."""
    run = client.runs.create("research.gather", {"topic": "Tea"}).wait()
    job = client.jobs.get(run.record.job_id)
    assert job.id.startswith("job_")
    assert json.dumps(job.record.output) == json.dumps(run.output)
