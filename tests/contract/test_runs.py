"""Runs: one capability, executed once."""

import json

import pytest
from pydantic import ValidationError

from tests.capabilities.conftest import mp3
from tests.contract.raw_http import Json, RawCaller, build_run_body
from toolkit import Client, Workflow


def test_readers_share_no_record(client: Client) -> None:
    """Given records of runs, then a reader's change affects no other reader, nor the routing.

    Runs that measure the same share one routing decision.
    """
    first, second = (
        client.runs.create("llm.generate", {"objective": f"A line on tea, {n}"}).wait()
        for n in (1, 2)
    )
    for mapping in (first.record.input, first.record.output, first.record.usage):
        mapping.clear()
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


def test_speaks_with_a_cloned_voice(client: Client) -> None:
    """Given reference audio, then a run or a dependent node can speak with the cloned voice."""
    reference_id = client.artifacts.upload(mp3(12.0), filename="me.mp3").id
    input = {"reference_audio": reference_id, "name": "narrator"}
    voice = client.runs.create("voice.clone", input).wait().output["voice"]
    speech = {"text": "Hello from a new voice.", "voice": voice}
    assert client.runs.create("speech.generate", speech).wait().status == "completed"
    wf = Workflow("a new voice at once")
    clone = wf.add("voice", "voice.clone", input)
    wf.add("speech", "speech.generate", text="Hello.", depends_on=[clone])
    nodes = client.workflows.submit(wf).wait().nodes
    first, second = (client.jobs.get(node.job_id).record.output for node in nodes)
    assert first["voice"] == second["voice"]


def test_a_run_and_its_job_have_the_same_events(client: Client) -> None:
    """Given a completed run, then its job has its output, and events without gaps."""
    run = client.runs.create("research.gather", {"topic": "Tea"}).wait()
    job = client.jobs.get(run.record.job_id)
    assert run.id.startswith("run_")
    assert job.id.startswith("job_")
    assert json.dumps(job.record.output) == json.dumps(run.output)
    events = client.runs.events(run.id)
    assert [event.n for event in events] == list(range(1, len(events) + 1))
    assert [events[0].type, events[-1].type] == ["run.queued", "run.completed"]
    types = [event.type for event in client.jobs.events(job.id)]
    assert types == [event.type.replace("run.", "job.", 1) for event in events]


@pytest.mark.parametrize(
    ("name", "changes", "status"),
    [
        ("llm.generate", {}, "completed"),
        ("llm.generate", {"tags": ["tea", "né"], "note": "first"}, "completed"),
        ("llm.generate", {"options": {"max_cost_usd": 0.5, "optimize_for": "cost"}}, "completed"),
        ("research.gather", {}, "completed"),
        ("llm.generate", {"options": {"deadline_s": 0.001}}, "failed"),
    ],
)
def test_a_held_answer_is_what_a_later_read_returns(
    caller: RawCaller, name: str, changes: Json, status: str
) -> None:
    """Given a run whose caller waits for its end, then the answer equals a read of the run."""
    fields = {"topic": "Tea"} if name == "research.gather" else {"objective": "né 🍵"}
    body = build_run_body(name, fields, **changes)
    answer = caller.send("POST", "/v1/runs", body, prefer="wait=30")
    held = answer.json()
    assert (answer.status_code, held["status"]) == (202, status)
    assert held == caller.get(f"/v1/runs/{held['id']}")
