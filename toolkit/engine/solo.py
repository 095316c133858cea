"""Single jobs, be it a run or one on a compute: accepted, run and cancelled here."""

from typing import Any

from toolkit.contract.base import JsonObject, now
from toolkit.contract.ids import Prefix, new_id
from toolkit.contract.jobs import FINAL_STATUSES, Job, Options
from toolkit.contract.runs import Run
from toolkit.engine.admission import Admission
from toolkit.engine.budget import spending
from toolkit.engine.core import Core
from toolkit.engine.once import accept
from toolkit.engine.roots import Roots
from toolkit.engine.runner import JobRunner
from toolkit.engine.stored import read_job
from toolkit.engine.work import Work, interrupted
from toolkit.plugins import Capability, Operation
from toolkit.store import Lease


class Solo:
    """The service that runs and jobs share: each is one job, and a work item of its own."""

    def __init__(self, core: Core, roots: Roots, runner: JobRunner, admission: Admission) -> None:
        self._core = core
        self._roots = roots
        self._runner = runner
        self._admission = admission
        roots.handle("run", self._carry_out)
        roots.handle("job", self._carry_out)

    async def accept(
        self,
        account_id: str,
        capability: Capability,
        operation: Operation[Any] | None,
        given: JsonObject,
        options: Options,
        *,
        run_id: str | None = None,
        key_id: str | None = None,
    ) -> Job:
        """Accept a job; it is durable and under way when this returns.

        Args:
            operation: the vendor operation that it would need.
            given: the input.
            run_id: the id of the run that it is, if it is one.
            key_id: the API key of the request.

        Raises:
            RequestError: whatever admission refuses.
        """
        gate = self._admission.gate(account_id)
        bound = await gate.admit(capability, given, options, operation)
        await self._core.allowances.check(account_id, key_id, bound)
        await self._core.quotas.check_queue(account_id)
        job = Job(
            id=new_id(Prefix.JOB),
            run_id=run_id,
            capability=capability.name,
            input=given,
            options=options,
            compute_id=options.compute_id,
            created_at=now(),
        )
        kind = "job" if run_id is None else "run"
        inserted, lease = self._core.store.new_root(run_id or job.id, kind, account_id, key_id)
        work = self._work(job, capability, lease)
        work.new = True
        shown = job if run_id is None else Run.of(job)
        await accept(self._core, [inserted, *work.written()], shown)
        self._roots.start(lease)
        return job

    async def cancel(self, root_id: str) -> None:
        """Cancel a job, wherever it is being worked on."""
        await self._roots.cancel(root_id)

    async def _carry_out(self, lease: Lease) -> None:
        named = {"run_id": lease.root_id} if lease.kind == "run" else {"id": lease.root_id}
        (row,) = await self._core.store.find("jobs", **named)
        job = read_job(row)
        if job.status in FINAL_STATUSES:
            return
        capability = self._core.registry.require(job.capability)
        work = self._work(interrupted(job), capability, lease)
        vendor_job_id = row["vendor_job_id"]
        work.vendor_job_id = None if vendor_job_id is None else str(vendor_job_id)
        ended = await self._runner.execute(work)
        await ended.durable

    def _work(self, job: Job, capability: Capability, lease: Lease) -> Work:
        return Work(
            job=job,
            capability=capability,
            account_id=lease.account_id,
            lease=lease,
            resource_id=job.run_id or job.id,
            kind="run" if job.run_id else "job",
            budgets=(spending(job.options.max_cost_usd, job.cost_incurred_usd),),
            simulated=self._core.settings.sandbox,
        )
