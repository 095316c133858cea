"""The engine's record of a job: its stored form, and the source of the API's models.

Amounts are exact here; the stored JSON has numbers for them, like the API. Here, results from
upstream are separate from the input; in the API they are part of it, as specified. So a node's
input stays as its capability's schema describes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Annotated, Any

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
)
from pydantic_core import from_json, to_json

from toolkit.contract.base import (
    ErrorInfo,
    JsonObject,
    RecordDocument,
    SharedRecord,
    Timestamp,
    WrittenRecord,
)
from toolkit.contract.jobs import (
    FROM_ARTIFACTS,
    AttemptStatus,
    CostSource,
    Job,
    JobStatus,
    Options,
)
from toolkit.contract.money import ZERO_USD
from toolkit.contract.runs import Run
from toolkit.engine.ranking import Ranking, StoredUsd, read_routing, unpack_ranking


def _read_ranking(ranking: object) -> object:
    """Unpack a router's decision that is stored as bytes; return any other value unchanged."""
    return unpack_ranking(ranking) if isinstance(ranking, bytes) else ranking


StoredRanking = Annotated[Ranking | None, BeforeValidator(_read_ranking), Field(exclude=True)]


@dataclass(slots=True)
class AttemptRecord:
    """One try at a vendor or on this machine, as `Attempt` describes it; the costs are exact.

    Attributes:
        is_counted: whether the account's usage includes it; never stored, because the transaction
            that records its end also counts it.
    """

    n: int
    status: AttemptStatus
    started_at: Timestamp
    provider: str | None = None
    model: str | None = None
    upstream: str | None = None
    tier: str | None = None
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
        from_artifacts: ids of its input artifacts, by the id of the upstream node.
        unknown: members of the stored document that a later version has added; they are kept.
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
    estimated_cost_usd: StoredUsd | None = None
    reservation_usd: StoredUsd | None = None
    cost_usd: StoredUsd | None = None
    cost_incurred_usd: StoredUsd = ZERO_USD
    cost_source: CostSource = "unknown"
    usage: JsonObject = field(default_factory=dict)
    routing: StoredRanking = None
    attempts: list[AttemptRecord] = field(default_factory=list)
    retry_count: int = 0
    latency_ms: int | None = None
    queue_ms: int | None = None
    cached: bool = False
    cached_from: str | None = None
    started_at: Timestamp | None = None
    completed_at: Timestamp | None = None
    from_artifacts: dict[str, str] = field(default_factory=dict)
    unknown: Annotated[JsonObject, Field(exclude=True)] = field(default_factory=dict)

    def to_json(self) -> str:
        """Return the document to store, without default values and without the columns' members."""
        document = _STORED_JOB.dump_json(
            self, exclude=_IN_COLUMNS, exclude_none=True, exclude_defaults=True
        )
        if self.unknown:
            document = b"%s,%s" % (document[:-1], to_json(self.unknown)[1:])
        return document.decode()

    @property
    def packed_ranking(self) -> bytes | None:
        """The router's decision in its compressed, stored form; None before the job was routed."""
        return None if self.routing is None else self.routing.packed

    def to_wire(self) -> Job:
        """Make the API's model of the job."""
        return Job.model_validate(self._to_wire_members())

    def to_run(self) -> Run:
        """Make the API's run model of a job that was requested alone."""
        return Run.model_validate(_make_run_members(self._to_wire_members()))

    def write_run(self, tags: Sequence[str] = (), note: str | None = None) -> WrittenRecord:
        """Write the run of `to_run` with its annotations, without making its model first."""
        if self.run_id is None:
            raise ValueError(f"{self.id} is no run")
        members: dict[str, object] = {
            "id": self.run_id,
            "job_id": self.id,
            "task_id": None,
            "target": "capability",
            "tags": tags,
            "note": note,
        }
        shared: dict[str, SharedRecord] = {}
        if self.routing is None:
            members["routing"] = None
        else:
            shared["routing"] = self.routing.wire
        others = _STORED_JOB.dump_json(self, exclude=_OTHERWISE_WRITTEN)
        body = b"%s,%s" % (to_json(members)[:-1], others[1:])
        return WrittenRecord(self.run_id, self.status, self.error, RecordDocument(body, shared))

    def _to_wire_members(self) -> dict[str, Any]:
        members = _STORED_JOB.dump_python(self, exclude_none=True)
        if self.routing is not None:
            members["routing"] = self.routing.wire
        return _make_wire_members(members)


_STORED_JOB = TypeAdapter(JobRecord)
# A run has no upstream nodes; `write_run` writes its ids.
_OTHERWISE_WRITTEN = {"id", FROM_ARTIFACTS}
_MEMBERS = frozenset(member.name for member in fields(JobRecord))
# They never change. The status is in the document, too, which may be ahead of the row.
_IN_COLUMNS = {"id", "capability", "created_at", "run_id", "workflow_id", "node_id"}


def read_job(row: Mapping[str, Any]) -> JobRecord:
    """Read a job from its row, also if a later version of the engine wrote it."""
    document = _load_stored(row)
    job = _STORED_JOB.validate_python(document)
    if unknown := document.keys() - _MEMBERS:
        job.unknown = {name: document[name] for name in unknown}
    for attempt in job.attempts:
        attempt.is_counted = attempt.status != "running"
    return job


def read_wire_job(row: Mapping[str, Any]) -> Job:
    """Read a row of the store as the API's job, at half the cost of reading a record."""
    return Job.model_validate(_make_wire_members(_load_stored(row)))


def read_wire_run(row: Mapping[str, Any]) -> Run:
    """Read a row of the store, of a job that was requested alone, as the API's run."""
    return Run.model_validate(_make_run_members(_make_wire_members(_load_stored(row))))


def _load_stored(row: Mapping[str, Any]) -> dict[str, Any]:
    """Load the members of a job from its row; the router's decision stays packed in `routing`."""
    document: dict[str, Any] = from_json(row["doc"])
    document |= {name: row[name] for name in _IN_COLUMNS if row.get(name) is not None}
    if packed := row.get("ranking"):
        document["routing"] = packed
    return document


def _make_run_members(members: dict[str, Any]) -> dict[str, Any]:
    return {**members, "id": members["run_id"], "job_id": members["id"]}


def _make_wire_members(document: dict[str, Any]) -> dict[str, Any]:
    if upstream := document.pop(FROM_ARTIFACTS, None):
        document["input"] = {**document["input"], FROM_ARTIFACTS: upstream}
    if isinstance(packed := document.get("routing"), bytes):
        document["routing"] = read_routing(packed)
    return document
