"""Calls of models that the engine itself needs, for its planner and its judge.

Each is an ordinary job: routed, retried, reserved and counted like other jobs.
"""

from dataclasses import replace
from decimal import Decimal
from typing import Protocol

from toolkit.capabilities.llm_generate import CAPABILITY, answer_unchecked
from toolkit.contract.base import JsonObject, now
from toolkit.contract.choices import OptimizeFor
from toolkit.contract.ids import Prefix, new_id
from toolkit.contract.jobs import FINAL_STATUSES, Options
from toolkit.contract.money import ZERO_USD, from_wire_usd, to_wire_usd
from toolkit.contract.tasks import Task
from toolkit.engine.context import EngineContext
from toolkit.engine.execution.job_executor import JobExecutor
from toolkit.engine.execution.job_run import JobRun, requeue_interrupted
from toolkit.engine.job_record import JobRecord, read_job
from toolkit.engine.money.budget import Budget
from toolkit.engine.orchestration.single_jobs import SingleJobs
from toolkit.engine.request_context import RequestContext
from toolkit.engine.routing.router import is_servable
from toolkit.plugins import Capability
from toolkit.settings import ModelUse
from toolkit.store import AccountScope, Lease

# Limit on the cost of making a plan for a preview, if its constraints set no limit.
PREVIEW_LIMIT_USD = Decimal("0.05")
# The caller validates the answer against the schema, because it can report every fault.
ASKED_CAPABILITY = replace(CAPABILITY, flow=answer_unchecked)


class ModelCalls(Protocol):
    """An interface for calls of a language model."""

    @property
    def remaining(self) -> Decimal | None:
        """The rest of the limit that the caller set, in US dollars; None without a limit."""

    async def ask(self, model_input: JsonObject) -> JobRecord:
        """Ask the model, and return the ended job.

        Args:
            model_input: input of `llm.generate`.

        Raises:
            RequestError: if the model could not be asked.
        """


class TaskModelCalls:
    """The calls that a task makes of a model, as jobs under its lease.

    A call that an earlier process completed is not repeated. An interrupted call is resumed, and
    its possible cost counts as spent.
    """

    def __init__(
        self,
        core: EngineContext,
        executor: JobExecutor,
        task: Task,
        lease: Lease,
        options: Options,
        capability: Capability = ASKED_CAPABILITY,
    ) -> None:
        """Prepare to make calls.

        Args:
            capability: capability that the calls run.
            task: task whose budget pays. Its record names the jobs, so it is stored whenever a call
                is added: a step must change the task only after its call.
        """
        self._core = core
        self._executor = executor
        self._task = task
        self._lease = lease
        self._options = options
        self._capability = capability
        self._unused = list(task.llm_job_ids)
        self._budget = Budget(
            from_wire_usd(task.constraints.max_cost_usd), from_wire_usd(task.cost_incurred_usd)
        )

    @property
    def remaining(self) -> Decimal | None:
        """The rest of the budget, in US dollars; None without a budget."""
        available = self._budget.available
        return None if available is None else max(ZERO_USD, available)

    async def ask(self, model_input: JsonObject) -> JobRecord:
        """Ask the model, or reuse an earlier call with the same input, and return the ended job."""
        job_run = await self._find_earlier(model_input) or await self._add_job_run(model_input)
        if job_run.job.status not in FINAL_STATUSES:
            outcome = await self._executor.execute(job_run)
            await outcome.durable
        return job_run.job

    async def _find_earlier(self, model_input: JsonObject) -> JobRun | None:
        """Find an earlier call with the same input that did not fail; None if there is none.

        Each earlier call is used only once; an interrupted call is queued again.
        """
        for job_id in self._unused:
            row = await self._core.store.get_row("jobs", job_id)
            job = None if row is None else read_job(row)
            if row is None or job is None or job.input != model_input:
                continue
            if job.status in FINAL_STATUSES - {"completed"}:
                continue
            self._unused.remove(job_id)
            if row["status"] not in FINAL_STATUSES:  # the document may be ahead of the column
                recorded_cost = job.cost_incurred_usd
                job = requeue_interrupted(job)
                self._budget.spent += job.cost_incurred_usd - recorded_cost
            job_run = self._wrap(job)
            job_run.vendor_job_id = row["vendor_job_id"]
            return job_run
        return None

    async def _add_job_run(self, model_input: JsonObject) -> JobRun:
        """Add a call; the task's record names it before it is made."""
        job = JobRecord(
            id=new_id(Prefix.JOB),
            capability=self._capability.name,
            input=model_input,
            options=self._options,
            created_at=now(),
        )
        job_run = self._wrap(job)
        job_run.is_new = True
        self._task.llm_job_ids.append(job.id)
        update = self._core.records.tasks.make_update(self._task)
        await self._core.store.write([*job_run.collect_changes(), update], lease=self._lease)
        return job_run

    def _wrap(self, job: JobRecord) -> JobRun:
        return JobRun(
            job=job,
            capability=self._capability,
            account_id=self._lease.account_id,
            lease=self._lease,
            resource_id=job.id,
            kind="job",
            budgets=(self._budget,),
        )


class RunModelCalls:
    """The calls for a plan that is only previewed: each is a separate run."""

    def __init__(
        self,
        single_jobs: SingleJobs,
        context: RequestContext,
        limit: float | None,
        options: Options,
    ) -> None:
        """Prepare to make calls.

        Args:
            limit: maximum cost of making and running the plan, in US dollars; None if not set.
        """
        self._single_jobs = single_jobs
        # The claim of the request belongs to the plan.
        self._context = replace(context, claim=None)
        self._options = options
        self._limit = from_wire_usd(limit)
        self._spent = ZERO_USD

    @property
    def remaining(self) -> Decimal | None:
        """The rest of the limit that the caller set, in US dollars; None without a limit."""
        return None if self._limit is None else max(ZERO_USD, self._limit - self._spent)

    async def ask(self, model_input: JsonObject) -> JobRecord:
        """Ask the model within what is left of the limit, and return the ended job.

        Without a limit, all calls together may cost `PREVIEW_LIMIT_USD`.
        """
        limit = self.remaining
        if limit is None:
            limit = max(ZERO_USD, PREVIEW_LIMIT_USD - self._spent)
        options = self._options.model_copy(update={"max_cost_usd": to_wire_usd(limit)})
        job = await self._single_jobs.run(self._context, ASKED_CAPABILITY, model_input, options)
        self._spent += job.cost_incurred_usd
        return job


async def can_ask(
    core: EngineContext,
    account_id: str,
    options: Options,
    *needs: str,
    capability: Capability = ASKED_CAPABILITY,
) -> bool:
    """Check whether an account has a connection to a model with the needed abilities.

    Args:
        needs: abilities that a request needs, as `Model.abilities`.
        capability: what the model has to do; text by default.
    """
    pool = await core.directory.find_providers(AccountScope(account_id), capability, options)
    return is_servable(capability, options, pool, frozenset(needs))


def choose_call_options(use: ModelUse, optimize_for: OptimizeFor | None) -> Options:
    """Choose the options of the calls for a plan or a judgement, by the operator's settings."""
    return Options(
        provider=use.provider,
        optimize_for=optimize_for,
        deadline_s=use.deadline_s,
    )
