"""Runs: a job asked for alone; and the reading of jobs of every kind."""

from typing import Any

from toolkit.contract.base import now
from toolkit.contract.errors import ErrorCode, RequestError, not_found
from toolkit.contract.ids import Prefix, new_id
from toolkit.contract.jobs import FINAL_STATUSES, Job
from toolkit.contract.runs import Route, Run, RunCreate
from toolkit.engine.admission import Admission, within_budget
from toolkit.engine.budget import spending
from toolkit.engine.core import Core
from toolkit.engine.jobs import JobRunner
from toolkit.engine.registry import validate_input
from toolkit.engine.roots import Roots
from toolkit.engine.router import check, route
from toolkit.engine.work import Work, interrupted
from toolkit.plugins import Capability, Operation
from toolkit.store import Lease


class Jobs:
    """Reading jobs, whatever they are part of."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def get(self, account_id: str, job_id: str) -> Job:
        """One job.

        Raises:
            RequestError: `NOT_FOUND`.
        """
        row = await self._core.store.get("jobs", job_id)
        if row is None or row["account_id"] != account_id:
            raise not_found("job", job_id)
        return Job.model_validate_json(str(row["doc"]))

    async def list(self, account_id: str, limit: int, before: str | None) -> list[Job]:
        """A page of jobs, newest first."""
        rows = await self._core.store.page("jobs", account_id, limit=limit, before=before)
        return [Job.model_validate_json(str(row["doc"])) for row in rows]


class Runs:
    """`/v1/runs`."""

    def __init__(self, core: Core, roots: Roots, runner: JobRunner, admission: Admission) -> None:
        self._core = core
        self._roots = roots
        self._runner = runner
        self._admission = admission
        roots.handle("run", self._carry_out)

    async def create(self, account_id: str, request: RunCreate) -> Run:
        """Accept a run; it is durable and under way when this returns.

        Raises:
            RequestError: whatever admission refuses, and `TARGET_UNSUPPORTED`.
        """
        capability, operation = self._asked(request)
        expected = await self._admission.gate(account_id).admit(
            capability, request.input, request.options, operation
        )
        within_budget(request.options.max_cost_usd, [expected])
        run_id = new_id(Prefix.RUN)
        job = Job(
            id=new_id(Prefix.JOB),
            run_id=run_id,
            capability=capability.name,
            input=request.input,
            options=request.options,
            created_at=now(),
        )
        inserted, lease = self._core.store.new_root(run_id, "run", account_id)
        work = self._work(job, capability, account_id, lease)
        work.new = True
        await self._core.store.write([inserted, *work.written()])
        self._roots.start(lease)
        return as_run(job)

    async def get(self, account_id: str, run_id: str) -> Run:
        """One run.

        Raises:
            RequestError: `NOT_FOUND`.
        """
        rows = await self._core.store.find("jobs", run_id=run_id)
        if not rows or rows[0]["account_id"] != account_id:
            raise not_found("run", run_id)
        return as_run(Job.model_validate_json(str(rows[0]["doc"])))

    async def list(self, account_id: str, limit: int, before: str | None) -> list[Run]:
        """A page of runs, newest first."""
        rows = await self._core.store.page(
            "roots", account_id, limit=limit, before=before, kind="run"
        )
        return [await self.get(account_id, str(row["id"])) for row in rows]

    async def cancel(self, account_id: str, run_id: str) -> Run:
        """End a run; one that has ended is answered as it is."""
        run = await self.get(account_id, run_id)
        if run.status not in FINAL_STATUSES:
            await self._roots.cancel(run_id)
        return await self.get(account_id, run_id)

    async def _carry_out(self, lease: Lease) -> None:
        rows = await self._core.store.find("jobs", run_id=lease.root_id)
        job = Job.model_validate_json(str(rows[0]["doc"]))
        if job.status in FINAL_STATUSES:
            return
        capability = self._core.registry.require(job.capability)
        work = self._work(interrupted(job), capability, lease.account_id, lease)
        vendor_job_id = rows[0]["vendor_job_id"]
        work.vendor_job_id = None if vendor_job_id is None else str(vendor_job_id)
        ended = await self._runner.execute(work)
        await ended.durable

    async def route(self, account_id: str, request: RunCreate) -> Route:
        """The choice that `create` would make with the same request, and why; spends nothing.

        Raises:
            RequestError: whatever `create` refuses, but for a missing connection: that is shown.
        """
        capability, operation = self._asked(request)
        backends = await self._core.backends(account_id, capability)
        if request.options.provider is not None and backends.connections:
            check(capability, request.options, backends)
        routing = route(capability, request.options, operation, backends)
        first = next((c for c in routing.candidates if not c.excluded), None)
        return Route(
            capability=capability.name,
            policy=routing.policy,
            candidates=routing.candidates,
            provider=first.provider if first else None,
            model=first.model if first else None,
            connection_id=first.connection_id if first else None,
            estimated_cost_usd=first.estimated_cost_usd if first else None,
        )

    def _asked(self, request: RunCreate) -> tuple[Capability, Operation[Any] | None]:
        """The capability that is asked for, and what a vendor would be asked for."""
        if request.target != "capability":
            raise RequestError(ErrorCode.TARGET_UNSUPPORTED)
        capability = self._core.registry.require(request.name, request.version)
        value = validate_input(capability, request.input, frozenset(), "input")
        return capability, capability.estimate(value)

    def _work(self, job: Job, capability: Capability, account_id: str, lease: Lease) -> Work:
        return Work(
            job=job,
            capability=capability,
            account_id=account_id,
            lease=lease,
            resource_id=job.run_id or job.id,
            kind="run",
            budgets=(spending(job.options.max_cost_usd, job.cost_incurred_usd),),
            simulated=self._core.settings.sandbox,
        )


def as_run(job: Job) -> Run:
    """A job asked for alone, under its `run_` id."""
    return Run.model_construct(**{**dict(job), "id": job.run_id, "job_id": job.id})
