"""Planning by rules or by a language model, for `POST /v1/plans` and for tasks alike."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from toolkit.contract.choices import PlannerChoice
from toolkit.contract.errors import Detail, ErrorCode, RequestError
from toolkit.contract.jobs import Options
from toolkit.contract.money import ZERO_USD, to_wire_usd
from toolkit.contract.plans import Plan, PlanCreate
from toolkit.contract.tasks import PlanGiven, Task, TaskAnswer, TaskCreate
from toolkit.engine.context import EngineContext
from toolkit.engine.execution.job_executor import JobExecutor
from toolkit.engine.orchestration.model_calls import (
    ASKED_CAPABILITY,
    ModelCalls,
    RunModelCalls,
    TaskModelCalls,
)
from toolkit.engine.orchestration.planning_steps import PlanningSteps
from toolkit.engine.orchestration.plans import Plans, make_workflow_request
from toolkit.engine.orchestration.single_jobs import SingleJobs
from toolkit.engine.orchestration.workflows import Workflows
from toolkit.engine.request_context import RequestContext
from toolkit.engine.routing.router import is_servable
from toolkit.engine.services.idempotency import commit_accepted
from toolkit.planning.llm_planner import (
    MAX_TRIES,
    FailedTry,
    build_planner_input,
    is_understood,
    list_plannable,
    write_question,
)
from toolkit.planning.model_reply import ReadPlan
from toolkit.planning.plan_draft import PlanDraft, PlannerView
from toolkit.planning.plan_validator import PlanRules
from toolkit.store import AccountScope, Lease


class Planning:
    """The service that plans: by rules, and by a language model where that is asked for."""

    def __init__(
        self,
        core: EngineContext,
        steps: PlanningSteps,
        plans: Plans,
        workflows: Workflows,
        executor: JobExecutor,
        single_jobs: SingleJobs,
    ) -> None:
        self._core = core
        self._steps = steps
        self._plans = plans
        self._workflows = workflows
        self._executor = executor
        self._single_jobs = single_jobs

    async def create(self, context: RequestContext, request: PlanCreate) -> Plan:
        """Plan an objective and store the plan; spend nothing but a model's own tokens.

        Raises:
            RequestError: `NOT_FOUND`, `INVALID_REQUEST`.
        """
        await self._plans.check(context.account_id, request)
        await self._core.quotas.check_storage(context.account_id, 1)
        calls = RunModelCalls(self._core, self._single_jobs, context, request.constraints)
        plan = await self._plan(context.account_id, request, calls, context.hang_up)
        inserted = self._core.records.plans.make_insert(context.account_id, plan)
        await commit_accepted(self._core, context, [inserted], plan)
        return plan

    async def plan_task(self, task: Task, lease: Lease) -> Plan:
        """Plan a task; what a model is asked for it are jobs under its lease."""
        request = await self.build_request(lease.account_id, task)
        if request.plan is not None:
            return await self._plans.make(lease.account_id, request)
        calls = TaskModelCalls(self._core, self._executor, task, lease, _choose_options(request))
        return await self._plan(lease.account_id, request, calls)

    async def build_request(
        self, account_id: str, task: Task, answers: Sequence[TaskAnswer] = ()
    ) -> TaskCreate:
        """Build the request that a task is planned by: its own, with what was answered since.

        Raises:
            ValidationError: objective and answers are too long together.
        """
        told = [task.objective, *(one.answer for one in (*task.answers, *answers))]
        given = None
        if task.plan_given and task.plan_id is not None:
            given = PlanGiven.of(
                await self._core.records.plans.get(AccountScope(account_id), task.plan_id)
            )
        return TaskCreate(objective="\n\n".join(told), constraints=task.constraints, plan=given)

    def choose_planner(self, request: PlanCreate) -> PlannerChoice:
        """Choose who plans: as the constraints say, else as the operator does."""
        return request.constraints.planner or self._core.settings.planner

    async def _plan(
        self,
        account_id: str,
        request: PlanCreate,
        calls: ModelCalls,
        hang_up: asyncio.Event | None = None,
    ) -> Plan:
        """Plan by rules, and by a model where it is asked for or they did not understand."""
        view = await self._plans.find_view(account_id, request.constraints)
        draft = await self._plans.draft(account_id, request, view, hang_up)
        choice = self.choose_planner(request)
        is_clear = is_understood(draft)
        if choice == "rules" or (choice == "auto" and is_clear):
            plan, _ = await self._plans.complete(account_id, request, draft)
            return plan
        attempt = _ModelPlanning(
            self._core, self._steps, self._plans, self._workflows, account_id, request
        )
        made = await attempt.plan(view, draft, calls)
        if made is None:
            if not is_clear:  # neither understood it, so a person is asked
                asked = draft.question or write_question(draft.reading)
                draft = replace(draft, question=asked)
            made, _ = await self._plans.complete(account_id, request, draft)
            if choice == "llm" or attempt.asked:
                made.rationale = f"{made.rationale} {attempt.explain_failure()}".strip()
        made.cost_usd = to_wire_usd(attempt.cost)
        return made


class _ModelPlanning:
    """One objective that a model plans, and repairs its plan of, as often as it may."""

    def __init__(
        self,
        core: EngineContext,
        steps: PlanningSteps,
        plans: Plans,
        workflows: Workflows,
        account_id: str,
        request: PlanCreate,
    ) -> None:
        self._core = core
        self._steps = steps
        self._plans = plans
        self._workflows = workflows
        self._account_id = account_id
        self._request = request
        self._failed: list[FailedTry] = []
        self._stopped_by = ""
        self.asked = 0
        self.cost = ZERO_USD

    async def plan(self, view: PlannerView, draft: PlanDraft, calls: ModelCalls) -> Plan | None:
        """Have the model plan; nothing where it makes no plan that can be used.

        Args:
            view: what may be planned with.
            draft: the plan by rules, which knows what the objective says not to use.
            calls: the ways to ask a model.
        """
        if self._request.constraints.max_cost_usd == 0:
            self._stopped_by = "nothing may be paid for"
            return None
        if not await self._is_connected():
            self._stopped_by = "no language model is connected"
            return None
        offered = [c for c in list_plannable(view.capabilities) if c.id not in draft.banned]
        rules = PlanRules(
            self._core.registry.by_name, frozenset(c.id for c in view.capabilities), draft.banned
        )
        connected = frozenset(
            c.id for c in offered if not c.needs_connection or view.providers[c.id] & view.connected
        )
        while offered and len(self._failed) < MAX_TRIES:
            given = build_planner_input(self._request.objective, offered, connected, self._failed)
            text = await self._ask(calls, given)
            if text is None:
                return None
            if not text:
                continue
            try:
                read = await self._read(text, view, rules)
            except ValueError as error:  # another answer would be paid for, and end the same way
                self._stopped_by = f"a language model answered, and {error}"
                return None
            plan, faults = await self._check(read, calls.left)
            if plan is not None:
                return plan
            self._failed.append(FailedTry(text, faults))
        return None

    def explain_failure(self) -> str:
        """Say why the rules planned."""
        if self._stopped_by:
            reason = self._stopped_by
        else:
            first = self._failed[-1].faults[0] if self._failed else Detail("", "it was not asked")
            fault = f"`{first.path}`: {first.message}" if first.path else first.message
            reason = f"none of {len(self._failed)} answers of a language model is a plan ({fault})"
        return f"Planned by rules: {reason}."

    async def _is_connected(self) -> bool:
        options = _choose_options(self._request)
        pool = await self._core.find_providers(
            AccountScope(self._account_id), ASKED_CAPABILITY, options
        )
        return is_servable(ASKED_CAPABILITY, options, pool)

    async def _ask(self, calls: ModelCalls, given: dict[str, object]) -> str | None:
        """Ask once; nothing where it is of no use to go on, and no text where it may be."""
        try:
            job = await calls.ask(given)
        except RequestError as error:
            self._stopped_by = f"a language model could not be asked ({error.message})"
            return None
        self.asked += 1
        self.cost += job.cost_incurred_usd
        if job.status == "completed" and job.output is not None:
            return str(job.output["text"])
        why = job.error.message if job.error else "it was not answered"
        if job.error is not None and job.error.code == ErrorCode.INVALID_OUTPUT.name:
            self._failed.append(FailedTry("", [Detail("", why)]))
            return ""
        self._stopped_by = f"a language model did not answer ({why})"
        return None

    async def _read(self, text: str, view: PlannerView, rules: PlanRules) -> ReadPlan:
        return await self._steps.read_reply(
            self._account_id, text, self._request.objective, view, rules
        )

    async def _check(
        self, read: ReadPlan, left: Decimal | None
    ) -> tuple[Plan | None, Sequence[Detail]]:
        """Hold a plan to its budget, and to what `POST /v1/workflows` takes."""
        if read.faults:
            return None, read.faults
        constraints = self._request.constraints.model_copy(
            update={"max_cost_usd": None if left is None else to_wire_usd(left)}
        )
        request = self._request.model_copy(update={"constraints": constraints})
        plan, refusal = await self._plans.complete(self._account_id, request, read.draft, "llm")
        if refusal is not None:
            return None, [Detail("constraints.max_cost_usd", refusal)]
        if not plan.executable:
            return plan, []
        flow = make_workflow_request(plan.objective, request.constraints, plan.nodes)
        try:
            await self._workflows.check(self._account_id, flow, limit=left)
        except RequestError as error:
            return None, error.details or [Detail("nodes", error.message)]
        return plan, []


def _choose_options(request: PlanCreate) -> Options:
    return Options(optimize_for=request.constraints.optimize_for)
