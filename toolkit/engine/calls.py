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
from toolkit.engine.affordability import Money, explain_over_budget
from toolkit.engine.allowance import Limit
from toolkit.engine.backends import Backends
from toolkit.engine.bill import Bill, find_cost, may_be_billed
from toolkit.engine.budget import NoRoomError, Reservation, reserve
from toolkit.engine.core import Core
from toolkit.engine.driver import CHECK, LARGE_BYTES, Hooks, OutcomeUnknown, weigh
from toolkit.engine.health import Pass
from toolkit.engine.lanes import CoolingDown, Lane
from toolkit.engine.offers import find_model, model_billed
from toolkit.engine.redaction import redact_reply
from toolkit.engine.router import route, soonest
from toolkit.engine.work import Work
from toolkit.plugins import Operation, Reply, Submitted, TextReply, TextRequest, VendorFault
from toolkit.settings import Settings, Timeouts
from toolkit.store import Update

BACKOFF_CAP_S = 8.0
NOTHING = Decimal(0)
# Longer than any model's real answer; the text also goes into the run's record.
MAX_REPLY_CHARACTERS = 4 * 1024 * 1024


class Calls:
    """The loop over attempts of an operation that a capability asks vendors for."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def operate(self, work: Work, operation: Operation[Any]) -> Reply:
        """Have the best connection carry out `operation`; retry it while worth it, or try the next.

        Raises:
            VendorFault: the last connection's failure; `PROVIDER_UNAVAILABLE` when nothing may be
                called soon enough.
            WorkError: `CREDENTIALS_MISSING`, `BUDGET_EXCEEDED`.
        """
        search = _Search(time.monotonic() + self._core.settings.patience_s)
        while True:
            chosen = await self._choice(work, operation, search)
            connection = chosen.connection
            lane = self._core.lanes.of(connection)
            while True:
                try:
                    async with lane.turn(work.lease.root_id) as leave:
                        return await self._call(work, chosen, lane, leave, operation)
                except CoolingDown:
                    break  # healthy when it was chosen, but not when its place came
                except NoRoomError:
                    break  # other calls have meanwhile spent what it would need
                except VendorFault as fault:
                    delay_s = self._again(fault, connection, lane, operation, search)
                    if delay_s is None:
                        if not search.goes_on(fault, connection, operation, work.job.options):
                            raise
                        break
                self._show(work, "retrying")
                await asyncio.sleep(delay_s)

    async def _choice(self, work: Work, operation: Operation[Any], search: "_Search") -> "_Chosen":
        """Choose the connection to call next; where all cool down, wait for the soonest."""
        while True:
            backends = await self._core.backends(work.account_id, work.capability, work.job.options)
            backends = backends.without(frozenset(search.over | search.resting))
            lease = work.lease
            limits = await self._core.allowances.find_limits(lease.account_id, lease.key_id)
            money = _money(work, limits)
            options = _attached(work, backends)
            routing = route(work.capability, options, operation, backends, money)
            if work.job.routing is None or not search.tries:
                work.job.routing = routing
            candidate = next((c for c in routing.candidates if not c.excluded), None)
            if candidate is not None:
                connection = backends.find(candidate)
                search.spare = backends.has_spare(connection, work.job.options)
                return _Chosen(candidate, connection, backends.rate, limits)
            wait_s = soonest(routing, backends)
            refused = explain_over_budget(routing)
            if wait_s is None and refused is not None and search.last is None:
                raise WorkError(ErrorCode.BUDGET_EXCEEDED, refused)
            self._show(work, "waiting_capacity")
            await asyncio.sleep(search.wait_s(wait_s, self._core.settings))

    def _again(
        self,
        fault: VendorFault,
        connection: Connection,
        lane: Lane,
        operation: Operation[Any],
        search: "_Search",
    ) -> float | None:
        """Return the seconds until the same connection is called once more; none if it is not."""
        settings = self._core.settings
        search.tries[connection.id] += 1
        worth = _retries(fault, operation) and search.tries[connection.id] <= settings.retries
        delay_s = _backoff(
            search.tries[connection.id] - 1, fault.retry_after, settings.retry_base_s
        )
        if not worth or delay_s > settings.retry_cap_s:
            search.over.add(connection.id)
            return None
        if not lane.retries.take():
            search.resting.add(connection.id)
            return None
        return delay_s

    def _show(self, work: Work, detail: str | None) -> None:
        """Write down what a job waits for, unless its record says so already."""
        if work.job.status_detail != detail:
            work.job.status_detail = detail
            self._core.store.write(work.written("running"), lease=work.lease)

    async def _call(
        self,
        work: Work,
        chosen: "_Chosen",
        lane: Lane,
        leave: Pass,
        operation: Operation[Any],
    ) -> Reply:
        """Make one call: reserve, write the intent down, call, settle."""
        candidate = chosen.candidate
        known = candidate.reservation_usd
        bound = None if known is None else Decimal(str(known))
        reserve_more = partial(self._reserve, work, chosen.limits, bound)
        bill = Bill(await reserve_more(), reserve_more)
        attempt, priced = self._begin(work, candidate), bound is not None
        if candidate.max_tokens is not None and isinstance(operation, TextRequest):
            operation = replace(operation, max_tokens=candidate.max_tokens)
        vendor = self._core.registry.vendors[candidate.provider]
        with self._core.observer.call(work, attempt, vendor):
            try:
                # Nothing may be spent before this is durable (promise P3).
                await self._core.store.write(work.written("running"), lease=work.lease)
                started = time.monotonic()
                reply = await self._ask(work, candidate, chosen.connection, operation, bill)
            except VendorFault as fault:
                lane.failed(fault, leave)
                attempt.status = "failed"
                attempt.vendor_request_id = fault.vendor_request_id
                attempt.http_status = fault.status
                attempt.error = ErrorInfo(code=fault.code.name, message=fault.message)
                billed = may_be_billed(fault)
                actual = bill.amount if billed else NOTHING
                self._settle(work, attempt, bill, actual, known=priced or not billed)
                raise
            except WorkError as error:
                attempt.status = "failed"
                attempt.error = ErrorInfo.of(error)
                self._settle(work, attempt, bill, bill.amount, known=priced)
                raise
            except BaseException:
                # Cancelled or killed in mid-call: the vendor may bill it, so it counts.
                attempt.status = "cancelled"
                self._settle(work, attempt, bill, bill.amount, known=priced)
                raise
            took_s = time.monotonic() - started
            lane.succeeded(candidate.model or "", took_s * 1000)
            if self._account(work, attempt, chosen, bill, reply, took_s):
                await self._core.judge_model(chosen.connection.id, candidate.model or "")
            return reply

    async def _reserve(
        self, work: Work, limits: Sequence[Limit], bound: Decimal | None
    ) -> Reservation:
        """Reserve what one request may come to, in every budget and allowance."""
        if bound is not None and not all(budget.fits(bound) for budget in work.budgets):
            self._show(work, "waiting_budget")
        held = await reserve(work.budgets, bound)
        # The allowance is charged in the same transaction that writes the record.
        record = partial(self._core.store.write, lease=work.lease)
        await self._core.allowances.hold(
            work.lease, limits, bound, held, lambda spent: record([*spent, *work.written()])
        )
        return held

    def _begin(self, work: Work, candidate: Candidate) -> Attempt:
        job = work.job
        if candidate.connection_id != job.connection_id:
            work.vendor_job_id = None  # of another connection, unknown to this one
        job.provider, job.model = candidate.provider, candidate.model
        work.backend = candidate.provider, candidate.model
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

    def _settle(
        self,
        work: Work,
        attempt: Attempt,
        bill: Bill,
        actual: Decimal,
        *,
        known: bool = True,
    ) -> None:
        """Count what a call cost; last of all, as this may write its record."""
        spent = bill.total(actual)
        work.incurred(spent)
        attempt.cost_usd = float(spent) if known else None
        attempt.ended_at = now()
        bill.settle(actual)

    def _account(
        self,
        work: Work,
        attempt: Attempt,
        chosen: "_Chosen",
        bill: Bill,
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
        model = model_billed(vendor, kind, mine, candidate.model or "", reply.model)
        rate = chosen.rate if vendor.takes_place(model) else None
        reserved = None if candidate.reservation_usd is None else bill.amount
        cost, job.cost_source = find_cost(reply, model, vendor, rate, took_s, reserved)
        actual = bill.amount if cost is None else cost
        attempt.status = "completed"
        attempt.model = job.model = reply.model
        attempt.vendor_request_id = reply.vendor_request_id
        job.cost_usd = None if cost is None else float(bill.total(actual))
        job.usage = {**reply.cost.units, **({"simulated": True} if work.simulated else {})}
        # The work is over at the vendor: a restart must not attach to it.
        work.vendor_job_id = None
        self._settle(work, attempt, bill, actual, known=cost is not None)
        return reserved is not None and actual > reserved

    async def _ask(
        self,
        work: Work,
        candidate: Candidate,
        connection: Connection,
        operation: Operation[Any],
        bill: Bill,
    ) -> Reply:
        core = self._core
        vendor = core.registry.vendors[candidate.provider]
        cancel: list[httpx.Request] = []

        async def keep(step: Submitted) -> None:
            work.vendor_job_id = step.vendor_job_id
            cancel.extend([step.cancel] if step.cancel else [])
            saved = Update("jobs", work.job.id, {"vendor_job_id": step.vendor_job_id})
            await core.store.write([saved], lease=work.lease)

        asked = find_model(
            vendor, operation.kind, core.settings.vendors.get(vendor.id), candidate.model or ""
        )
        place = work.job.options if vendor.takes_place(asked) else Options()
        try:
            access = await core.access(
                vendor,
                connection,
                candidate.model or "",
                endpoint=await self._place(work, "endpoints", place.endpoint_id),
                pod=await self._place(work, "compute", place.compute_id),
                resume=work.vendor_job_id,
            )
        except ToolkitError as error:
            raise VendorFault(error.code, error.message, retryable=False) from None

        check = partial(core.store.check_lease, work.lease)

        async def permit(request: httpx.Request) -> None:
            await bill.cover(request)
            # The intent is durable, but this process may have been paused since it was written,
            # and may be paused again while it connects: another may have the lease by now.
            await check()
            request.extensions[CHECK] = check

        flow = vendor.operations[type(operation)](operation, access)
        timeouts = core.timeouts(vendor.id, work.capability.id)
        hooks = Hooks(
            submitted=keep,
            pausing=partial(self._show, work),
            requesting=permit,
            answered=bill.note,
        )
        try:
            reply: Reply = await core.driver.run(
                flow,
                hooks,
                timeouts=timeouts,
                via=vendor.id,
                account_id=work.account_id,
                is_large=weigh(operation) > LARGE_BYTES,
            )
        except VendorFault as fault:
            if fault.code is ErrorCode.PROVIDER_AUTH_FAILED:
                fault.retryable = await self._rotated(connection, access.secret)
            raise
        except asyncio.CancelledError:
            if cancel and not core.draining:
                with suppress(VendorFault):
                    ending = core.driver.send(cancel[0], Timeouts(total_s=1.0), vendor.id)
                    await asyncio.shield(ending)
            raise
        if isinstance(reply, TextReply) and len(reply.text) > MAX_REPLY_CHARACTERS:
            raise VendorFault(
                ErrorCode.PROVIDER_BAD_RESPONSE,
                f"The text that {vendor.id} answered with is longer than {MAX_REPLY_CHARACTERS}"
                " characters.",
                retryable=False,
            )
        if weigh(reply) <= LARGE_BYTES:
            return redact_reply(reply, access.secret)
        redact = partial(redact_reply, reply, access.secret)
        return await core.driver.in_thread(redact, work.account_id)

    async def _rotated(self, connection: Connection, refused: str) -> bool:
        """Tell whether the pointer leads to another secret by now than the one that was refused."""
        self._core.resolver.forget(connection.connection_type, connection.secret_ref)
        try:
            return await self._core.secret(connection) != refused
        except ToolkitError:
            return False

    async def _place(self, work: Work, table: str, named: str | None) -> str | None:
        """Find the vendor's own id of the endpoint or pod that the job names."""
        if named is None:
            return None
        row = await self._core.store.get(table, named)
        usable = row is not None and row["status"] in ("creating", "ready")
        if row is None or not usable or row["account_id"] != work.account_id:
            raise WorkError(ErrorCode.NOT_FOUND, f"`{named}` is not there to run this on any more.")
        if row["vendor_id"] is None:
            raise WorkError(ErrorCode.NOT_FOUND, f"`{named}` was never made at its vendor.")
        return str(row["vendor_id"])


