"""The loop that makes a job's vendor calls: route, reserve, record, call, retry, fall back."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from typing import Any

import httpx

from toolkit.contract.base import ErrorInfo, now
from toolkit.contract.connections import Connection
from toolkit.contract.errors import ErrorCode, ToolkitError, WorkError
from toolkit.contract.jobs import Attempt, Candidate, Options
from toolkit.engine.context import EngineContext
from toolkit.engine.execution.job_run import JobRun
from toolkit.engine.money.affordability import BudgetLeft, explain_over_budget
from toolkit.engine.money.allowance import DailyLimit
from toolkit.engine.money.budget import InsufficientBudgetError, Reservation, reserve
from toolkit.engine.money.call_bill import CallBill, find_cost, may_be_billed
from toolkit.engine.routing.connection_gate import CircuitOpen, ConnectionGate
from toolkit.engine.routing.connection_health import Permit
from toolkit.engine.routing.model_offers import find_billed_model, find_model
from toolkit.engine.routing.provider_pool import ProviderPool
from toolkit.engine.routing.router import find_soonest_s, route
from toolkit.engine.transport.driver import (
    MAX_INLINE_BYTES,
    SEND_CHECK,
    FlowHooks,
    OutcomeUnknownError,
    measure_size,
)
from toolkit.engine.transport.redaction import redact_reply
from toolkit.plugins import Operation, ProviderError, Reply, Submitted, TextReply, TextRequest
from toolkit.settings import Settings, Timeouts
from toolkit.store import UpdateRow

MAX_BACKOFF_S = 8.0
ZERO_USD = Decimal(0)
# Longer than any model's real answer; the text also goes into the run's record.
MAX_REPLY_CHARACTERS = 4 * 1024 * 1024


class AttemptLoop:
    """The loop over attempts of an operation that a capability asks vendors for."""

    def __init__(self, core: EngineContext) -> None:
        self._core = core

    async def run_operation(self, work: JobRun, operation: Operation[Any]) -> Reply:
        """Have the best connection carry out `operation`; retry it while worth it, or try the next.

        Raises:
            ProviderError: the last connection's failure; `PROVIDER_UNAVAILABLE` when nothing may be
                called soon enough.
            WorkError: `CREDENTIALS_MISSING`, `BUDGET_EXCEEDED`.
        """
        search = _RoutingState(time.monotonic() + self._core.settings.max_cooldown_wait_s)
        while True:
            chosen = await self._choose_candidate(work, operation, search)
            connection = chosen.connection
            lane = self._core.gates.get_gate(connection)
            while True:
                try:
                    async with lane.acquire(work.lease.root_id) as leave:
                        return await self._call_once(work, chosen, lane, leave, operation)
                except CircuitOpen:
                    break  # healthy when it was chosen, but not when its place came
                except InsufficientBudgetError:
                    break  # other calls have meanwhile spent what it would need
                except ProviderError as fault:
                    delay_s = self._find_retry_delay_s(fault, connection, lane, operation, search)
                    if delay_s is None:
                        if not search.should_fall_back(
                            fault, connection, operation, work.job.options
                        ):
                            raise
                        break
                self._write_detail(work, "retrying")
                await asyncio.sleep(delay_s)

    async def _choose_candidate(
        self, work: JobRun, operation: Operation[Any], search: "_RoutingState"
    ) -> "_Choice":
        """Choose the connection to call next; where all cool down, wait for the soonest."""
        while True:
            backends = await self._core.find_providers(
                work.account_id, work.capability, work.job.options
            )
            backends = backends.exclude(frozenset(search.exhausted | search.throttled))
            lease = work.lease
            limits = await self._core.allowances.find_limits(lease.account_id, lease.key_id)
            money = _find_budget_left(work, limits)
            options = _pin_to_submitted(work, backends)
            routing = route(work.capability, options, operation, backends, money)
            if work.job.routing is None or not search.tries:
                work.job.routing = routing
            candidate = next((c for c in routing.candidates if not c.excluded), None)
            if candidate is not None:
                connection = backends.find_connection(candidate)
                search.has_spare = backends.has_spare(connection, work.job.options)
                return _Choice(candidate, connection, backends.usd_per_s, limits)
            wait_s = find_soonest_s(routing, backends)
            refused = explain_over_budget(routing)
            if wait_s is None and refused is not None and search.last_error is None:
                raise WorkError(ErrorCode.BUDGET_EXCEEDED, refused)
            self._write_detail(work, "waiting_capacity")
            await asyncio.sleep(search.find_wait_s(wait_s, self._core.settings))

    def _find_retry_delay_s(
        self,
        fault: ProviderError,
        connection: Connection,
        lane: ConnectionGate,
        operation: Operation[Any],
        search: "_RoutingState",
    ) -> float | None:
        """Return the seconds until the same connection is called once more; none if it is not."""
        settings = self._core.settings
        search.tries[connection.id] += 1
        worth = _is_retryable(fault, operation) and search.tries[connection.id] <= settings.retries
        delay_s = _find_backoff_s(
            search.tries[connection.id] - 1, fault.retry_after, settings.retry_base_s
        )
        if not worth or delay_s > settings.retry_cap_s:
            search.exhausted.add(connection.id)
            return None
        if not lane.retry_budget.take():
            search.throttled.add(connection.id)
            return None
        return delay_s

    def _write_detail(self, work: JobRun, detail: str | None) -> None:
        """Write down what a job waits for, unless its record says so already."""
        if work.job.status_detail != detail:
            work.job.status_detail = detail
            self._core.store.write(work.collect_changes("running"), lease=work.lease)

    async def _call_once(
        self,
        work: JobRun,
        chosen: "_Choice",
        lane: ConnectionGate,
        leave: Permit,
        operation: Operation[Any],
    ) -> Reply:
        """Make one call: reserve, write the intent down, call, settle."""
        candidate = chosen.candidate
        known = candidate.reservation_usd
        bound = None if known is None else Decimal(str(known))
        reserve_more = partial(self._reserve_cost, work, chosen.limits, bound)
        bill = CallBill(await reserve_more(), reserve_more)
        attempt, priced = self._begin_attempt(work, candidate), bound is not None
        if candidate.max_tokens is not None and isinstance(operation, TextRequest):
            operation = replace(operation, max_tokens=candidate.max_tokens)
        vendor = self._core.registry.vendors[candidate.provider]
        with self._core.observer.watch_call(work, attempt, vendor):
            try:
                # Nothing may be spent before this is durable (promise P3).
                await self._core.store.write(work.collect_changes("running"), lease=work.lease)
                started = time.monotonic()
                reply = await self._run_flow(work, candidate, chosen.connection, operation, bill)
            except ProviderError as fault:
                lane.record_failure(fault, leave)
                attempt.status = "failed"
                attempt.vendor_request_id = fault.vendor_request_id
                attempt.http_status = fault.status
                attempt.error = ErrorInfo(code=fault.code.name, message=fault.message)
                billed = may_be_billed(fault)
                actual = bill.amount if billed else ZERO_USD
                self._settle_attempt(work, attempt, bill, actual, known=priced or not billed)
                raise
            except WorkError as error:
                attempt.status = "failed"
                attempt.error = ErrorInfo.of(error)
                self._settle_attempt(work, attempt, bill, bill.amount, known=priced)
                raise
            except BaseException:
                # Cancelled or killed in mid-call: the vendor may bill it, so it counts.
                attempt.status = "cancelled"
                self._settle_attempt(work, attempt, bill, bill.amount, known=priced)
                raise
            took_s = time.monotonic() - started
            lane.record_success(candidate.model or "", took_s * 1000)
            if self._record_reply(work, attempt, chosen, bill, reply, took_s):
                await self._core.mark_overbilled(chosen.connection.id, candidate.model or "")
            return reply

    async def _reserve_cost(
        self, work: JobRun, limits: Sequence[DailyLimit], bound: Decimal | None
    ) -> Reservation:
        """Reserve what one request may come to, in every budget and allowance."""
        if bound is not None and not all(budget.can_reserve(bound) for budget in work.budgets):
            self._write_detail(work, "waiting_budget")
        held = await reserve(work.budgets, bound)
        # The allowance is charged in the same transaction that writes the record.
        record = partial(self._core.store.write, lease=work.lease)
        await self._core.allowances.hold(
            work.lease, limits, bound, held, lambda spent: record([*spent, *work.collect_changes()])
        )
        return held

    def _begin_attempt(self, work: JobRun, candidate: Candidate) -> Attempt:
        job = work.job
        if candidate.connection_id != job.connection_id:
            work.vendor_job_id = None  # of another connection, unknown to this one
        job.provider, job.model = candidate.provider, candidate.model
        work.provider_and_model = candidate.provider, candidate.model
        job.connection_id = candidate.connection_id
        job.estimated_cost_usd = candidate.estimated_cost_usd
        job.reservation_usd = candidate.reservation_usd
        job.status_detail = None
        attempt = Attempt(
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
        work: JobRun,
        attempt: Attempt,
        bill: CallBill,
        actual: Decimal,
        *,
        known: bool = True,
    ) -> None:
        """Count what a call cost; last of all, as this may write its record."""
        spent = bill.compute_total(actual)
        work.add_cost(spent)
        attempt.cost_usd = float(spent) if known else None
        attempt.ended_at = now()
        bill.settle(actual)

    def _record_reply(
        self,
        work: JobRun,
        attempt: Attempt,
        chosen: "_Choice",
        bill: CallBill,
        reply: Reply,
        took_s: float,
    ) -> bool:
        """Record what a call that worked was billed, by the best source there is.

        Returns:
            whether that is more than was reserved for it.
        """
        job, candidate = work.job, chosen.candidate
        vendor = self._core.registry.vendors[candidate.provider]
        kind = work.capability.operation.kind if work.capability.operation else ""
        mine = self._core.settings.vendors.get(vendor.id)
        model = find_billed_model(vendor, kind, mine, candidate.model or "", reply.model)
        rate = chosen.usd_per_s if vendor.runs_at_named_place(model) else None
        reserved = None if candidate.reservation_usd is None else bill.amount
        cost, job.cost_source = find_cost(reply, model, vendor, rate, took_s, reserved)
        actual = bill.amount if cost is None else cost
        attempt.status = "completed"
        attempt.model = job.model = reply.model
        attempt.vendor_request_id = reply.vendor_request_id
        job.cost_usd = None if cost is None else float(bill.compute_total(actual))
        job.usage = {**reply.cost.units, **({"simulated": True} if work.is_simulated else {})}
        # The work is over at the vendor: a restart must not attach to it.
        work.vendor_job_id = None
        self._settle_attempt(work, attempt, bill, actual, known=cost is not None)
        return reserved is not None and actual > reserved

    async def _run_flow(
        self,
        work: JobRun,
        candidate: Candidate,
        connection: Connection,
        operation: Operation[Any],
        bill: CallBill,
    ) -> Reply:
        core = self._core
        vendor = core.registry.vendors[candidate.provider]
        cancel: list[httpx.Request] = []

        async def keep(step: Submitted) -> None:
            work.vendor_job_id = step.vendor_job_id
            cancel.extend([step.cancel] if step.cancel else [])
            saved = UpdateRow("jobs", work.job.id, {"vendor_job_id": step.vendor_job_id})
            await core.store.write([saved], lease=work.lease)

        asked = find_model(
            vendor, operation.kind, core.settings.vendors.get(vendor.id), candidate.model or ""
        )
        place = work.job.options if vendor.runs_at_named_place(asked) else Options()
        try:
            access = await core.resolve_access(
                vendor,
                connection,
                candidate.model or "",
                endpoint=await self._find_vendor_id(work, "endpoints", place.endpoint_id),
                pod=await self._find_vendor_id(work, "compute", place.compute_id),
                resume=work.vendor_job_id,
            )
        except ToolkitError as error:
            raise ProviderError(error.code, error.message, retryable=False) from None

        check = partial(core.store.check_lease, work.lease)

        async def permit(request: httpx.Request) -> None:
            await bill.cover_request(request)
            # The intent is durable, but this process may have been paused since it was written,
            # and may be paused again while it connects: another may have the lease by now.
            await check()
            request.extensions[SEND_CHECK] = check

        flow = vendor.operations[type(operation)](operation, access)
        timeouts = core.get_timeouts(vendor.id, work.capability.id)
        hooks = FlowHooks(
            on_submitted=keep,
            on_pause=partial(self._write_detail, work),
            on_request=permit,
            on_outcome=bill.note_outcome,
        )
        try:
            reply: Reply = await core.driver.run(
                flow,
                hooks,
                timeouts=timeouts,
                via=vendor.id,
                account_id=work.account_id,
                is_large=measure_size(operation) > MAX_INLINE_BYTES,
            )
        except ProviderError as fault:
            if fault.code is ErrorCode.PROVIDER_AUTH_FAILED:
                fault.retryable = await self._has_new_secret(connection, access.secret)
            raise
        except asyncio.CancelledError:
            if cancel and not core.is_draining:
                with suppress(ProviderError):
                    ending = core.driver.send(cancel[0], Timeouts(total_s=1.0), vendor.id)
                    await asyncio.shield(ending)
            raise
        if isinstance(reply, TextReply) and len(reply.text) > MAX_REPLY_CHARACTERS:
            raise ProviderError(
                ErrorCode.PROVIDER_BAD_RESPONSE,
                f"The text that {vendor.id} answered with is longer than {MAX_REPLY_CHARACTERS}"
                " characters.",
                retryable=False,
            )
        if measure_size(reply) <= MAX_INLINE_BYTES:
            return redact_reply(reply, access.secret)
        redact = partial(redact_reply, reply, access.secret)
        return await core.driver.run_in_thread(redact, work.account_id)

    async def _has_new_secret(self, connection: Connection, refused: str) -> bool:
        """Tell whether the pointer leads to another secret by now than the one that was refused."""
        self._core.resolver.invalidate(connection.connection_type, connection.secret_ref)
        try:
            return await self._core.resolve_secret(connection) != refused
        except ToolkitError:
            return False

    async def _find_vendor_id(self, work: JobRun, table: str, named: str | None) -> str | None:
        """Find the vendor's own id of the endpoint or pod that the job names."""
        if named is None:
            return None
        row = await self._core.store.get_row(table, named)
        usable = row is not None and row["status"] in ("creating", "ready")
        if row is None or not usable or row["account_id"] != work.account_id:
            raise WorkError(ErrorCode.NOT_FOUND, f"`{named}` is not there to run this on any more.")
        if row["vendor_id"] is None:
            raise WorkError(ErrorCode.NOT_FOUND, f"`{named}` was never made at its vendor.")
        return str(row["vendor_id"])


