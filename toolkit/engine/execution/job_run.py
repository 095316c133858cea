"""A job in progress: its record, its context, and the changes that save it."""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

from toolkit.contract.base import ErrorInfo, format_rfc3339, now
from toolkit.contract.jobs import FINAL_STATUSES, FinalStatus
from toolkit.contract.money import ZERO_USD, to_wire_usd
from toolkit.engine.execution.admission import Admitted
from toolkit.engine.execution.batch_place import BatchPlace
from toolkit.engine.job_record import AttemptRecord, JobRecord
from toolkit.engine.money.amounts import sum_costs
from toolkit.engine.money.budget import Budget
from toolkit.engine.services.artifacts import StoredArtifact
from toolkit.engine.services.usage import count_call, count_outcome, make_usage_count
from toolkit.plugins import Capability
from toolkit.store import (
    AppendEvent,
    Change,
    DeleteRow,
    IncrementColumns,
    InsertRow,
    Lease,
    ReplaceRow,
    RoomHold,
    Store,
    UpdateRow,
)

_NOT_ADMITTED = Admitted()
# The fields of a job that its events show, if known.
_EVENT_FIELDS = (
    "status_detail",
    "provider",
    "artifact_id",
    "cost_usd",
    "latency_ms",
    "cached_from",
)


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """The outcome of a job, which is on its way to the store.

    Attributes:
        artifact: the job's artifact; None if the job failed.
        durable: the future that is done when the job's end is durable.
    """

    artifact: StoredArtifact | None
    durable: "asyncio.Future[None]"


