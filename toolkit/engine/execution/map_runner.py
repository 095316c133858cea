"""The runner of one map: its rows as jobs, a bounded number at a time, under one budget."""

import asyncio
import json
import math
import time
from collections import Counter, deque
from decimal import Decimal
from functools import partial
from typing import Final

from toolkit.contract.base import ErrorInfo, format_rfc3339, now
from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.contract.ids import Prefix, new_id
from toolkit.contract.jobs import FINAL_STATUSES
from toolkit.contract.maps import STOP_AFTER, MapRecord, MapStatus, OnError, RowStatus
from toolkit.contract.money import ZERO_USD, format_usd, from_wire_usd, to_wire_usd
from toolkit.contract.row_templates import fill_templates, find_empty
from toolkit.engine.concurrency.cancellation import finish_before_cancel
from toolkit.engine.context import EngineContext
from toolkit.engine.execution.admission import FRESH_S, Admission
from toolkit.engine.execution.job_executor import JobExecutor
from toolkit.engine.execution.job_run import JobRun, requeue_interrupted
from toolkit.engine.execution.node_states import make_error_info
from toolkit.engine.execution.shutdown import ShutdownInterrupt
from toolkit.engine.job_record import JobRecord, read_job
from toolkit.engine.money.amounts import from_nano_usd, to_nano_usd
from toolkit.engine.money.budget import Budget
from toolkit.engine.routing.registry import validate_input
from toolkit.engine.services.artifacts import Artifacts
from toolkit.store import (
    AccountScope,
    AppendEvent,
    Change,
    Lease,
    Row,
    StoreUnavailableError,
    UpdateRow,
)

PILOT_ROWS: Final = 3  # rows in progress at most, until one of them has succeeded
# A retry may help one row, but many such failures have the same cause in the template.
_CODES_OF_A_TEMPLATE: Final = frozenset({ErrorCode.INVALID_OUTPUT, ErrorCode.FUNCTION_FAILED})


class FailureLimit:
    """The limit at which a map begins no more rows, because too many failed for the same reason.

    Temporary errors, such as that of an unreachable vendor, do not count. Until a row has
    succeeded, few rows are in progress at once, so that a fault of all rows is paid for few.

    >>> limit = FailureLimit(2)
    >>> for _ in range(2):
    ...     limit.note("INVALID_OUTPUT")
    >>> limit.make_error().message
    '2 rows failed with INVALID_OUTPUT; correct the cause and call again, or set on_error.'
    """

    def __init__(self, on_error: OnError) -> None:
        self.set(on_error)
        self._has_succeeded = False
        self._failures: Counter[str] = Counter()

    def set(self, on_error: OnError) -> None:
        """Set the limit: 10 rows for `stop`, none for `continue`, or a number of rows."""
        named = {"stop": STOP_AFTER, "continue": math.inf}
        self._limit = named[on_error] if isinstance(on_error, str) else on_error

    def note(self, reason: str | None) -> None:
        """Note how a row ended: None for a success, or the code of its error."""
        if reason is None:
            self._has_succeeded = True
        elif reason in ErrorCode.__members__:
            code = ErrorCode[reason]
            if not code.retryable or code in _CODES_OF_A_TEMPLATE:
                self._failures[reason] += 1

    @property
    def is_reached(self) -> bool:
        """True once no more rows may begin."""
        return self._count_most() >= self._limit

    def limit_concurrency(self, concurrency: int) -> int:
        """Return how many rows may be in progress: few until one succeeds, then `concurrency`."""
        if self._has_succeeded or self.is_reached:
            return concurrency
        return math.ceil(min(concurrency, PILOT_ROWS, self._limit - self._count_most()))

    def _count_most(self) -> int:
        return max(self._failures.values(), default=0)

    def make_error(self) -> ErrorInfo:
        """Make the error that says why no more rows are begun."""
        ((code, count),) = self._failures.most_common(1)
        rows = f"{count} row{'s' if count > 1 else ''}"
        message = f"{rows} failed with {code}; correct the cause and call again, or set on_error."
        return ErrorInfo(code=code, message=message)


