"""The loop that makes a job's vendor calls: choose, reserve, record, call, retry, fall back."""

import asyncio
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import Any

from toolkit.contract.base import ErrorInfo, now
from toolkit.contract.errors import ErrorCode, WorkError
from toolkit.contract.money import ZERO_USD
from toolkit.engine.context import EngineContext
from toolkit.engine.execution.batch_place import RequestParked
from toolkit.engine.execution.candidate_search import CandidateSearch, ChosenCandidate
from toolkit.engine.execution.job_run import JobRun, write_detail
from toolkit.engine.execution.kept_replies import find_reply, keep_reply, take_reply
from toolkit.engine.execution.provider_call import ProviderCall
from toolkit.engine.execution.seals import check_answer
from toolkit.engine.execution.shutdown import ShutdownWatch
from toolkit.engine.execution.store_patience import ask_store
from toolkit.engine.job_record import AttemptRecord, JobRecord
from toolkit.engine.money.allowance import SpendingLimit
from toolkit.engine.money.budget import InsufficientBudgetError, Reservation, reserve
from toolkit.engine.money.call_bill import CallBill, find_cost
from toolkit.engine.ranking import RankedCandidate
from toolkit.engine.routing.connection_gate import CircuitOpen, ConnectionGate
from toolkit.engine.routing.connection_health import Permit
from toolkit.engine.routing.model_offers import find_billed_model, find_model
from toolkit.engine.services.artifacts import MAX_INLINE_BYTES
from toolkit.plugins import Operation, ProviderError, Reply, TextRequest
from toolkit.plugins.pricing import BATCH_TIER
from toolkit.store import ROWS_BYTES, ResultSize

# A text is in the document of its job, in that of its task or agent, and in its artifact.
TEXT_COPIES = 3
# A reply that is kept is in a row, as base64.
KEPT_COPIES = 2
QUEUED_S = 0.1  # a call that was admitted later than this had to queue


