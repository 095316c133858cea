"""Calls to vendors on behalf of a job: routed, budgeted, tried again, written down first."""

import asyncio
import random
import time
from contextlib import suppress
from decimal import Decimal
from typing import Any

import httpx

from toolkit.contract.base import ErrorInfo, now
from toolkit.contract.errors import ErrorCode, ToolkitError, WorkError
from toolkit.contract.jobs import Attempt, Candidate
from toolkit.engine.budget import Reservation, reserve
from toolkit.engine.core import Core
from toolkit.engine.driver import Hooks, OutcomeUnknown
from toolkit.engine.router import route
from toolkit.engine.work import Work
from toolkit.plugins import Operation, Reply, Submitted, VendorFault
from toolkit.plugins.pricing import price
from toolkit.store import Update

BACKOFF_CAP_S = 8.0


class Calls:
    """Carries out the operations that capabilities ask for."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def operate(self, work: Work, operation: Operation[Any]) -> Reply:
        """Have the best backend carry out `operation`, falling back to the next ones.

        Raises:
            VendorFault: the last backend's failure.
            WorkError: `CREDENTIALS_MISSING`, `BUDGET_EXCEEDED`.
        """
        job = work.job
        backends = await self._core.backends(work.account_id, work.capability)
        job.routing = route(work.capability, job.options, operation, backends)
        kept = [c for c in job.routing.candidates if not c.excluded]
        if not kept:
            raise WorkError(
                ErrorCode.CREDENTIALS_MISSING,
                f"`{work.capability.name}` has no connection left to use.",
            )
        for place, candidate in enumerate(kept, start=1):
            try:
                return await self._try(work, candidate, operation)
            except VendorFault as fault:
                if place == len(kept) or not _falls_back(fault, operation):
                    raise
        raise AssertionError("the last candidate returns or raises")

    async def _try(self, work: Work, candidate: Candidate, operation: Operation[Any]) -> Reply:
        """Call one backend, again while it is worth it."""
        settings = self._core.settings
        for retry in range(settings.retries + 1):
            try:
                return await self._call(work, candidate, operation)
            except VendorFault as fault:
                if retry == settings.retries or not _retries(fault, operation):
                    raise
                delay = _backoff(retry, fault.retry_after, settings.retry_base_s)
                if delay > settings.retry_cap_s:
                    raise
            work.job.status_detail = "retrying"
            self._core.store.write(work.written("running"), lease=work.lease)
            await asyncio.sleep(delay)
        raise AssertionError("the last retry returns or raises")

    async def _call(self, work: Work, candidate: Candidate, operation: Operation[Any]) -> Reply:
        """Make one call: reserve, write the intent down, call, settle."""
        known = candidate.estimated_cost_usd
        estimate = None if known is None else Decimal(str(known))
        held = await reserve(work.budgets, estimate)
        attempt = self._begin(work, candidate)
        started = time.monotonic()
        try:
            # Not before this is durable may anything be spent (promise P3).
            await self._core.store.write(work.written("running"), lease=work.lease)
            reply = await self._ask(work, candidate, operation)
        except VendorFault as fault:
            spent = held.amount if isinstance(fault, OutcomeUnknown) else Decimal(0)
            self._settle(work, attempt, held, spent)
            attempt.status = "failed"
            attempt.vendor_request_id = fault.vendor_request_id
            attempt.error = ErrorInfo(code=fault.code.name, message=fault.message)
            raise
        except BaseException:
            # Cancelled or killed in mid-call: the vendor may bill it, so it counts.
            self._settle(work, attempt, held, held.amount)
            attempt.status = "cancelled"
            raise
        self._core.observed.record(candidate.provider, (time.monotonic() - started) * 1000)
        self._account(work, attempt, candidate, held, reply)
        return reply

    def _begin(self, work: Work, candidate: Candidate) -> Attempt:
        job = work.job
        job.provider, job.model = candidate.provider, candidate.model
        job.connection_id = candidate.connection_id
        job.estimated_cost_usd = candidate.estimated_cost_usd
        job.status_detail = None
        attempt = Attempt(
            n=len(job.attempts) + 1,
            provider=candidate.provider,
            model=candidate.model,
            status="running",
            started_at=now(),
        )
        job.attempts.append(attempt)
        return attempt

    def _settle(self, work: Work, attempt: Attempt, held: Reservation, spent: Decimal) -> None:
        held.settle(spent)
        work.incurred(spent)
        attempt.cost_usd = float(spent)
        attempt.ended_at = now()

    def _account(
        self, work: Work, attempt: Attempt, candidate: Candidate, held: Reservation, reply: Reply
    ) -> None:
        """Write down what a call that worked was billed, from the best source there is."""
        job, vendor = work.job, self._core.registry.vendors[candidate.provider]
        kind = work.capability.operation.kind if work.capability.operation else ""
        model = self._core.model(vendor, kind)
        cost, source = reply.cost.reported_usd, "reported"
        if cost is None:
            cost, source = price(model, reply.cost.units) if model else None, "metered"
        if cost is None:
            known = candidate.estimated_cost_usd
            cost, source = (held.amount, "estimated") if known is not None else (None, "unknown")
        self._settle(work, attempt, held, cost if cost is not None else held.amount)
        attempt.status = "completed"
        attempt.model = job.model = reply.model
        attempt.vendor_request_id = reply.vendor_request_id
        attempt.cost_usd = job.cost_usd = None if cost is None else float(cost)
        job.cost_source = source  # type: ignore[assignment]  # one of the four literals above
        job.usage = {**reply.cost.units, **({"simulated": True} if work.simulated else {})}
        # The work is over at the vendor: a restart must not attach to it.
        work.vendor_job_id = None

    async def _ask(self, work: Work, candidate: Candidate, operation: Operation[Any]) -> Reply:
        core = self._core
        vendor = core.registry.vendors[candidate.provider]
        cancel: list[httpx.Request] = []

        async def keep(step: Submitted) -> None:
            work.vendor_job_id = step.vendor_job_id
            cancel.extend([step.cancel] if step.cancel else [])
            saved = Update("jobs", work.job.id, {"vendor_job_id": step.vendor_job_id})
            await core.store.write([saved], lease=work.lease)

        def show(detail: str | None) -> None:
            if work.job.status_detail != detail:
                work.job.status_detail = detail
                core.store.write(work.written("running"), lease=work.lease)

        try:
            connections = await core.connections(work.account_id)
            access = await core.access(
                vendor,
                connections[candidate.provider],
                candidate.model or "",
                endpoint=await self._endpoint(work),
                resume=work.vendor_job_id,
            )
        except ToolkitError as error:
            raise VendorFault(error.code, error.message, retryable=False) from None
        flow = vendor.operations[type(operation)](operation, access)
        try:
            reply: Reply = await core.driver.run(
                flow, Hooks(submitted=keep, pausing=show), timeout_s=core.timeout_s(vendor.id)
            )
        except asyncio.CancelledError:
            if cancel and not core.draining:
                with suppress(VendorFault):
                    await asyncio.shield(core.driver.send(cancel[0], timeout_s=2.0))
            raise
        return reply

    async def _endpoint(self, work: Work) -> str | None:
        """The vendor's own id of the endpoint that the job names."""
        endpoint_id = work.job.options.endpoint_id
        if endpoint_id is None:
            return None
        row = await self._core.store.get("endpoints", endpoint_id)
        if row is None or row["account_id"] != work.account_id or row["status"] != "ready":
            raise WorkError(ErrorCode.NOT_FOUND, f"The endpoint `{endpoint_id}` is not ready.")
        return str(row["vendor_id"])


def _retries(fault: VendorFault, operation: Operation[Any]) -> bool:
    """Whether the same backend may be called again (decisions, "Unknown outcome")."""
    if isinstance(fault, OutcomeUnknown) and not operation.repeatable:
        fault.retryable = False
    return fault.retryable


def _falls_back(fault: VendorFault, operation: Operation[Any]) -> bool:
    """Whether another backend may do better: not with an input that was refused."""
    if isinstance(fault, OutcomeUnknown) and not operation.repeatable:
        return False
    return fault.code is not ErrorCode.PROVIDER_REJECTED


def _backoff(retry: int, retry_after: float | None, base_s: float) -> float:
    """Seconds to wait: what the vendor says, else exponential with full jitter."""
    if retry_after is not None:
        return retry_after
    return random.uniform(0, min(BACKOFF_CAP_S, base_s * 2**retry))  # noqa: S311 - no secret