@dataclass(frozen=True, slots=True)
class _Chosen:
    """The candidate that is called next, and what its call counts against.

    Attributes:
        rate: US dollars a second of a worker at the endpoint that the job names, if known.
        limits: the daily allowances that the job counts against.
    """

    candidate: Candidate
    connection: Connection
    rate: Decimal | None
    limits: Sequence[Limit]


@dataclass(slots=True)
class _Search:
    """The state of one operation's search for a connection that carries it out.

    Attributes:
        until: when the search ends at the latest, by the monotonic clock.
        tries: the calls made, by connection.
        over: the connections that are not called again.
        resting: those whose retries are used up for now; called again once nobody else is left.
        spare: whether the vendor that is asked has another connection that may be.
    """

    until: float
    tries: Counter[str] = field(default_factory=Counter)
    over: set[str] = field(default_factory=set)
    resting: set[str] = field(default_factory=set)
    spare: bool = False
    last: VendorFault | None = None

    def goes_on(
        self,
        fault: VendorFault,
        connection: Connection,
        operation: Operation[Any],
        options: Options,
    ) -> bool:
        """Tell whether anything is left to try after a failure."""
        self.last = fault
        pinned = options.provider is not None and not self.spare
        falls_back = not pinned and _falls_back(fault, operation, options)
        return connection.id in self.resting or falls_back

    def wait_s(self, soonest_s: float | None, settings: Settings) -> float:
        """Return the seconds until something may be called; raise where nothing may in time."""
        if self.resting:
            self.resting.clear()
            soonest_s = settings.retry_base_s
        if soonest_s is None:
            raise self.last or WorkError(
                ErrorCode.CREDENTIALS_MISSING, "No connection is left that could do this."
            )
        if time.monotonic() + soonest_s > self.until:
            raise self.last or VendorFault(
                ErrorCode.PROVIDER_UNAVAILABLE,
                f"Every connection that could do this is failing; the first may be called again"
                f" in {soonest_s:.1f} s.",
            )
        # With jitter, so that those who wait do not all come at once.
        return soonest_s + random.uniform(0, 0.1 * soonest_s)  # noqa: S311 - no secret


