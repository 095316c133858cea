"""Single jobs, either runs or jobs on a compute: accepted, run and cancelled here."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from toolkit.contract.base import JsonObject, now
from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.contract.ids import Prefix, new_id
from toolkit.contract.jobs import FINAL_STATUSES, Job, Options
from toolkit.contract.money import from_wire_usd
from toolkit.engine.concurrency.cancellation import finish_before_cancel
from toolkit.engine.context import EngineContext
from toolkit.engine.execution.admission import Admission
from toolkit.engine.execution.job_executor import JobExecutor
from toolkit.engine.execution.job_run import JobRun, requeue_interrupted
from toolkit.engine.execution.leases import LeaseManager
from toolkit.engine.job_record import JobRecord, read_job
from toolkit.engine.money.budget import Budget
from toolkit.engine.request_context import RequestContext
from toolkit.engine.routing.registry import validate_input
from toolkit.engine.services.artifacts import Artifacts
from toolkit.engine.services.idempotency import commit_accepted
from toolkit.plugins import Capability
from toolkit.store import Change, Lease, LeaseLost

Shown = TypeVar("Shown", bound=Job | None)


class SingleJobs:
    """The service that runs and jobs share: each is one job, and a work item of its own."""

    def __init__(
        self, core: EngineContext, leases: LeaseManager, executor: JobExecutor, artifacts: Artifacts
    ) -> None:
        self._core = core
        self._leases = leases
        self._executor = executor
        self._artifacts = artifacts
        # Jobs that this process accepted and has not started, with the requested flow.
        self._fresh: dict[str, JobRun] = {}
        # Jobs that this process started, but whose acceptance is not yet written, or could not be:
        # the store has no such jobs.
        self._unaccepted: set[str] = set()
        # The record at the end of each accepted job that has not ended, by account and id.
        self._endings: dict[tuple[str, str], asyncio.Future[JobRecord | None]] = {}
        leases.register_handler("run", self._run_leased)
        leases.register_handler("job", self._run_leased)

    async def accept(
        self,
        context: RequestContext,
        capability: Capability,
        value: Any,
        job_input: JsonObject,
        options: Options,
        *,
        show: Callable[[JobRecord], Shown],
        run_id: str | None = None,
        further_changes: Sequence[Change] = (),
    ) -> Shown:
        """Accept a job; it is durable and in progress when this returns.

        Args:
            value: the validated input.
            show: function that makes the caller's answer from the accepted job.
            run_id: id of the run, if the job is a run.
            further_changes: changes to write in the same transaction.

        Raises:
            RequestError: every error of admission.
        """
        gate = Admission(self._core, self._artifacts, context.scope)
        admitted = await gate.admit(capability, job_input, options, capability.estimate(value))
        await self._core.allowances.check_bound(context, admitted.bound)
        await self._core.quotas.check_queue(context.account_id)
        job = JobRecord(
            id=new_id(Prefix.JOB),
            run_id=run_id,
            capability=capability.name,
            input=job_input,
            options=options,
            compute_id=options.compute_id,
            created_at=now(),
        )
        kind = "job" if run_id is None else "run"
        insert, lease = self._core.store.leases.build_root(
            run_id or job.id, kind, context.account_id, context.key_id
        )
        job_run = self._make_job_run(job, capability, lease)
        limits = await self._core.allowances.find_limits(context)
        job_run.is_new, job_run.value = True, value
        job_run.admitted = replace(admitted, limits=limits)
        answer = show(job)
        changes = [insert, *job_run.collect_changes(), *further_changes]
        begins_first = not limits
        self._fresh[lease.root_id] = job_run
        self._endings[lease.account_id, lease.root_id] = asyncio.get_running_loop().create_future()
        if context.watches_text:
            self._core.texts.expect(lease.root_id)
        # Started first, so that the writes of its first step join the same transaction. No call is
        # made before that is durable; if it is refused, so is all that follows. But a hold of an
        # allowance is written outside this transaction.
        if begins_first:
            self._unaccepted.add(lease.root_id)
            self._leases.start(lease)
        try:
            await commit_accepted(self._core, context, changes, answer, lease=lease)
        except BaseException as error:
            if not begins_first:
                del self._fresh[lease.root_id], self._endings[lease.account_id, lease.root_id]
            elif not isinstance(error, Exception):
                self._unaccepted.discard(lease.root_id)  # it is written all the same
            raise
        self._unaccepted.discard(lease.root_id)
        if not begins_first:
            self._leases.start(lease)
        return answer

    async def wait_for_end(
        self, context: RequestContext, root_id: str, seconds: float
    ) -> JobRecord | None:
        """Wait until a job that this process accepted has ended, or until the timeout.

        Returns:
            the stored record; None if the job must be read to find its state.
        """
        ending = self._endings.get((context.account_id, root_id))
        if ending is None:
            return None
        await asyncio.wait([ending], timeout=seconds)
        return ending.result() if ending.done() else None

    async def run(
        self,
        context: RequestContext,
        capability: Capability,
        job_input: JsonObject,
        options: Options,
    ) -> JobRecord:
        """Accept a run and return its record once it has ended.

        Raises:
            RequestError: every error of admission.
            ServiceError: `UNAVAILABLE` if this process ends before the run.
        """
        value = validate_input(capability, job_input, frozenset(), "input")
        run_id = new_id(Prefix.RUN)
        run = await self.accept(
            context, capability, value, job_input, options, show=JobRecord.to_run, run_id=run_id
        )
        await self._leases.wait(run_id)
        row = await self._core.store.get_row("jobs", str(run.job_id))
        if row is None or row["status"] not in FINAL_STATUSES:
            raise ServiceError(
                ErrorCode.UNAVAILABLE, f"`{run_id}` is unfinished and will be resumed."
            )
        return read_job(row)

    async def cancel(self, root_id: str) -> None:
        """Cancel a job, here or in the process that works on it."""
        await self._leases.cancel(root_id)

    async def _run_leased(self, lease: Lease) -> None:
        fresh = self._fresh.pop(lease.root_id, None)
        if fresh is not None:
            await self._run_fresh(fresh, lease)
            return
        by_id = {"run_id": lease.root_id} if lease.kind == "run" else {"id": lease.root_id}
        (row,) = await finish_before_cancel(self._core.store.find_rows("jobs", **by_id))
        if row["status"] in FINAL_STATUSES:  # the document may be ahead of the column
            return
        job = read_job(row)
        capability = self._core.registry.require(job.capability)
        job_run = self._make_job_run(requeue_interrupted(job), capability, lease)
        job_run.vendor_job_id = row["vendor_job_id"]
        outcome = await self._executor.execute(job_run)
        await outcome.durable

    async def _run_fresh(self, job_run: JobRun, lease: Lease) -> None:
        """Run a job that this process accepted, and report its outcome to waiting callers."""
        final_job: JobRecord | None = None
        try:
            await (await self._executor.execute(job_run)).durable
            final_job = job_run.job
        except LeaseLost:
            if lease.root_id not in self._unaccepted:
                raise
            self._core.store.leases.drop(lease)
        finally:
            self._unaccepted.discard(lease.root_id)
            self._endings.pop((lease.account_id, lease.root_id)).set_result(final_job)

    def _make_job_run(self, job: JobRecord, capability: Capability, lease: Lease) -> JobRun:
        return JobRun(
            job=job,
            capability=capability,
            account_id=lease.account_id,
            lease=lease,
            resource_id=job.run_id or job.id,
            kind="run" if job.run_id else "job",
            budgets=(Budget(from_wire_usd(job.options.max_cost_usd), job.cost_incurred_usd),),
            close_work_item=partial(self._core.store.leases.build_closing, lease),
        )