@dataclass(frozen=True, slots=True)
class _Choice:
    """The candidate that is called next, and what its call counts against.

    Attributes:
        usd_per_s: US dollars a second of a worker at the endpoint that the job names, if known.
        limits: the daily allowances that the job counts against.
    """

    candidate: Candidate
    connection: Connection
    usd_per_s: Decimal | None
    limits: Sequence[DailyLimit]


@dataclass(slots=True)
class _RoutingState:
    """The state of one operation's search for a connection that carries it out.

    Attributes:
        deadline: when the search ends at the latest, by the monotonic clock.
        tries: the calls made, by connection.
        exhausted: the connections that are not called again.
        throttled: those whose retries are used up for now; called again once nobody else is left.
        has_spare: whether the vendor that is asked has another connection that may be.
    """

    deadline: float
    tries: Counter[str] = field(default_factory=Counter)
    exhausted: set[str] = field(default_factory=set)
    throttled: set[str] = field(default_factory=set)
    has_spare: bool = False
    last_error: ProviderError | None = None

    def should_fall_back(
        self,
        fault: ProviderError,
        connection: Connection,
        operation: Operation[Any],
        options: Options,
    ) -> bool:
        """Tell whether anything is left to try after a failure."""
        self.last_error = fault
        pinned = options.provider is not None and not self.has_spare
        falls_back = not pinned and _may_fall_back(fault, operation, options)
        return connection.id in self.throttled or falls_back

    def find_wait_s(self, soonest_s: float | None, settings: Settings) -> float:
        """Return the seconds until something may be called; raise where nothing may in time."""
        if self.throttled:
            self.throttled.clear()
            soonest_s = settings.retry_base_s
        if soonest_s is None:
            raise self.last_error or WorkError(
                ErrorCode.CREDENTIALS_MISSING, "No connection is left that could do this."
            )
        if time.monotonic() + soonest_s > self.deadline:
            raise self.last_error or ProviderError(
                ErrorCode.PROVIDER_UNAVAILABLE,
                f"Every connection that could do this is failing; the first may be called again"
                f" in {soonest_s:.1f} s.",
            )
        # With jitter, so that those who wait do not all come at once.
        return soonest_s + random.uniform(0, 0.1 * soonest_s)  # noqa: S311 - no secret