def _money(work: Work, limits: Sequence[Limit]) -> Money:
    """Return what the budgets over a job leave as of now."""
    rooms = [budget.room for budget in work.budgets if budget.room is not None]
    return Money(limited=bool(rooms or limits), room=min(rooms, default=None))


def _attached(work: Work, backends: Backends) -> Options:
    """Pin a job's options to the connection that its vendor may still be at work for.

    Another one does not know what was submitted, and would have it done and billed again.
    """
    options, at_work = work.job.options, work.job.connection_id
    if work.vendor_job_id is None or at_work is None or at_work in backends.failed:
        return options
    known = any(one.id == at_work for pool in backends.pool.values() for one in pool)
    return options.model_copy(update={"provider": at_work}) if known else options


def _retries(fault: VendorFault, operation: Operation[Any]) -> bool:
    """Tell whether the same connection may be called again (decisions, "Unknown outcome")."""
    if isinstance(fault, OutcomeUnknown) and not operation.repeatable:
        fault.retryable = False
    return fault.retryable


def _falls_back(fault: VendorFault, operation: Operation[Any], options: Options) -> bool:
    """Tell whether another vendor may do better; a refused input goes there only on demand."""
    if isinstance(fault, OutcomeUnknown) and not operation.repeatable:
        return False
    if fault.code is ErrorCode.REPLAY_MISS:
        return False  # another vendor's answer would be a different replay
    return options.fallback_on_rejection or fault.code is not ErrorCode.PROVIDER_REJECTED


def _backoff(retry: int, retry_after: float | None, base_s: float) -> float:
    """Return the seconds to wait: what the vendor says, else exponential with full jitter."""
    if retry_after is not None:
        return retry_after
    return random.uniform(0, min(BACKOFF_CAP_S, base_s * 2**retry))  # noqa: S311 - no secret
