"""The engine's record of a job, the wire's models of it, and the document that is stored."""

import json
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from toolkit.contract.base import now
from toolkit.contract.jobs import Attempt, Candidate, Job, Routing
from toolkit.engine.job_record import (
    AttemptRecord,
    JobRecord,
    RankedCandidate,
    Ranking,
    read_job,
    read_wire_job,
)

AMOUNTS = st.one_of(st.none(), st.floats(0, 10_000, allow_nan=False))
STARTED_AT = now()


@st.composite
def build_jobs(draw: st.DrawFn) -> Job:
    """Draw a job of the wire with what calls may cost."""
    attempts = [
        Attempt(
            n=n + 1,
            provider="openai",
            status=draw(st.sampled_from(["running", "completed", "failed", "interrupted"])),
            cost_usd=draw(AMOUNTS),
            reservation_usd=draw(AMOUNTS),
            started_at=STARTED_AT,
        )
        for n in range(draw(st.integers(0, 3)))
    ]
    candidate = Candidate(
        provider="openai",
        reason="connected",
        estimated_cost_usd=draw(AMOUNTS),
        reservation_usd=draw(AMOUNTS),
    )
    return Job(
        id="job_a",
        capability="llm.generate@1",
        input={"objective": "Tea"},
        estimated_cost_usd=draw(AMOUNTS),
        cost_usd=draw(AMOUNTS),
        cost_incurred_usd=draw(st.floats(0, 10_000)),
        routing=Routing(policy="default", candidates=[candidate]),
        attempts=attempts,
        created_at=STARTED_AT,
    )


@given(build_jobs())
def test_what_is_stored_is_what_the_wire_shows(job: Job) -> None:
    """Given a job of an earlier version's store, then it is read, shown and stored again as is."""
    stored = job.model_dump_json(exclude_none=True)
    record = read_job({"doc": stored})
    assert record.to_wire() == read_wire_job({"doc": stored}) == job
    assert json.loads(record.to_json()) == {**json.loads(stored), "from_artifacts": {}}


@given(build_jobs())
def test_only_a_call_under_way_is_yet_to_be_counted(job: Job) -> None:
    """Given a job that was read, then its calls are counted but for the one that was cut off."""
    record = read_job({"doc": job.model_dump_json()})
    assert [one.is_counted for one in record.attempts] == [
        one.status != "running" for one in job.attempts
    ]
    assert "is_counted" not in record.to_json()


def test_upstream_is_stored_apart_and_shown_in_the_input() -> None:
    """Given a node's job, then its input is as it was given in the store, and whole on the wire."""
    record = JobRecord(
        id="job_a",
        capability="composition.layout@1",
        input={"title": "Tea"},
        created_at=STARTED_AT,
        from_artifacts={"text": "art_a"},
    )
    assert json.loads(record.to_json())["input"] == {"title": "Tea"}
    shown = record.to_wire()
    assert shown.input == {"title": "Tea", "from_artifacts": {"text": "art_a"}}
    assert read_wire_job({"doc": record.to_json()}) == shown
    assert read_job({"doc": record.to_json()}) == record


@pytest.mark.parametrize("amount", ["-1", '"abc"', "NaN", "null"])
def test_a_damaged_amount_is_refused(amount: str) -> None:
    """Given a document whose amount is none, then it cannot be read, as any other damaged one."""
    stored = json.loads(JobRecord("job_a", "a@1", {}, STARTED_AT).to_json())
    del stored["cost_incurred_usd"]
    damaged = f'{json.dumps(stored)[:-1]}, "cost_incurred_usd": {amount}}}'
    with pytest.raises(ValidationError):
        read_job({"doc": damaged})


@pytest.mark.parametrize(
    ("record", "model", "own"),
    [
        (JobRecord, Job, {"from_artifacts"}),
        (AttemptRecord, Attempt, {"is_counted"}),
        (RankedCandidate, Candidate, set()),
        (Ranking, Routing, set()),
    ],
)
def test_a_record_has_the_members_of_its_model(
    record: type[JobRecord], model: type[Job], own: set[str]
) -> None:
    """Given the wire's model, then the engine's record has each member, and what is its own."""
    assert {one.name for one in fields(record)} == model.model_fields.keys() | own
