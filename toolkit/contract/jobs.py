"""Jobs, the only thing that executes a capability, and what they say of themselves."""

from typing import Literal

from pydantic import ConfigDict, Field

from toolkit.contract.base import (
    ErrorInfo,
    JsonObject,
    Record,
    Request,
    SharedRecord,
    Timestamp,
    Usd,
)
from toolkit.contract.choices import OptimizeFor

JobStatus = Literal["queued", "running", "completed", "failed", "cancelled"]
FinalStatus = Literal["completed", "failed", "cancelled"]
FROM_ARTIFACTS = "from_artifacts"  # the member of a job's input that the service itself sets
FINAL_STATUSES: frozenset[str] = frozenset({"completed", "failed", "cancelled"})
CostSource = Literal["reported", "metered", "estimated", "unknown"]
BreakerState = Literal["closed", "open", "half_open"]
AttemptStatus = Literal["running", "completed", "failed", "cancelled", "interrupted"]


class Options(Request):
    """The ways in which a run, job or node may be carried out.

    This is where an option is defined: the client, the command line, magics and forms take theirs
    from `toolkit.contract.run_options`, which `scripts/fix` writes from it.
    """

    optimize_for: OptimizeFor | None = Field(
        default=None,
        description="what the router favours; none means the capability's default provider",
    )
    provider: str | None = Field(
        default=None,
        min_length=1,
        max_length=64,
        description="the provider that has to serve it: a provider id such as `openai`, or the"
        " `prv_` id of one connection; what is pinned never falls back to another provider",
    )
    endpoint_id: str | None = Field(
        default=None,
        max_length=64,
        description="the `ep_` id of the serverless endpoint that GPU work runs on",
    )
    compute_id: str | None = Field(
        default=None,
        max_length=64,
        description="the `cmp_` id of the pod that GPU work runs on, instead of an endpoint",
    )
    max_cost_usd: Usd | None = Field(
        default=None, description="spend at most this, in US dollars: refuse, or stop, instead"
    )
    fallback_on_rejection: bool = Field(
        default=False, description="try the next connection with an input that a vendor refused"
    )
    cache: bool = Field(
        default=False,
        description="use the result of an equal job of yours again, and keep this one's for the"
        " next; the client's own choice by default",
    )
    deadline_s: float | None = Field(
        default=None,
        gt=0,
        le=7 * 86_400,
        description="fail rather than take longer, in seconds from when it is taken up; what a"
        " vendor is still doing then is cancelled, and counts as spent",
    )


class JobCreate(Request):
    """`POST /v1/jobs`: work on a compute that the caller made.

    Attributes:
        type: what to do, by the `job.type` of a capability.
    """

    type: str = Field(min_length=1, max_length=64)
    compute_id: str = Field(max_length=64)
    input: JsonObject
    options: Options = Options()


class Candidate(Record):
    """A connection and model that the router looked at, and why it was kept or dropped.

    Attributes:
        score: from 0 to 1, by the policy's weights.
        allowed: whether the request leaves it a choice: not by a pin of another provider.
        affordable: whether what its budgets leave covers the most that it may come to.
        healthy: whether it may be called now; `breaker` is the state of its circuit breaker.
        estimated_cost_usd: the expected dollars for this very input; none if unknown.
        reservation_usd: the most that one call may come to, which a budget has to cover; none if
            its price or its bound is unknown.
        max_tokens: the cap on the answer, where a budget lowered one that nobody had set.
        latency_p50_ms: the median of what calls have taken lately; none before the first.
        error_rate: the share of the connection's last calls that failed.
        quality: the model's tier: 1 economy, 2 standard, 3 premium.
    """

    model_config = ConfigDict(frozen=True)  # it is part of a decision that records share

    provider: str
    model: str | None = None
    score: float | None = None
    reason: str
    excluded: bool = False
    allowed: bool = True
    connected: bool = True
    affordable: bool = True
    healthy: bool = True
    connection_id: str | None = None
    estimated_cost_usd: Usd | None = None
    reservation_usd: Usd | None = None
    max_tokens: int | None = None
    latency_p50_ms: float | None = None
    latency_p95_ms: float | None = None
    error_rate: float | None = None
    breaker: BreakerState = "closed"
    quality: int | None = None


class Routing(SharedRecord):
    """The recorded decision of the router; the first candidate not excluded is called first."""

    policy: str
    candidates: tuple[Candidate, ...] = ()


class Attempt(Record):
    """One try at a vendor (or on this machine's CPU).

    Attributes:
        http_status: what the vendor answered with, where it failed with an answer.
        reservation_usd: what was reserved for it before the call; none if unknown.
        max_tokens: the cap on the answer, where a budget lowered one that nobody had set.
    """

    n: int
    provider: str | None = None
    model: str | None = None
    connection_id: str | None = None
    status: AttemptStatus
    error: ErrorInfo | None = None
    vendor_request_id: str | None = None
    http_status: int | None = None
    cost_usd: Usd | None = None
    reservation_usd: Usd | None = None
    max_tokens: int | None = None
    started_at: Timestamp
    ended_at: Timestamp | None = None


class Job(Record):
    """A job, from asked for to done; `output` is there once it is completed.

    Attributes:
        estimated_cost_usd: what the call that was made last was expected to cost.
        cost_usd: once it is over, what the calls that its result came of were billed; of a job
            without a result, what was paid all the same. 0 where nothing was called; null where a
            call's price is not known.
        cost_incurred_usd: what was paid in all: failed attempts and retries too. Budgets go by it.
        cost_source: how `cost_usd` is known: as the vendor says, by list prices of what it
            metered, by what was expected, or not at all.
    """

    id: str
    capability: str = Field(description="name@version")
    input: JsonObject = Field(
        description="a dependent node's has `from_artifacts` too: upstream node id to artifact id"
    )
    options: Options = Options()
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
    estimated_cost_usd: Usd | None = None
    reservation_usd: Usd | None = Field(
        default=None, description="the most that its last call could come to"
    )
    cost_usd: Usd | None = None
    cost_incurred_usd: Usd = 0.0
    cost_source: CostSource = "unknown"
    # Made by a factory: a default that can be changed is deep-copied for every record.
    usage: JsonObject = Field(default_factory=dict)
    routing: Routing | None = None
    attempts: list[Attempt] = Field(default_factory=list)
    retry_count: int = 0
    latency_ms: int | None = None
    queue_ms: int | None = Field(
        default=None,
        description="milliseconds that the job waited for a job slot and for CPU slots",
    )
    cached: bool = False
    cached_from: str | None = Field(
        default=None, description="the job whose result was used again, at no cost"
    )
    created_at: Timestamp
    started_at: Timestamp | None = None
    completed_at: Timestamp | None = None