class AttemptLoop:
    """The loop over attempts of an operation that a capability asks vendors for."""

    def __init__(self, core: EngineContext) -> None:
        self._core = core

    async def run_operation(self, job_run: JobRun, operation: Operation[Any]) -> Reply:
        """Return the reply to `operation` from the best connection, after retries or from the next.

        Raises:
            ProviderError: the last connection's failure; `PROVIDER_UNAVAILABLE` if nothing may be
                called soon enough.
            WorkError: `CREDENTIALS_MISSING`, `BUDGET_EXCEEDED`, `SEAL_BROKEN`.
            ShutdownInterrupt: the engine began to shut down before the next call.
        """
        if operation == job_run.admitted.operation:
            operation = job_run.admitted.operation  # it is measured already
        reply = await ask_store(self._core, find_reply, self._core.store, job_run, operation)
        if reply is None:
            request = self._request if job_run.batch is None else self._request_in_batch
            reply = await request(job_run, operation)
            keep_reply(job_run, operation, reply)
        return reply

    async def _request_in_batch(self, job_run: JobRun, operation: Operation[Any]) -> Reply:
        """Have the batch of a job carry out an operation, or read the reply of its result.

        Raises:
            RequestParked: the request is to go into a batch, for the first time or again, because
                the vendor failed to carry it out.
            ProviderError: the failure of the request.
        """
        place, attempts = job_run.batch, job_run.job.attempts
        if place is None or place.connection is None:
            choice = await CandidateSearch(self._core, job_run, operation).choose()
            self._begin_attempt(job_run, choice.candidate)
        else:
            choice = ChosenCandidate(_read_candidate(job_run.job), place.connection, None, ())
        candidate, attempt = choice.candidate, attempts[-1]
        bound = candidate.reservation_usd
        bill = CallBill(Reservation((), bound or ZERO_USD), _refuse_more)
        call = ProviderCall(self._core, job_run, choice, bill)
        operation = _cap_tokens(operation, candidate)
        if place is None or place.connection is None:
            return await call.run(operation)
        if attempt.status != "running":
            raise WorkError(
                ErrorCode.INVALID_REQUEST,
                f"{job_run.capability.name} asks more than once, which no batch can answer:"
                " leave `when` out.",
            )
        vendor = self._core.registry.vendors[candidate.provider]
        # Neither lost batches nor refused forms of the request are failures.
        failures = sum(earlier.error is not None for earlier in attempts)
        may_repeat = failures < self._core.settings.retries
        try:
            with (
                self._core.observer.watch_call(job_run, attempt, vendor),
                self._settle_failure(job_run, attempt, bill, is_priced=bound is not None),
            ):
                reply = await call.run(operation)
                self._record_reply(job_run, attempt, choice, bill, reply, 0.0)
                await check_answer(self._core, job_run, candidate.model)
                return reply
        except ProviderError as error:
            if error.retryable and may_repeat:
                raise RequestParked from error
            raise

    async def _request(self, job_run: JobRun, operation: Operation[Any]) -> Reply:
        """Have a connection carry out an operation whose reply the job does not have."""
        waiting, has_queued = ShutdownWatch(self._core), False
        has_called = bool(job_run.job.attempts)
        search = CandidateSearch(self._core, job_run, operation)
        units = _count_limited_units(operation.units())
        while True:
            choice = await search.choose()
            connection = choice.connection
            gate = self._core.gates.get_gate(connection)
            while True:
                has_queued |= gate.is_full
                queued_at = time.monotonic()
                try:
                    async with gate.acquire(job_run.lease.root_id, units) as permit:
                        has_queued |= time.monotonic() - queued_at > QUEUED_S
                        waiting.check_call(has_queued=has_queued, has_called=has_called)
                        return await self._call_once(
                            job_run, choice, gate, permit, operation, units
                        )
                except CircuitOpen:
                    search.note_closed(connection)  # healthy only when it was chosen
                    break
                except InsufficientBudgetError:
                    # Other calls have spent the money since the candidate was chosen.
                    search.note_unaffordable(choice.candidate)
                    break
                except ProviderError as error:
                    has_queued = has_called = True
                    delay_s = search.find_retry_delay_s(error, connection, gate)
                    if delay_s is None:
                        if not search.should_fall_back(error, connection):
                            raise
                        break
                write_detail(self._core.store, job_run, "retrying")
                await asyncio.sleep(delay_s)

    async def _call_once(
        self,
        job_run: JobRun,
        choice: ChosenCandidate,
        gate: ConnectionGate,
        permit: Permit,
        operation: Operation[Any],
        expected_units: Mapping[str, float],
    ) -> Reply:
        """Make one call: reserve, record the intent, call, settle.

        Args:
            expected_units: the units that the gate admitted it with; unused units are given back.
        """
        candidate = choice.candidate
        operation = _cap_tokens(operation, candidate)
        # A paid result that does not fit on the disk would be lost if this process ended.
        job_run.release_room()
        job_run.room = await self._core.store.result_room.hold(_estimate_result_size(operation))
        bound = candidate.reservation_usd
        reserve_more = partial(self._reserve_cost, job_run, choice.limits, bound)
        bill = CallBill(await reserve_more(), reserve_more)
        attempt, is_priced = self._begin_attempt(job_run, candidate), bound is not None
        vendor = self._core.registry.vendors[candidate.provider]
        with (
            self._core.observer.watch_call(job_run, attempt, vendor),
            self._settle_failure(job_run, attempt, bill, is_priced=is_priced),
        ):
            # Nothing may be spent before this is durable (promise P3).
            changes = [*job_run.collect_changes("running"), *take_reply(job_run)]
            await self._core.store.write(changes, lease=job_run.lease)
            start = time.monotonic()
            try:
                reply = await ProviderCall(self._core, job_run, choice, bill).run(operation)
            except ProviderError as error:
                gate.record_failure(error, permit)
                raise
            took_s = time.monotonic() - start
            gate.record_success(candidate.model or "", took_s * 1000)
            gate.record_units(expected_units, _count_limited_units(reply.cost.units))
            if self._record_reply(job_run, attempt, choice, bill, reply, took_s):
                mark = self._core.directory.mark_overbilled
                await ask_store(self._core, mark, choice.connection.id, candidate.model or "")
            await check_answer(self._core, job_run, candidate.model)
            return reply

    @contextmanager
    def _settle_failure(
        self, job_run: JobRun, attempt: AttemptRecord, bill: CallBill, *, is_priced: bool
    ) -> Iterator[None]:
        """Record the error and the cost of an attempt that fails in the block.

        Args:
            is_priced: whether the maximum cost of the attempt is known.
        """
        try:
            yield
        except ProviderError as error:
            attempt.status = "failed"
            attempt.vendor_request_id = error.vendor_request_id
            attempt.http_status = error.status
            attempt.error = ErrorInfo(code=error.code.name, message=error.message)
            is_billed = bill.counts_as_spent(error)
            actual = bill.amount if is_billed else ZERO_USD
            is_known = is_priced or not is_billed
            self._settle_attempt(job_run, attempt, bill, actual, is_known=is_known)
            raise
        except RequestParked:
            # The vendor refused a form of the request, and another goes into a batch.
            attempt.status = "failed"
            actual = bill.amount if bill.may_be_billed else ZERO_USD
            self._settle_attempt(job_run, attempt, bill, actual, is_known=is_priced)
            raise
        except WorkError as error:
            if attempt.status == "running":  # otherwise only its answer was refused afterwards
                attempt.status = "failed"
                attempt.error = ErrorInfo.of(error)
                self._settle_attempt(job_run, attempt, bill, bill.amount, is_known=is_priced)
            raise
        except BaseException:
            # Cancelled or killed in mid-call: the vendor may bill it, so it counts.
            if attempt.status == "running":
                attempt.status = "cancelled"
                self._settle_attempt(job_run, attempt, bill, bill.amount, is_known=is_priced)
            raise

    async def _reserve_cost(
        self, job_run: JobRun, limits: Sequence[SpendingLimit], bound: Decimal | None
    ) -> Reservation:
        """Reserve the maximum cost of one request in every budget and allowance; wait if needed."""
        if bound is not None and not all(budget.can_reserve(bound) for budget in job_run.budgets):
            write_detail(self._core.store, job_run, "waiting_budget")
        reservation = await reserve(job_run.budgets, bound)
        # The allowance is charged in the same transaction that writes the record.
        record = partial(self._core.store.write, lease=job_run.lease, paid=True)
        # A further request of an attempt is covered by it; a first request begins the next attempt.
        attempts = job_run.job.attempts
        is_further = bool(attempts) and attempts[-1].status == "running"
        await self._core.allowances.hold(
            job_run.lease,
            (job_run.job.id, len(attempts) + (not is_further)),
            limits,
            bound,
            reservation,
            lambda changes: record([*changes, *job_run.collect_changes()]),
        )
        return reservation

    def _begin_attempt(self, job_run: JobRun, candidate: RankedCandidate) -> AttemptRecord:
        job = job_run.job
        if candidate.connection_id != job.connection_id:
            job_run.vendor_job_id = None  # belongs to another connection and is unknown here
        job.provider, job.model = candidate.provider, candidate.model
        job_run.provider_and_model = candidate.provider, candidate.model
        job.upstream = job.tier = None
        job.connection_id = candidate.connection_id
        job.estimated_cost_usd = candidate.estimated_cost_usd
        job.reservation_usd = candidate.reservation_usd
        job.status_detail = None
        attempt = AttemptRecord(
            n=len(job.attempts) + 1,
            provider=candidate.provider,
            model=candidate.model,
            connection_id=candidate.connection_id,
            status="running",
            reservation_usd=candidate.reservation_usd,
            max_tokens=candidate.max_tokens,
            started_at=now(),
        )
        job.attempts.append(attempt)
        return attempt

    def _settle_attempt(
        self,
        job_run: JobRun,
        attempt: AttemptRecord,
        bill: CallBill,
        actual: Decimal,
        *,
        is_known: bool = True,
    ) -> None:
        """Record the cost of a call; call this last, because it may write the job's record."""
        cost = bill.compute_total(actual)
        job_run.job.cost_incurred_usd += cost  # whether or not the call succeeded
        attempt.cost_usd = cost if is_known else None
        attempt.ended_at = now()
        bill.settle(actual)

    def _record_reply(
        self,
        job_run: JobRun,
        attempt: AttemptRecord,
        choice: ChosenCandidate,
        bill: CallBill,
        reply: Reply,
        took_s: float,
    ) -> bool:
        """Record the bill of a successful call, from the best source available.

        Returns:
            True if the bill exceeds the reservation.
        """
        job, candidate = job_run.job, choice.candidate
        vendor = self._core.registry.vendors[candidate.provider]
        kind = job_run.capability.operation.kind if job_run.capability.operation else ""
        directory, name = self._core.directory, candidate.model or ""
        models = [*directory.list_models(vendor, kind)]
        if find_model(models, name) is None:
            models.append(directory.find_named_model(vendor, kind, name))
        model = find_billed_model(vendor, models, name, reply.model, now().date())
        rate = choice.usd_per_s if vendor.runs_at_named_place(model) else None
        reservation = None if candidate.reservation_usd is None else bill.amount
        is_batch = candidate.tier == BATCH_TIER  # which the answers of some vendors do not name
        tier = BATCH_TIER if is_batch else reply.tier or candidate.tier
        cost, job.cost_source = find_cost(reply, model, vendor, tier, rate, took_s, reservation)
        actual = bill.amount if cost is None else cost
        attempt.status = "completed"
        attempt.model = job.model = reply.model
        attempt.upstream = job.upstream = reply.upstream
        attempt.tier = job.tier = BATCH_TIER if is_batch else reply.tier
        attempt.vendor_request_id = reply.vendor_request_id
        job.cost_usd = None if cost is None else bill.compute_total(actual)
        units = Counter(reply.cost.units)
        # A capability may ask vendors more than once.
        asked_before = job.attempts[job_run.earlier_attempts : -1]
        if any(earlier.status == "completed" for earlier in asked_before):
            units.update({unit: n for unit, n in job.usage.items() if isinstance(n, float)})
        job.usage = {**units}
        if self._core.settings.sandbox:
            job.usage["simulated"] = True
        # The work is over at the vendor: a restart must not attach to it.
        job_run.vendor_job_id = None
        self._settle_attempt(job_run, attempt, bill, actual, is_known=cost is not None)
        return reservation is not None and actual > reservation


