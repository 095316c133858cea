"""The engine's record of a job, the wire's models of it, and the document that is stored."""

import json
import zlib
from dataclasses import fields
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from toolkit.contract.base import dump_record, now
from toolkit.contract.ids import Prefix, new_id
from toolkit.contract.jobs import Attempt, Candidate, Job, Routing
from toolkit.engine.job_record import AttemptRecord, JobRecord, read_job, read_wire_job
from toolkit.engine.ranking import PACKED_MEMBERS, RankedCandidate, Ranking, unpack_ranking

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
    candidates = [
        Candidate(
            provider=draw(st.sampled_from(["openai", "google"])),
            model=draw(st.one_of(st.none(), st.just("m"))),
            reason=draw(st.text()),
            score=draw(st.one_of(st.none(), st.floats(0, 1))),
            excluded=draw(st.booleans()),
            estimated_cost_usd=draw(AMOUNTS),
            reservation_usd=draw(AMOUNTS),
            latency_p50_ms=draw(st.one_of(st.none(), st.floats(0, 1e6))),
            breaker=draw(st.sampled_from(["closed", "open", "half_open"])),
        )
        for _ in range(draw(st.integers(0, 3)))
    ]
    return Job(
        id="job_a",
        capability="llm.generate@1",
        input={"objective": "Tea"},
        estimated_cost_usd=draw(AMOUNTS),
        cost_usd=draw(AMOUNTS),
        cost_incurred_usd=draw(st.floats(0, 10_000)),
        routing=Routing(policy="default", candidates=candidates),
        attempts=attempts,
        created_at=STARTED_AT,
    )


@given(build_jobs())
def test_what_is_stored_is_what_the_wire_shows(job: Job) -> None:
    """Given a job as the wire shows it, then it is read, shown and stored again as is.

    Only the router's decision is stored packed, and shown as it was.
    """
    wire = job.model_dump_json(exclude_none=True)
    record = read_job({"doc": wire})
    stored = record.to_json()
    packed = record.packed_ranking
    assert packed is not None
    for row in ({"doc": wire}, {"doc": stored, "ranking": packed}):
        assert read_job(row) == record
        assert read_job(row).to_wire() == read_wire_job(row) == job
    members = json.loads(stored)
    spelled_out = json.loads(wire)
    assert {**spelled_out, **members} == spelled_out  # what is at its default is left out


@given(build_jobs())
def test_a_shared_decision_is_written_like_any_other(job: Job) -> None:
    """Given a job that is written twice, then its JSON says both times what the model says."""
    for _ in range(2):
        assert json.loads(dump_record(job)) == json.loads(job.model_dump_json(by_alias=True))
    assert job == Job.model_validate_json(dump_record(job))


def test_a_decision_is_stored_small() -> None:
    """Given a usual decision, then it takes a fifth of what it takes spelled out, or less."""
    candidates = [
        RankedCandidate(
            provider=f"vendor-{n % 6}",
            model=f"model-of-some-name-{n}",
            reason="not its default model" if n > 5 else "connected",
            score=round(1 / (n + 1), 6),
            excluded=n > 5,
            connection_id=new_id(Prefix.CONNECTION) if n < 6 else None,
            estimated_cost_usd=Decimal(n).scaleb(-7),
            reservation_usd=Decimal(3 * n).scaleb(-7),
            quality=n % 3 + 1,
        )
        for n in range(23)
    ]
    ranking = Ranking("default", candidates)
    spelled_out = ranking.wire.model_dump_json(exclude_none=True)
    assert len(ranking.packed) < len(spelled_out) / 5


def test_what_another_version_packed_is_read() -> None:
    """Given rows with fewer members and with more, then those that are known are read."""
    for row in (["openai", "connected", "m"], ["openai", "connected", "m", *[None] * 20]):
        document = json.dumps(["cost", [row]]).encode()
        shown = unpack_ranking(zlib.compress(document))
        assert shown["policy"] == "cost"
        (candidate,) = shown["candidates"]
        assert (candidate["provider"], candidate["reason"]) == ("openai", "connected")
        assert candidate.keys() <= Candidate.model_fields.keys()


@pytest.mark.parametrize("packed", [b"x", zlib.compress(b"[1]")])
def test_a_damaged_decision_is_refused(packed: bytes) -> None:
    """Given a packed decision that is none, then the job cannot be read."""
    damaged = {"doc": JobRecord("job_a", "a@1", {}, STARTED_AT).to_json(), "ranking": packed}
    with pytest.raises(ValueError, match="damaged"):
        read_wire_job(damaged)
    with pytest.raises(ValidationError):
        read_job(damaged)


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
    damaged = f'{json.dumps(stored)[:-1]}, "cost_incurred_usd": {amount}}}'
    with pytest.raises(ValidationError):
        read_job({"doc": damaged})


@pytest.mark.parametrize(
    ("record", "model", "own"),
    [
        (JobRecord, Job, {"from_artifacts", "unknown"}),
        (AttemptRecord, Attempt, {"is_counted"}),
        (Ranking, Routing, set()),
    ],
)
def test_a_record_has_the_members_of_its_model(
    record: type[JobRecord], model: type[Job], own: set[str]
) -> None:
    """Given the wire's model, then the engine's record has each member, and what is its own."""
    assert {one.name for one in fields(record)} == model.model_fields.keys() | own


def test_every_member_of_a_candidate_is_packed() -> None:
    """Given a candidate's members, then a packed row has a place for each.

    What is stored has them in this order: a new one goes to the end.
    """
    assert PACKED_MEMBERS[:3] == ("provider", "reason", "model")
    assert PACKED_MEMBERS[-1] == "quality"
    assert sorted(PACKED_MEMBERS) == sorted(Candidate.model_fields)
