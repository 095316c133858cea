"""The engine's record of a job: what is stored of it, and what the wire's models are made from.

Amounts are exact here. The JSON that is stored has numbers for them, as the wire has: older
versions share the directory. What upstream gave stands apart from the input there, and in it on
the wire, as the specification says: so a node's input stays what its capability's schema describes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Any

from pydantic import ConfigDict, Field, GetPydanticSchema, PlainSerializer, TypeAdapter
from pydantic_core import from_json
from pydantic_core.core_schema import no_info_after_validator_function

from toolkit.contract.base import ErrorInfo, JsonObject, Timestamp, Usd
from toolkit.contract.jobs import (
    FROM_ARTIFACTS,
    AttemptStatus,
    BreakerState,
    CostSource,
    Job,
    JobStatus,
    Options,
    Routing,
)
from toolkit.contract.money import ZERO_USD, from_wire_usd, to_wire_usd

# Read as the wire's number, and then exact.
StoredUsd = Annotated[
    Decimal,
    GetPydanticSchema(
        lambda _, handler: no_info_after_validator_function(from_wire_usd, handler(Usd))
    ),
    PlainSerializer(to_wire_usd, return_type=float),
]


@dataclass(slots=True)
class RankedCandidate:
    """A candidate of the router, as `Candidate` describes it; the costs are exact."""

    provider: str
    reason: str
    model: str | None = None
    score: float | None = None
    excluded: bool = False
    allowed: bool = True
    connected: bool = True
    affordable: bool = True
    healthy: bool = True
    connection_id: str | None = None
    estimated_cost_usd: StoredUsd | None = None
    reservation_usd: StoredUsd | None = None
    max_tokens: int | None = None
    latency_p50_ms: float | None = None
    latency_p95_ms: float | None = None
    error_rate: float | None = None
    breaker: BreakerState = "closed"
    quality: int | None = None


@dataclass(slots=True)
class Ranking:
    """The router's decision; the first candidate that is not excluded is called first."""

    policy: str
    candidates: list[RankedCandidate] = field(default_factory=list)

    @property
    def first_choice(self) -> RankedCandidate | None:
        """The candidate that is called first; none where nobody may be called now."""
        return next((c for c in self.candidates if not c.excluded), None)

    def to_wire(self) -> Routing:
        """Make the decision that the wire shows."""
        return Routing.model_validate(_RANKING.dump_python(self, exclude_none=True))


@dataclass(slots=True)
class AttemptRecord:
    """One try at a vendor or on this machine, as `Attempt` describes it; the costs are exact.

    Attributes:
        is_counted: whether the account's usage includes it. That is not stored: what has ended is
            counted in the transaction that says so.
    """

    n: int
    status: AttemptStatus
    started_at: Timestamp
    provider: str | None = None
    model: str | None = None
    connection_id: str | None = None
    error: ErrorInfo | None = None
    vendor_request_id: str | None = None
    http_status: int | None = None
    cost_usd: StoredUsd | None = None
    reservation_usd: StoredUsd | None = None
    max_tokens: int | None = None
    ended_at: Timestamp | None = None
    is_counted: Annotated[bool, Field(exclude=True)] = False


@dataclass(slots=True)
class JobRecord:
    """A job as the engine works on it, as `Job` describes it; the costs are exact.

    Attributes:
        from_artifacts: the ids of the artifacts that it works from, by the id of the upstream node.
    """

    __pydantic_config__ = ConfigDict(hide_input_in_errors=True, ser_json_inf_nan="null")

    id: str
    capability: str
    input: JsonObject
    created_at: Timestamp
    options: Options = field(default_factory=Options)
    status: JobStatus = "queued"
    status_detail: str | None = None
    workflow_id: str | None = None
    node_id: str | None = None
    run_id: str | None = None
    compute_id: str | None = None
    provider: str | None = None
    model: str | None = None
    connection_id: str | None = None
    output: JsonObject | None = None
    artifact_id: str | None = None
    error: ErrorInfo | None = None
    estimated_cost_usd: StoredUsd | None = None
    reservation_usd: StoredUsd | None = None
    cost_usd: StoredUsd | None = None
    cost_incurred_usd: StoredUsd = ZERO_USD
    cost_source: CostSource = "unknown"
    usage: JsonObject = field(default_factory=dict)
    routing: Ranking | None = None
    attempts: list[AttemptRecord] = field(default_factory=list)
    retry_count: int = 0
    latency_ms: int | None = None
    queue_ms: int | None = None
    cached: bool = False
    cached_from: str | None = None
    started_at: Timestamp | None = None
    completed_at: Timestamp | None = None
    from_artifacts: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> str:
        """Write the document that is stored; none is each such member's default, and left out."""
        return _STORED_JOB.dump_json(self, exclude_none=True).decode()

    def to_wire(self) -> Job:
        """Make the job that the wire shows."""
        return _make_wire_job(_STORED_JOB.dump_python(self, exclude_none=True))


_STORED_JOB = TypeAdapter(JobRecord)
_RANKING = TypeAdapter(Ranking)


def read_job(row: Mapping[str, Any]) -> JobRecord:
    """Read a row of the store, of this version or an earlier one."""
    job = _STORED_JOB.validate_json(row["doc"])
    for attempt in job.attempts:
        attempt.is_counted = attempt.status != "running"
    return job


def read_wire_job(row: Mapping[str, Any]) -> Job:
    """Read a row of the store as the wire shows it, for half of what reading a record costs."""
    return _make_wire_job(from_json(row["doc"]))


def _make_wire_job(stored: dict[str, Any]) -> Job:
    """Make the wire's job from the members of a stored document."""
    if upstream := stored.pop(FROM_ARTIFACTS, None):
        stored["input"] = {**stored["input"], FROM_ARTIFACTS: upstream}
    return Job.model_validate(stored)
