"""The runner of a map whose rows become batches of their vendors, at about half the price.

A row is prepared like any other, up to its request. Requests of the same connection and model form
a batch. The batch and the jobs in it are committed before it is submitted, with our key, which is
also a part of each item's id. Its vendor may then take a day. If this process ends meanwhile, the
next one reads the batch on. If it ended while it submitted the batch, the next one finds the batch
at the vendor, or waits until it is certain that there is none: nothing is submitted twice.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, NamedTuple

import httpx

from toolkit.contract.base import format_rfc3339, now
from toolkit.contract.ids import Prefix, new_id
from toolkit.contract.jobs import FINAL_STATUSES
from toolkit.contract.maps import MapRecord
from toolkit.contract.money import ZERO_USD
from toolkit.engine.concurrency.cancellation import finish_before_cancel
from toolkit.engine.context import EngineContext
from toolkit.engine.execution.batch_client import (
    BatchClient,
    BatchLostError,
    OpenBatch,
    find_wire,
)
from toolkit.engine.execution.batch_place import BatchPlace, RequestParked
from toolkit.engine.execution.job_executor import JobExecutor
from toolkit.engine.execution.job_run import JobRun, requeue_interrupted
from toolkit.engine.execution.map_runner import MapRunner
from toolkit.engine.job_record import JobRecord, read_job
from toolkit.engine.money.amounts import from_nano_usd, to_nano_usd
from toolkit.engine.money.budget import Budget
from toolkit.engine.request_context import RequestContext
from toolkit.engine.services.artifacts import Artifacts
from toolkit.plugins import BatchItem, BatchResult, BatchWire, ProviderError
from toolkit.store import (
    AddSpending,
    Change,
    InsertRow,
    Lease,
    OverLimit,
    Row,
    UpdateRow,
)

# Bounds of the memory that a batch takes; vendors allow for more.
MAX_ITEMS: Final = 10_000
MAX_BYTES: Final = 32_000_000
GATHER_S: Final = 0.3  # rows that are added page by page belong into the same batch
LOOK_S: Final = 0.5  # between two looks whether the engine shuts down


class Draft(NamedTuple):
    """A row whose request is ready for a batch."""

    row: Row
    job_run: JobRun
    path: str
    body: bytes

    @property
    def bound_usd(self) -> Decimal:
        """The maximum cost of the request, in US dollars."""
        return self.job_run.job.attempts[-1].reservation_usd or ZERO_USD


@dataclass(slots=True)
class DraftGroup:
    """Requests for the same batch, and the bytes of their bodies."""

    drafts: list[Draft]
    byte_count: int = 0

    def is_full(self, wire: BatchWire) -> bool:
        """Check whether no other request fits in a batch of a vendor."""
        return len(self.drafts) >= min(wire.max_items, MAX_ITEMS) or self.byte_count >= min(
            wire.max_bytes // 2, MAX_BYTES
        )


class BatchMapRunner(MapRunner):
    """The runner of a map with the option `when="batch"`."""

    def __init__(
        self,
        core: EngineContext,
        executor: JobExecutor,
        artifacts: Artifacts,
        record: MapRecord,
        lease: Lease,
    ) -> None:
        super().__init__(core, executor, artifacts, record, lease)
        self._client = BatchClient(core, lease, self._capability.id)
        self._batches: dict[str, OpenBatch] = {}  # by our ids
        # The answers that refused a form of a row's request, by its number. After a crash they are
        # missing, and the same form is refused again.
        self._refusals: dict[int, list[httpx.Response]] = {}

    async def _recover(self) -> None:
        await super()._recover()
        await self._wait_for_pages()
        for row in await self._core.store.find_rows("map_batches", map_id=self.record.id):
            if row["status"] == "open":
                batch = await self._client.load(row)
                self._budget.hold(from_nano_usd(batch.nano))
                self._follow(batch)

    async def _run_pass(self) -> int:
        """Put all queued rows into batches, and wait until a batch ends or rows are added."""
        begun = await self._draft_rows()
        while self._workers and self._failure is None and not self._core.is_draining:
            await asyncio.wait(self._workers, timeout=LOOK_S, return_when=asyncio.FIRST_COMPLETED)
            if self._news.is_set():
                await self._wait_for_pages()
                return 1
            if self._idle.is_set():
                return 1
        if self._failure is not None:
            raise self._failure
        if self._core.is_draining:
            await self._stop_workers()
            return 0
        # A batch that ended while rows were put into others may have queued its rows again.
        return begun or int(self._idle.is_set())

    async def _draft_rows(self) -> int:
        """Put all queued rows into batches; return the number of rows that were begun."""
        self._begin_pass()
        self._idle.clear()
        self._page.clear()
        groups: dict[tuple[str, str], DraftGroup] = {}
        while not (self._limit.is_reached or self._core.is_draining):
            row = await self._take_row()
            if row is None:
                break
            draft = await self._draft_row(row)
            if draft is None:
                continue
            key = draft.job_run.job.connection_id or "", draft.path
            group = groups.setdefault(key, DraftGroup([]))
            group.drafts.append(draft)
            group.byte_count += len(draft.body)
            if group.is_full(find_wire(self._core, draft.job_run.job.provider or "")):
                await finish_before_cancel(self._submit(groups.pop(key).drafts))
        for group in groups.values():
            await finish_before_cancel(self._submit(group.drafts))
        if self._last_write is not None:
            await self._last_write
        return self._begun

    async def _wait_for_pages(self) -> None:
        while True:
            self._news.clear()
            await asyncio.sleep(GATHER_S)
            if not self._news.is_set() or self._core.is_draining:
                return

    async def _draft_row(self, row: Row) -> Draft | None:
        """Prepare the request of a row; return None if the row ends without one, or has to wait."""
        job_run = await self._prepare_row(row)
        if job_run is None:
            return None
        job_run.batch = BatchPlace(refusals=self._refusals.get(row["n"], ()))
        try:
            outcome = await self._executor.execute(job_run)
        except RequestParked as parked:
            return self._reserve_draft(row, job_run, parked.request)
        self._begun += 1
        self._last_write = outcome.durable
        self._note_end(job_run)
        return None

    def _reserve_draft(
        self, row: Row, job_run: JobRun, request: httpx.Request | None
    ) -> Draft | None:
        """Reserve the maximum cost of a row's request; return None if no budget covers it."""
        lack = self._explain_lack(job_run.job.attempts[-1].reservation_usd)
        if lack or request is None:
            self._unaffordable[row["n"]] = lack
            return None
        draft = Draft(row, job_run, request.url.path, request.content)
        self._begun += 1
        self._budget.hold(draft.bound_usd)
        return draft

    async def _begin(self, row: Row) -> JobRun | None:
        """Prepare the job of a row: a new job, or the one whose request goes into a batch again."""
        job_row = None
        if row["job_id"] is not None:
            job_row = await self._core.store.get_row("jobs", str(row["job_id"]))
        if job_row is not None and job_row["status"] not in FINAL_STATUSES:
            return self._make_job_run(row, read_job(job_row))
        return await super()._begin(row)

    def _find_left(self, limit: Decimal) -> Decimal:
        """Find the US dollars that no other row may use: a batch is too slow to wait for."""
        return super()._find_left(limit - self._budget.reserved)

    def _make_job_run(self, row: Row, job: JobRecord) -> JobRun:
        job_run = super()._make_job_run(row, job)
        left = None if self._budget.limit is None else self._find_left(self._budget.limit)
        job_run.budgets = (Budget(left), *job_run.budgets[1:])
        return job_run

    async def _submit(self, drafts: Sequence[Draft]) -> None:
        """Commit a batch with the jobs in it, and begin to submit it."""
        batch_id, job = new_id(Prefix.BATCH), drafts[0].job_run.job
        limits = await self._core.allowances.find_limits(RequestContext.of_lease(self._lease))
        nano = sum(to_nano_usd(draft.bound_usd, "ROUND_CEILING") for draft in drafts)
        values: dict[str, object] = {
            "id": batch_id,
            "account_id": self._lease.account_id,
            "map_id": self.record.id,
            "connection_id": job.connection_id or "",
            "status": "open",
            "nano": nano,
            "created_at": format_rfc3339(now()),
            "doc": json.dumps(
                {
                    "provider": job.provider,
                    "model": job.model,
                    "count": len(drafts),
                    "spending": [limit.row_id for limit in limits],
                }
            ),
        }
        changes: list[Change] = [InsertRow("map_batches", values)]
        changes += [
            AddSpending(limit.row_id, limit.allowance_id, nano, limit.nano_usd) for limit in limits
        ]
        for draft in drafts:
            draft.job_run.batch = BatchPlace(batch_id)
            changes += draft.job_run.collect_changes("running")
        try:
            await self._core.store.write(changes, lease=self._lease, conditional=bool(limits))
        except OverLimit:
            self._budget.settle(sum((d.bound_usd for d in drafts), ZERO_USD), ZERO_USD)
            self._begun -= len(drafts)
            for draft in drafts:
                self._unaffordable[draft.row["n"]] = "An allowance does not cover the batch."
            return
        items = [
            BatchItem(f"{batch_id}-{draft.row['n']}", draft.path, json.loads(draft.body))
            for draft in drafts
        ]
        self._follow(await self._client.load({**values, "vendor_id": None}), items)

    def _follow(self, batch: OpenBatch, items: list[BatchItem] | None = None) -> None:
        """Begin to see a batch through to its end, in the background.

        Args:
            items: the requests to submit; None if an earlier process may have submitted them.
        """
        self._batches[batch.id] = batch
        self._workers.add(asyncio.create_task(self._see_through(batch, items)))

    async def _see_through(self, batch: OpenBatch, items: list[BatchItem] | None) -> None:
        results: dict[str, BatchResult] = {}
        failure: ProviderError | BatchLostError | None = None
        try:
            try:
                results = await self._client.fetch_results(batch, items)
            except ProviderError as error:
                failure = error
                if error.retryable:  # its rows go into another batch
                    await asyncio.sleep(error.retry_after or self._core.settings.retry_base_s)
            except BatchLostError as error:
                failure = error
            await self._collect(batch, results, failure)
        except Exception as error:
            self._failure = self._failure or error
        finally:
            self._workers.discard(asyncio.current_task())
            self._idle.set()

    async def _collect(
        self,
        batch: OpenBatch,
        results: Mapping[str, BatchResult],
        failure: ProviderError | BatchLostError | None,
    ) -> None:
        """Settle each row of a batch that has no result yet, and close the batch.

        Args:
            results: the results by the ids of their items.
            failure: why the whole batch has no results.
        """
        after = -1
        while rows := await self._core.store.map_rows.list_in_batch(batch.id, after):
            for row in rows:
                after = row["n"]
                item_id = f"{batch.id}-{after}"
                outcome = failure or results.get(item_id) or BatchResult(item_id, None)
                await self._settle_row(batch, row, outcome)
            if self._last_write is not None:
                await self._last_write
        await self._close(batch)

    async def _close(self, batch: OpenBatch) -> None:
        closing = UpdateRow("map_batches", batch.id, {"status": "ended", "nano": 0})
        await self._core.store.write([closing], lease=self._lease)
        del self._batches[batch.id]

    async def _settle_row(
        self, batch: OpenBatch, row: Row, outcome: BatchResult | ProviderError | BatchLostError
    ) -> None:
        """End a row by its result, or queue it again if its request has to be repeated."""
        job_run = self._load_job_run(batch, row)
        refusals = self._refusals.get(row["n"], ())
        if isinstance(outcome, BatchLostError):
            attempt = job_run.job.attempts[-1]
            attempt.status, attempt.cost_usd, attempt.ended_at = "interrupted", ZERO_USD, now()
            self._queue_again(batch, row, job_run)
            return
        job_run.batch = BatchPlace(batch.id, outcome, batch.connection, refusals)
        try:
            ended = await self._executor.execute(job_run)
            self._last_write = ended.durable
            self._note_end(job_run)
        except RequestParked as parked:
            response = outcome.response if isinstance(outcome, BatchResult) else None
            if parked.request is not None and response is not None:
                self._refusals.setdefault(row["n"], []).append(response)
            self._queue_again(batch, row, job_run)

    def _queue_again(self, batch: OpenBatch, row: Row, job_run: JobRun) -> None:
        """Queue a row whose request has to be put into another batch."""
        again: dict[str, object] = {"status": "queued", "batch_id": None}
        changes = [
            *job_run.collect_changes(),
            UpdateRow("map_rows", row["id"], again),
            *self._settle_bound(batch, job_run.job),
        ]
        self._last_write = self._core.store.write(changes, lease=self._lease, paid=True)

    def _load_job_run(self, batch: OpenBatch, row: Row) -> JobRun:
        """Load the job of a row in a batch, with the maximum cost that it reserved there."""
        job = read_job({**row, "id": row["job_id"], "doc": row["job_doc"]})
        batch.incurred_usd = job.cost_incurred_usd
        job_run = self._make_job_run(row, job)
        job_run.budgets = ()  # the batch has reserved its cost
        return job_run

    def _save_row(self, row: Row, job_run: JobRun) -> list[Change]:
        place, changes = job_run.batch, super()._save_row(row, job_run)
        if place is not None and place.connection is None:
            values: dict[str, object] = {"batch_id": place.batch_id or None}
            return [*changes, UpdateRow("map_rows", row["id"], values)]
        batch = self._batches.get(place.batch_id) if place is not None else None
        if batch is None or job_run.job.status not in FINAL_STATUSES:
            return changes
        return [*changes, *self._settle_bound(batch, job_run.job)]

    def _settle_bound(self, batch: OpenBatch, job: JobRecord) -> list[Change]:
        """Replace what a job reserved in its batch by what it was billed there."""
        bound = job.attempts[-1].reservation_usd or ZERO_USD
        paid = job.cost_incurred_usd - batch.incurred_usd
        self._budget.settle(bound, paid)
        bound_nano = to_nano_usd(bound, "ROUND_CEILING")
        rest = to_nano_usd(paid, "ROUND_CEILING") - bound_nano
        batch.nano -= bound_nano
        return [
            UpdateRow("map_batches", batch.id, {"nano": batch.nano}),
            *(AddSpending(row_id, "", rest, None) for row_id in batch.spending),
        ]

    async def _cancel_interrupted(self) -> None:
        """Cancel the open batches at their vendors, and the jobs in them.

        A vendor may bill what it has done already, so the jobs count as spent.
        """
        for batch in list(self._batches.values()):
            await self._client.cancel(batch)
            while rows := await self._core.store.map_rows.list_in_batch(batch.id):
                for row in rows:
                    job_run = self._load_job_run(batch, row)
                    job_run.batch = BatchPlace(batch.id, None, batch.connection)
                    requeue_interrupted(job_run.job)
                    await self._executor.cancel(job_run)
            await self._close(batch)
        await super()._cancel_interrupted()