@dataclass(slots=True)
class JobRun:
    """One job that is run by the process holding its work item's lease.

    Attributes:
        resource_id: the run, workflow or map whose events report the job.
        kind: `run`, `job`, `node` or `row`, the first word of those events.
        stops_when_lasting: whether it is not retried unchanged after the same invalid output twice.
        upstream: the artifacts of the nodes it depends on, by node id.
        vendor_job_id: the vendor's id of the work that the job's last connection submitted and that
            may be in progress, to attach to it again.
        is_new: whether the job has no row yet.
        value: its validated input, if this process accepted it; None otherwise.
        admitted: what was found at its admission, if this process accepted it.
        started_monotonic: monotonic time at which this process began to run it; None before.
        provider_and_model: the last provider and model called, as the router names them.
        row: number of the row of a map that the job is for; its only event is its end.
        on_state: returns further changes to write with a new state.
        close_work_item: returns the change that closes its work item, if that ends with the job.
        earlier_attempts: number of attempts before the current try.
        digests: the SHA-256 of each artifact that its input names, by the artifact's id.
        state: digest of the capability's state for the key of a cached result; empty without one.
        state_check: digest of the capability's state before the call, to compare it afterwards.
        cache_claim: id of its claim in the cache of results, which its final write deletes.
        reply: builds the row of the reply that is stored together with the next call; None if none
            is to be kept.
        reply_ids: ids of its stored replies, which its final write deletes.
        useless_tries: number of its tries whose replies led to invalid output.
        batch: its place in a batch of its vendor; None if it is called at once.
        room: the disk space that is reserved for the result of its call; None before the first
            call.
    """

    job: JobRecord
    capability: Capability
    account_id: str
    lease: Lease
    resource_id: str
    kind: str
    budgets: tuple[Budget, ...] = ()
    max_retries: int = 0
    stops_when_lasting: bool = False
    upstream: Mapping[str, StoredArtifact] = field(default_factory=dict)
    vendor_job_id: str | None = None
    is_new: bool = False
    value: Any = None
    admitted: Admitted = _NOT_ADMITTED
    started_monotonic: float | None = None
    provider_and_model: tuple[str | None, str | None] = (None, None)
    row: int | None = None
    on_state: Callable[["JobRun"], list[Change]] | None = None
    close_work_item: Callable[[], Change] | None = None
    earlier_attempts: int = 0
    digests: dict[str, str] = field(default_factory=dict)
    state: str = ""
    state_check: str = ""
    cache_claim: str | None = None
    reply: Callable[[], ReplaceRow] | None = None
    reply_ids: list[str] = field(default_factory=list)
    useless_tries: int = 0
    batch: BatchPlace | None = None
    room: RoomHold | None = None

    def release_room(self, _commit: "asyncio.Future[None] | None" = None) -> None:
        """Release the disk space that is reserved for the job's result, if any."""
        if self.room is not None:
            self.room.release()
            self.room = None

    def collect_changes(self, state: str | None = None, at: datetime | None = None) -> list[Change]:
        """Collect the changes that save the job's current state, with an event for that state.

        A new job is inserted, with an event `queued` before the other.

        Args:
            state: state that the event reports; without it the only event is `queued`.
            at: time since which the state holds; now, by default.
        """
        changes: list[Change] = [
            self._make_insert()
            if self.is_new
            else UpdateRow("jobs", self.job.id, self._make_columns()),
            *self._count_calls(),
        ]
        if self.is_new and self.row is None:
            changes.append(self._make_event("queued", self.job.created_at))
        if state is not None:
            if self.row is None or state in FINAL_STATUSES:
                changes.append(self._make_event(state, at or now()))
            if self.on_state is not None:
                changes += self.on_state(self)
        self.is_new = False
        return changes

    def _count_calls(self) -> list[Change]:
        """Return the changes that add newly ended calls to the account's usage.

        Marks the calls, so that each is counted once.
        """
        attempts = [
            attempt
            for attempt in self.job.attempts
            if attempt.status != "running" and not attempt.is_counted
        ]
        for attempt in attempts:
            attempt.is_counted = True
        return [
            self._make_call_count(attempt) for attempt in attempts if attempt.provider is not None
        ]

    def _make_call_count(self, attempt: AttemptRecord) -> IncrementColumns:
        provider, connection_id = attempt.provider, attempt.connection_id
        counts = count_call(attempt)
        return make_usage_count(self.job, self.lease, provider, connection_id, counts, now())

    def _make_insert(self) -> InsertRow:
        job = self.job
        row: dict[str, object] = {
            "id": job.id,
            "account_id": self.account_id,
            "root_id": self.lease.root_id,
            "run_id": job.run_id,
            "workflow_id": job.workflow_id,
            "node_id": job.node_id,
            "capability": job.capability,
            "created_at": format_rfc3339(job.created_at),
            **self._make_columns(),
        }
        return InsertRow("jobs", row)

    def _make_columns(self) -> dict[str, object]:
        job = self.job
        return {
            "status": job.status,
            "provider": job.provider,
            "vendor_job_id": self.vendor_job_id,
            "doc": job.to_json,
            "ranking": job.packed_ranking,
        }

    def _make_event(self, state: str, at: datetime) -> AppendEvent:
        """Make the event of a state, for watchers of the run or workflow, or of the job."""
        job = self.job
        # Readers add the ids that an event's row names anyway.
        own_id = job.run_id or job.id
        data: dict[str, object] = {} if own_id == self.resource_id else {"id": own_id}
        if job.node_id is not None:
            data["node_id"] = job.node_id
        if self.row is not None:
            data["row"] = self.row
        for name in _EVENT_FIELDS:
            value = getattr(job, name)
            if value is not None:
                data[name] = to_wire_usd(value) if isinstance(value, Decimal) else value
        if job.retry_count:
            data["retry_count"] = job.retry_count
        if job.error is not None:
            data["error"] = job.error.model_dump(mode="json", exclude_none=True)
        return AppendEvent(
            self.resource_id, f"{self.kind}.{state}", data, format_rfc3339(at), job.id
        )

    def add_queue_time(self, seconds: float) -> None:
        """Count the wait for a CPU slot as time in the queue, and not as latency."""
        self.job.queue_ms = (self.job.queue_ms or 0) + int(seconds * 1000)
        if self.started_monotonic is not None:
            self.started_monotonic += seconds

    def collect_final_changes(
        self, status: FinalStatus, error: ErrorInfo | None = None
    ) -> list[Change]:
        """Put the job into a final state and collect the changes that save it."""
        job = self.job
        job.status = status
        job.status_detail = None
        job.error = error
        job.completed_at = now()
        if self.started_monotonic is not None:
            # Not from the timestamps, because the wall clock may have been set meanwhile.
            job.latency_ms = int((time.monotonic() - self.started_monotonic) * 1000)
        for attempt in job.attempts:
            if attempt.status == "running":
                attempt.ended_at = job.completed_at
                attempt.status = status
                # A call to a vendor is already settled; work on this machine is not billed.
                attempt.cost_usd = ZERO_USD if attempt.provider is None else None
        self._sum_costs(status)
        usage = make_usage_count(
            job, self.lease, job.provider, job.connection_id, count_outcome(job), job.completed_at
        )
        closing: list[Change] = [] if self.close_work_item is None else [self.close_work_item()]
        if self.cache_claim is not None:
            closing.append(DeleteRow("cache", self.cache_claim))
        closing += [DeleteRow("replies", reply_id) for reply_id in self.reply_ids]
        return [*self.collect_changes(status, job.completed_at), usage, *closing]

    def _sum_costs(self, status: FinalStatus) -> None:
        """Set the job's cost: of the calls that led to its result, or without one, of all calls."""
        job = self.job
        calls = [attempt for attempt in job.attempts if attempt.provider is not None]
        if calls and status == "completed":
            last_try = job.attempts[self.earlier_attempts :]
            calls = [
                attempt
                for attempt in last_try
                if attempt.provider and attempt.status == "completed"
            ]
        costs = [attempt.cost_usd for attempt in calls]
        job.cost_usd = sum_costs(costs)
        if job.cost_usd is None:
            job.cost_source = "unknown"
        elif not job.cost_usd:
            job.cost_source = "metered" if job.cost_source == "unknown" else job.cost_source
        elif any(attempt.cost_usd for attempt in calls if attempt.status != "completed"):
            job.cost_source = "estimated"  # no vendor reports the bill of a failed call


def requeue_interrupted(job: JobRecord) -> JobRecord:
    """Queue a job whose process died, with its attempt marked as interrupted.

    A document is stored in its state at the time of writing. It may therefore report an end whose
    artifact and event were to be written next: of that end only the paid cost is kept. A vendor
    that was being called may have done the work, so the possible cost of the call is counted as
    spent (decisions, "Unknown outcome").
    """
    if job.status in FINAL_STATUSES and job.attempts:
        job.attempts[-1].is_counted = False
    for attempt in job.attempts:
        if attempt.status == "running":
            attempt.status = "interrupted"
            attempt.ended_at = now()
            if attempt.provider is not None and attempt.reservation_usd is not None:
                attempt.cost_usd = attempt.reservation_usd
                job.cost_incurred_usd += attempt.reservation_usd
    job.status = "queued"
    job.status_detail = None
    job.output = job.artifact_id = job.error = None
    job.cost_usd = job.latency_ms = job.completed_at = None
    return job


def write_detail(store: Store, job_run: JobRun, detail: str | None) -> None:
    """Record why a job waits, or None once it does not, unless its record says so already."""
    if job_run.job.status_detail != detail:
        job_run.job.status_detail = detail
        store.write(job_run.collect_changes("running"), lease=job_run.lease)
