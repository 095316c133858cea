"""Jobs, the only records that execute a capability, and their description of themselves."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import ConfigDict, Discriminator, Field, Tag

from toolkit.contract.base import (
    ErrorInfo,
    JsonObject,
    Record,
    Request,
    SharedRecord,
    Timestamp,
    Usd,
)
from toolkit.contract.choices import OfferedTier, OptimizeFor, Tier, When

JobStatus = Literal["queued", "running", "completed", "failed", "cancelled"]
FinalStatus = Literal["completed", "failed", "cancelled"]
FROM_ARTIFACTS = "from_artifacts"  # the member of a job's input that the service itself sets
FINAL_STATUSES: frozenset[str] = frozenset({"completed", "failed", "cancelled"})
CostSource = Literal["reported", "metered", "estimated", "unknown"]
BreakerState = Literal["closed", "open", "half_open"]
AttemptStatus = Literal["running", "completed", "failed", "cancelled", "interrupted"]


ProviderName = Annotated[str, Field(min_length=1, max_length=192)]
# Lists in JSON, tuples here: options are hashable. The fields are strict otherwise.
ProviderNames = Annotated[tuple[ProviderName, ...], Field(strict=False, max_length=64)]


class ProviderLists(Request):
    """The providers to choose from, each named as a pin names it."""

    only: ProviderNames | None = Field(
        default=None,
        min_length=1,
        description="providers, connections or models (`openai/MODEL`) that may serve the work;"
        " it falls back only between them",
    )
    ignore: ProviderNames = Field(
        default=(),
        description="providers, connections or models (`openai/MODEL`) that may not serve the work",
    )


def _tag_provider(value: object) -> str:
    """Name the form of a choice, so that a fault is reported for one form only."""
    return "lists" if isinstance(value, Mapping | ProviderLists) else "name"


ProviderOption = Annotated[
    Annotated[ProviderName, Tag("name")] | Annotated[ProviderLists, Tag("lists")],
    Discriminator(_tag_provider),
]


class Options(Request):
    """The ways in which a run, job or node may be carried out.

    This is where an option is defined: the client, the command line, magics and forms take theirs
    from `toolkit.contract.run_options`, which `scripts/fix` writes from it.
    """

    optimize_for: OptimizeFor | None = Field(
        default=None,
        description="goal of the router; without a goal, the capability's default provider is used",
    )
    provider: ProviderOption | None = Field(
        default=None,
        description="provider that must serve the work: a provider id such as `openai`, or"
        " the `prv_` id of a connection, each also with a model (`openai/MODEL`); a pinned"
        " provider never falls back to another",
    )
    tier: Tier = Field(
        default="standard",
        description="service tier to ask for: `standard`, or `flex`, which is slower and about"
        " half the price; a model without it is asked at the standard price",
    )
    when: When = Field(
        default="now",
        description="`now`, or `batch`: the rows of a map become batches of the vendor, which cost"
        " about half the price and may take a day",
    )
    endpoint_id: str | None = Field(
        default=None,
        max_length=64,
        description="id (`ep_…`) of the serverless endpoint for GPU work",
    )
    compute_id: str | None = Field(
        default=None,
        max_length=64,
        description="id (`cmp_…`) of the pod for GPU work, instead of an endpoint",
    )
    max_cost_usd: Usd | None = Field(
        default=None, description="maximum cost in US dollars; costlier work is refused or stopped"
    )
    fallback_on_rejection: bool = Field(
        default=False, description="try the next connection if a vendor rejects the input"
    )
    cache: bool = Field(
        default=False,
        description="reuse the result of an equal job of yours, and keep this result for"
        " later jobs; the client's own choice by default",
    )
    sealed: bool | Annotated[str, Field(min_length=1, max_length=128)] | None = Field(
        default=None,
        description="refuse a second model or host for the same capability: within this workflow"
        " or run, or within all work that names the same seal",
    )
    deadline_s: float | None = Field(
        default=None,
        gt=0,
        le=7 * 86_400,
        description="maximum seconds from its start, after which it fails; a vendor's call in"
        " progress is cancelled, and counts as spent",
    )

    @property
    def asked_tier(self) -> OfferedTier:
        """The tier that a model is asked for if it has it: `tier`, or that of batches."""
        return "batch" if self.when == "batch" else self.tier

    @property
    def pin(self) -> str | None:
        """The pinned provider or connection, without its model; None for lists."""
        return self.provider.partition("/")[0] if isinstance(self.provider, str) else None


class JobCreate(Request):
    """`POST /v1/jobs`: work on a compute that the caller made.

    Attributes:
        type: kind of work, by the `job.type` of a capability.
    """

    type: str = Field(min_length=1, max_length=64)
    compute_id: str = Field(max_length=64)
    input: JsonObject
    options: Options = Options()


class Candidate(Record):
    """A connection and model that the router considered, and why it was kept or dropped.

    Attributes:
        score: score from 0 to 1, by the policy's weights.
        allowed: whether the request permits it; False if the request pins another provider.
        affordable: whether the rest of its budgets covers its maximum cost.
        healthy: whether it may be called now; `breaker` is the state of its circuit breaker.
        estimated_cost_usd: expected US dollars for this input; null if unknown.
        reservation_usd: maximum US dollars of one call, which a budget must cover; null if unknown.
        max_tokens: cap on the answer, if a budget lowered a cap that nobody had set.
        latency_p50_ms: median of recent calls, in milliseconds; null before the first call.
        error_rate: share of the connection's last calls that failed.
        quality: tier of the model: 1 economy, 2 standard, 3 premium.
        tier: service tier that it would be asked for.
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
    tier: OfferedTier = "standard"


