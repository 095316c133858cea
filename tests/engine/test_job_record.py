"""The engine's record of a job, the wire's models of it, and the stored document."""

import json
import zlib
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from toolkit.contract.base import dump_record, format_rfc3339, now
from toolkit.contract.jobs import Attempt, Candidate, Job, Routing
from toolkit.engine.job_record import AttemptRecord, JobRecord, read_job, read_wire_job
from toolkit.engine.ranking import PACKED_MEMBERS, Ranking, unpack_ranking

AMOUNTS = st.none() | st.floats(0, 10_000, allow_nan=False)
STARTED_AT = now()
ATTEMPTS = st.builds(
    Attempt,
    n=st.integers(1, 9),
    provider=st.just("openai"),
    status=st.sampled_from(["running", "completed", "failed", "interrupted"]),
    cost_usd=AMOUNTS,
    reservation_usd=AMOUNTS,
    started_at=st.just(STARTED_AT),
)
CANDIDATES = st.builds(
    Candidate,
    provider=st.sampled_from(["openai", "google"]),
    model=st.sampled_from([None, "m"]),
    reason=st.text(),
    score=st.none() | st.floats(0, 1),
    excluded=st.booleans(),
    estimated_cost_usd=AMOUNTS,
    reservation_usd=AMOUNTS,
    latency_p50_ms=st.none() | st.floats(0, 1e6),
    breaker=st.sampled_from(["closed", "open", "half_open"]),
)
JOBS = st.builds(
    Job,
    id=st.just("job_a"),
    capability=st.just("llm.generate@1"),
    input=st.just({"objective": "Tea"}),
    estimated_cost_usd=AMOUNTS,
    cost_usd=AMOUNTS,
    cost_incurred_usd=st.floats(0, 10_000),
    routing=st.builds(
        Routing, policy=st.just("default"), candidates=st.lists(CANDIDATES, max_size=3)
    ),
    attempts=st.lists(ATTEMPTS, max_size=3),
    created_at=st.just(STARTED_AT),
)


EMPTY = JobRecord("job_a", "a@1", {}, STARTED_AT)


def make_row(record: JobRecord) -> dict[str, object]:
    """Make the row of a job that belongs to no run or workflow."""
    return {
        "id": record.id,
        "capability": record.capability,
        "created_at": format_rfc3339(record.created_at),
        "doc": record.to_json(),
        "ranking": record.packed_ranking,
    }


@given(JOBS)
def test_stores_and_shows_a_job_unchanged(job: Job) -> None:
    """Given a job of the wire, then it is read, shown and stored unchanged.

    Only the ranking is packed when it is stored.
    """
    wire = job.model_dump_json(exclude_none=True)
    record = read_job({"doc": wire})
    document = record.to_json()
    assert record.packed_ranking is not None
    for row in ({"doc": wire}, make_row(record)):
        assert read_job(row) == record
        assert read_job(row).to_wire() == read_wire_job(row) == job
    members = json.loads(wire)
    assert {**members, **json.loads(document)} == members  # members with default values are omitted


@given(JOBS)
def test_dumps_a_job_like_its_model(job: Job) -> None:
    """Given a job that is dumped twice, then its JSON is the model's JSON each time."""
    for _ in range(2):
        assert json.loads(dump_record(job)) == json.loads(job.model_dump_json(by_alias=True))
    assert job == Job.model_validate_json(dump_record(job))


def test_reads_rankings_of_other_versions() -> None:
    """Given rows with fewer or more members, then the known members are read."""
    for row in (["openai", "connected", "m"], ["openai", "connected", "m", *[None] * 20]):
        document = json.dumps(["cost", [row]]).encode()
        ranking = unpack_ranking(zlib.compress(document))
        assert ranking["policy"] == "cost"
        (candidate,) = ranking["candidates"]
        assert (candidate["provider"], candidate["reason"]) == ("openai", "connected")
        assert candidate.keys() <= Candidate.model_fields.keys()


@pytest.mark.parametrize("packed", [b"x", zlib.compress(b"[1]")])
def test_rejects_a_damaged_ranking(packed: bytes) -> None:
    """Given a packed ranking that is damaged, then the job cannot be read."""
    row = {**make_row(EMPTY), "ranking": packed}
    with pytest.raises(ValueError, match="damaged"):
        read_wire_job(row)
    with pytest.raises(ValidationError):
        read_job(row)


@given(JOBS)
def test_counts_all_calls_but_running_calls(job: Job) -> None:
    """Given a job that was read, then each call is counted unless it is running."""
    record = read_job({"doc": job.model_dump_json()})
    is_counted = [attempt.is_counted for attempt in record.attempts]
    assert is_counted == [attempt.status != "running" for attempt in job.attempts]
    assert "is_counted" not in record.to_json()


def test_stores_upstream_apart_and_shows_it_in_the_input() -> None:
    """Given a node's job, then its upstream artifacts are in the input only on the wire."""
    record = JobRecord(
        id="job_a",
        capability="composition.layout@1",
        input={"title": "Tea"},
        created_at=STARTED_AT,
        from_artifacts={"text": "art_a"},
    )
    assert json.loads(record.to_json())["input"] == {"title": "Tea"}
    job = record.to_wire()
    assert job.input == {"title": "Tea", "from_artifacts": {"text": "art_a"}}
    assert read_wire_job(make_row(record)) == job
    assert read_job(make_row(record)) == record


@pytest.mark.parametrize("amount", ["-1", '"abc"', "NaN", "null"])
def test_rejects_a_damaged_amount(amount: str) -> None:
    """Given a document with a value that is no amount, then the job cannot be read."""
    document = f'{EMPTY.to_json()[:-1]}, "cost_incurred_usd": {amount}}}'
    with pytest.raises(ValidationError, match="cost_incurred_usd"):
        read_job({**make_row(EMPTY), "doc": document})


@pytest.mark.parametrize(
    ("record", "model", "internal"),
    [
        (JobRecord, Job, {"from_artifacts", "unknown"}),
        (AttemptRecord, Attempt, {"is_counted"}),
        (Ranking, Routing, set()),
    ],
)
def test_a_record_has_the_members_of_its_model(
    record: type[JobRecord], model: type[Job], internal: set[str]
) -> None:
    """Given a model of the wire, then the engine's record has its members, and internal members."""
    assert {field.name for field in fields(record)} == model.model_fields.keys() | internal


def test_packs_every_member_of_a_candidate() -> None:
    """Given the members of a candidate, then a packed row has each, with new members at the end."""
    assert PACKED_MEMBERS[:3] == ("provider", "reason", "model")
    assert PACKED_MEMBERS[-1] == "tier"
    assert sorted(PACKED_MEMBERS) == sorted(Candidate.model_fields)