class MapRunner:
    """The runner of the queued rows of one map, from its current state in the store.

    Rows are read from the store page by page as they begin, so a large table is never in memory
    as a whole.

    Attributes:
        record: the map, without the counts of its rows.
    """

    def __init__(
        self,
        core: EngineContext,
        executor: JobExecutor,
        artifacts: Artifacts,
        record: MapRecord,
        lease: Lease,
    ) -> None:
        self._core = core
        self._executor = executor
        self._artifacts = artifacts
        self.record = record
        self._lease = lease
        self._capability = core.registry.require(record.capability)
        self._budget = Budget(from_wire_usd(record.max_cost_usd))
        self._limit = FailureLimit(record.on_error)
        self._page: deque[Row] = deque()
        self._after = -1  # number of the last row that this pass has read
        self._reading = asyncio.Lock()
        self._begun = 0  # rows begun in this pass
        self._interrupted: dict[int, tuple[JobRecord, str | None]] = {}
        # Why rows do not begin although others may; by their numbers.
        self._unaffordable: dict[int, str] = {}
        self._last_end = 0
        self._last_write: asyncio.Future[None] | None = None
        self._workers: set[asyncio.Task[None]] = set()
        self._idle = asyncio.Event()
        self._failure: BaseException | None = None
        self._news = asyncio.Event()  # rows may have been added
        self._is_over = False
        self._admission, self._admitted_at = self._make_admission(), 0.0

    def wake(self, record: MapRecord) -> bool:
        """Have a running map look for rows again, with new limits; return False if it has ended."""
        if not self._is_over:
            self._news.set()
            self.record = self.record.model_copy(
                update={
                    "max_cost_usd": record.max_cost_usd,
                    "on_error": record.on_error,
                    "concurrency": record.concurrency,
                }
            )
            self._budget.limit = from_wire_usd(record.max_cost_usd)
            self._limit.set(record.on_error)
        return not self._is_over

    async def run(self) -> None:
        """Run the rows until none is left that may begin; the end is durable when this returns.

        Raises:
            LeaseLost: another process has taken the map over.
            ShutdownInterrupt: the engine is shutting down, and rows are left for the next engine.
            asyncio.CancelledError: the map is `cancelled`, or the engine is shutting down.
        """
        try:
            await finish_before_cancel(self._recover())
            self._mark_running()
            while await self._run_pass() or self._news.is_set():
                pass
            self._is_over = True
            if self._core.is_draining and await self._has_rows_to_begin():
                raise ShutdownInterrupt(self.record.id)
        except asyncio.CancelledError:
            self._is_over = True
            await self._stop_workers()
            if not self._core.is_draining:
                await self._cancel_interrupted()
                await self._finish("cancelled", make_error_info(ErrorCode.CANCELLED))
            raise
        except BaseException as error:
            self._is_over = True
            if isinstance(error, StoreUnavailableError):
                # Rows stopped here have not ended: the process that takes this up runs them.
                self._core.store.writer.forfeit(self._lease, error)
            await self._stop_workers()
            raise
        if self._limit.is_reached:
            await self._finish("failed", self._limit.make_error())
        elif self._unaffordable:
            why = next(iter(self._unaffordable.values()))
            lack = ErrorInfo(code=ErrorCode.BUDGET_EXCEEDED.name, message=why)
            await self._finish("failed", lack)
        else:
            await self._finish("completed", None)

    async def _cancel_interrupted(self) -> None:
        """End the jobs that earlier processes left unfinished, and that are not resumed here."""
        for row in await self._list_running():
            job_run = self._resume(row)
            if job_run is not None:
                await self._executor.cancel(job_run)

    async def _recover(self) -> None:
        """Count what earlier processes spent, and find the jobs that they left unfinished."""
        store, map_id = self._core.store, self.record.id
        _, self._last_end = await store.map_rows.measure(map_id)
        spent = sum(int(row["nano"] or 0) for row in await store.map_rows.count(map_id))
        self._budget.spent = from_nano_usd(spent)
        for row in await self._list_running():
            job_row = await store.get_row("jobs", str(row["job_id"]))
            if job_row is not None and row["batch_id"] is None:
                job = requeue_interrupted(read_job(job_row))
                self._budget.spent += job.cost_incurred_usd
                self._interrupted[row["n"]] = job, job_row["vendor_job_id"]

    async def _list_running(self) -> list[Row]:
        """List the rows whose jobs have begun and not ended."""
        rows: list[Row] = []
        while True:
            after = rows[-1]["n"] if rows else -1
            page = await self._core.store.map_rows.list_by_status(self.record.id, "running", after)
            if not page:
                return rows
            rows += page

    async def _run_pass(self) -> int:
        """Run all rows that are queued, in order; return the number of rows that were begun."""
        self._begin_pass()
        self._page.extend(await self._list_running() if self._interrupted else ())
        self._idle.clear()
        self._add_workers()
        await self._idle.wait()
        if self._failure is not None:
            raise self._failure
        if self._last_write is not None:
            await self._last_write  # so that the next pass reads the ends of this one
        return self._begun if not (self._limit.is_reached or self._core.is_draining) else 0

    def _begin_pass(self) -> None:
        self._news.clear()
        self._begun, self._after = 0, -1
        self._unaffordable.clear()

    def _add_workers(self) -> None:
        """Start as many workers as rows may be in progress."""
        while len(self._workers) < self._limit.limit_concurrency(self.record.concurrency):
            self._workers.add(asyncio.create_task(self._work()))

    async def _work(self) -> None:
        """Run one row after the other, as long as there are rows and no limit is reached."""
        try:
            while not (self._limit.is_reached or self._core.is_draining or self._failure):
                if len(self._workers) > self._limit.limit_concurrency(self.record.concurrency):
                    return
                row = await self._take_row()
                if row is None:
                    return
                await self._run_row(row)
                if self._page:
                    self._add_workers()
        except ShutdownInterrupt:
            pass  # rows that have begun go on
        except Exception as error:
            self._failure = self._failure or error
        finally:
            self._workers.discard(asyncio.current_task())
            if not self._workers or self._failure is not None:
                self._idle.set()

    async def _take_row(self) -> Row | None:
        async with self._reading:
            if not self._page:
                rows = await self._core.store.map_rows.list_by_status(
                    self.record.id, "queued", self._after
                )
                self._page.extend(rows)
                if rows:
                    self._after = rows[-1]["n"]
            return self._page.popleft() if self._page else None

    async def _run_row(self, row: Row) -> None:
        job_run = await self._prepare_row(row)
        if job_run is None:
            return
        self._begun += 1
        outcome = await self._executor.execute(job_run)
        self._last_write = outcome.durable
        if row["n"] in self._unaffordable:
            self._begun -= 1  # it is queued again, and a pass that ends no row is the last
            return
        self._note_end(job_run)

    def _note_end(self, job_run: JobRun) -> None:
        error = job_run.job.error
        self._limit.note(None if error is None else error.code)

    async def _prepare_row(self, row: Row) -> JobRun | None:
        """Prepare the job of a row; return None if it ends without one, or has to wait."""
        try:
            return self._resume(row) or await self._begin(row)
        except RequestError as error:
            self._begun += 1
            self._end_without_job(row, "failed", error.code.name, str(error))
            self._limit.note(error.code.name)
            return None

    def _resume(self, row: Row) -> JobRun | None:
        """Prepare the job that a row had before a crash; return None if it had none."""
        if row["n"] not in self._interrupted:
            return None
        job, vendor_job_id = self._interrupted.pop(row["n"])
        job_run = self._make_job_run(row, job)
        job_run.vendor_job_id = vendor_job_id
        return job_run

    async def _begin(self, row: Row) -> JobRun | None:
        """Prepare a new job for a row; return None if it needs none, or no budget covers it.

        Raises:
            RequestError: the row's input is invalid, or no connection can serve it.
        """
        capability, options = self._capability, self.record.options
        columns = json.loads(row["doc"])
        if empty := find_empty(columns):
            self._begun += 1
            why = f"`{empty}` is empty in this row."
            self._end_without_job(row, "skipped", ErrorCode.INVALID_REQUEST.name, why)
            return None
        job_input = fill_templates(self.record.input, columns)
        value = validate_input(capability, job_input, frozenset(), "input")
        if time.monotonic() - self._admitted_at > FRESH_S:
            self._admission, self._admitted_at = self._make_admission(), time.monotonic()
        admitted = await self._admission.admit(
            capability, job_input, options, capability.estimate(value)
        )
        lack = self._explain_lack(admitted.bound)
        if lack:
            self._unaffordable[row["n"]] = lack
            return None
        job = JobRecord(
            id=new_id(Prefix.JOB),
            map_id=self.record.id,
            capability=capability.name,
            input=job_input,
            options=options,
            compute_id=options.compute_id,
            created_at=now(),
        )
        job_run = self._make_job_run(row, job)
        job_run.is_new, job_run.value = True, value
        return job_run

    def _explain_lack(self, bound: Decimal | None) -> str:
        """Explain why the budget does not cover a row; return "" if it does."""
        limit = self._budget.limit
        if limit is None:
            return ""
        if bound is None:
            return "The price of a row is unknown, so no budget can cover it."
        left = self._find_left(limit)
        if bound <= left:
            return ""
        # Without dollar signs, because a notebook renders text between two of them as a formula.
        texts = [format_usd(to_wire_usd(usd) or 0.0).lstrip("$") for usd in (bound, left, limit)]
        return (
            "The next row may cost {}, and {} of {} US dollars are left;"
            " raise max_cost_usd and call again."
        ).format(*texts)

    def _find_left(self, limit: Decimal) -> Decimal:
        """Find the US dollars that a further row may use, if calls in flight cost nothing."""
        return max(ZERO_USD, limit - self._budget.spent)

    def _make_job_run(self, row: Row, job: JobRecord) -> JobRun:
        limit = from_wire_usd(job.options.max_cost_usd)
        row_budgets = () if limit is None else (Budget(limit, job.cost_incurred_usd),)
        return JobRun(
            job=job,
            capability=self._capability,
            account_id=self._lease.account_id,
            lease=self._lease,
            resource_id=self.record.id,
            kind="row",
            budgets=(self._budget, *row_budgets),
            row=int(row["n"]),
            on_state=partial(self._save_row, row),
        )

    def _save_row(self, row: Row, job_run: JobRun) -> list[Change]:
        """Return the change that saves the state of a row, together with that of its job."""
        job = job_run.job
        if job.status not in FINAL_STATUSES:
            values: dict[str, object] = {"status": "running", "job_id": job.id}
            return [UpdateRow("map_rows", row["id"], values)]
        paid = int(row["nano"]) + to_nano_usd(job.cost_incurred_usd, "ROUND_HALF_EVEN")
        code = None if job.error is None else job.error.code
        has_own_limit = job.options.max_cost_usd is not None
        is_over_budget = code == ErrorCode.BUDGET_EXCEEDED.name and not has_own_limit
        if is_over_budget and self._budget.limit is not None:
            # Other rows have spent the budget meanwhile: the row waits for a higher limit.
            self._unaffordable[row["n"]] = job.error.message if job.error is not None else ""
            return [UpdateRow("map_rows", row["id"], {"status": "queued", "nano": paid})]
        self._last_end += 1
        values = {
            "status": job.status,
            "job_id": job.id,
            "reason": code,
            "error": None,
            "nano": paid,
            "ended": self._last_end,
        }
        return [UpdateRow("map_rows", row["id"], values)]

    def _end_without_job(self, row: Row, status: RowStatus, reason: str, why: str) -> None:
        """Record that a row was skipped or refused, so that it has no job."""
        self._last_end += 1
        values = {"status": status, "reason": reason, "error": why, "ended": self._last_end}
        data = {
            "id": self.record.id,
            "row": row["n"],
            "error": {"code": reason, "message": why},
        }
        self._last_write = self._core.store.write(
            [
                UpdateRow("map_rows", row["id"], values),
                AppendEvent(self.record.id, f"row.{status}", data, format_rfc3339(now())),
            ],
            lease=self._lease,
            eager=False,
        )

    def _make_admission(self) -> Admission:
        scope = AccountScope(self._lease.account_id)
        return Admission(self._core, self._artifacts, scope, is_map=True)

    async def _has_rows_to_begin(self) -> bool:
        map_rows = self._core.store.map_rows
        return bool(
            await map_rows.list_by_status(self.record.id, "queued", limit=1)
            or await map_rows.list_by_status(self.record.id, "running", limit=1)
        )

    async def _stop_workers(self) -> None:
        workers = list(self._workers)
        for worker in workers:
            worker.cancel()
        if workers:
            await asyncio.wait(workers)

    def _mark_running(self) -> None:
        self.record.started_at = self.record.started_at or now()
        self.record.error = self.record.completed_at = None
        self.record.status = "running"
        self._core.store.write(self._make_changes(), lease=self._lease, eager=False)

    async def _finish(self, status: MapStatus, error: ErrorInfo | None) -> None:
        self.record.status, self.record.error, self.record.completed_at = status, error, now()
        await self._core.store.write(self._make_changes(), lease=self._lease)

    def _make_changes(self) -> list[Change]:
        """Return the changes that save the map's state, with an event."""
        record = self.record
        data: dict[str, object] = {"id": record.id}
        if record.error is not None:
            data["error"] = record.error.model_dump(mode="json", exclude_none=True)
        at = format_rfc3339(now())
        return [
            self._core.records.maps.make_update(record, status=record.status),
            AppendEvent(record.id, f"map.{record.status}", data, at),
        ]