class Routing(SharedRecord):
    """The recorded decision of the router; the first candidate not excluded is called first.

    Attributes:
        candidates: connections and models that were considered, without those that are not
            connected and, unless a goal is set, models that are not their provider's default.
            `POST /v1/route` shows these, too.
    """

    policy: str
    candidates: tuple[Candidate, ...] = ()


class Attempt(Record):
    """One try at a vendor (or on this machine's CPU).

    Attributes:
        http_status: status of the vendor's answer, if the vendor answered with an error.
        upstream: host that served the vendor's answer, as `Job.upstream`.
        tier: billed service tier, as `Job.tier`.
        reservation_usd: US dollars reserved for it before the call; null if unknown.
        max_tokens: cap on the answer, if a budget lowered a cap that nobody had set.
    """

    n: int
    provider: str | None = None
    model: str | None = None
    upstream: str | None = None
    tier: str | None = None
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
    """A job from its request to its end; `output` is set once it is completed.

    Attributes:
        upstream: host that served the provider's answer, if the provider passes requests on and
            names it, as OpenRouter does; null otherwise.
        tier: service tier that was billed, such as `standard` or `flex`; null if the provider
            names none.
        estimated_cost_usd: expected cost of the last call, in US dollars.
        cost_usd: bill for the calls behind its result; without a result, the cost paid all the
            same. 0 without any call; null if a call's price is unknown.
        cost_incurred_usd: total paid, in US dollars, with failed attempts and retries. Budgets
            count this figure.
        cost_source: source of `cost_usd`: the vendor, list prices of metered units, the estimate,
            or unknown.
    """

    id: str
    capability: str = Field(description="name@version")
    input: JsonObject = Field(
        description="input of the capability; for a dependent node also `from_artifacts`, the"
        " artifact id by upstream node id"
    )
    options: Options = Options()
    status: JobStatus = "queued"
    status_detail: str | None = None
    workflow_id: str | None = None
    node_id: str | None = None
    map_id: str | None = None
    run_id: str | None = None
    compute_id: str | None = None
    provider: str | None = None
    model: str | None = None
    upstream: str | None = None
    tier: str | None = None
    connection_id: str | None = None
    output: JsonObject | None = None
    artifact_id: str | None = None
    error: ErrorInfo | None = None
    estimated_cost_usd: Usd | None = None
    reservation_usd: Usd | None = Field(
        default=None, description="maximum cost of its last call, in US dollars"
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
        default=None, description="job whose result was reused, at no cost"
    )
    created_at: Timestamp
    started_at: Timestamp | None = None
    completed_at: Timestamp | None = None