def _find_budget_left(work: JobRun, limits: Sequence[DailyLimit]) -> BudgetLeft:
    """Return what the budgets over a job leave as of now."""
    rooms = [budget.available for budget in work.budgets if budget.available is not None]
    return BudgetLeft(is_limited=bool(rooms or limits), available=min(rooms, default=None))


def _pin_to_submitted(work: JobRun, backends: ProviderPool) -> Options:
    """Pin a job's options to the connection that its vendor may still be at work for.

    Another one does not know what was submitted, and would have it done and billed again.
    """
    options, at_work = work.job.options, work.job.connection_id
    if work.vendor_job_id is None or at_work is None or at_work in backends.failed_ids:
        return options
    known = any(one.id == at_work for pool in backends.connections.values() for one in pool)
    return options.model_copy(update={"provider": at_work}) if known else options


def _is_retryable(fault: ProviderError, operation: Operation[Any]) -> bool:
    """Tell whether the same connection may be called again (decisions, "Unknown outcome")."""
    if isinstance(fault, OutcomeUnknownError) and not operation.repeatable:
        fault.retryable = False
    return fault.retryable


def _may_fall_back(fault: ProviderError, operation: Operation[Any], options: Options) -> bool:
    """Tell whether another vendor may do better; a refused input goes there only on demand."""
    if isinstance(fault, OutcomeUnknownError) and not operation.repeatable:
        return False
    if fault.code is ErrorCode.REPLAY_MISS:
        return False  # another vendor's answer would be a different replay
    return options.fallback_on_rejection or fault.code is not ErrorCode.PROVIDER_REJECTED


def _find_backoff_s(retry: int, retry_after: float | None, base_s: float) -> float:
    """Return the seconds to wait: what the vendor says, else exponential with full jitter."""
    if retry_after is not None:
        return retry_after
    return random.uniform(0, min(MAX_BACKOFF_S, base_s * 2**retry))  # noqa: S311 - no secret