def _cap_tokens(operation: Operation[Any], candidate: RankedCandidate) -> Operation[Any]:
    """Return an operation with the cap on its answer that a budget lowered, if it did."""
    if candidate.max_tokens is None or not isinstance(operation, TextRequest):
        return operation
    return replace(operation, max_tokens=candidate.max_tokens)


def _read_candidate(job: JobRecord) -> RankedCandidate:
    """Make the candidate that the last attempt of a job in a batch names."""
    attempt = job.attempts[-1]
    return RankedCandidate(
        provider=attempt.provider or "",
        reason="in a batch",
        model=attempt.model,
        connection_id=attempt.connection_id,
        estimated_cost_usd=job.estimated_cost_usd,
        reservation_usd=attempt.reservation_usd,
        max_tokens=attempt.max_tokens,
        tier=BATCH_TIER,
    )


async def _refuse_more() -> Reservation:
    raise InsufficientBudgetError


def _count_limited_units(units: Mapping[str, float]) -> dict[str, float]:
    """Count the units that vendors limit by the minute: one request, and tokens in and out."""
    tokens = units.get("input_tokens", 0.0) + units.get("output_tokens", 0.0)
    return {"requests": 1.0, "tokens": tokens}


def _estimate_result_size(operation: Operation[Any]) -> ResultSize:
    """Estimate the disk space that a result may take, which is reserved before the call begins.

    A result that turns out longer waits for space.
    """
    result_bytes = operation.result_bytes()
    is_text = isinstance(operation, TextRequest)
    copies = TEXT_COPIES if is_text else KEPT_COPIES * operation.kept
    rows_bytes = ROWS_BYTES + copies * result_bytes
    return ResultSize(rows_bytes, result_bytes if result_bytes > MAX_INLINE_BYTES else 0)
