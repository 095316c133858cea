"""Planning by a language model or by keywords, for `POST /v1/plans` and for tasks alike."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from toolkit.contract.choices import PlannerChoice
from toolkit.contract.errors import Detail, ErrorCode, RequestError
from toolkit.contract.ids import Prefix, build_id_pattern
from toolkit.contract.jobs import Options
from toolkit.contract.money import ZERO_USD, format_usd, to_wire_usd
from toolkit.contract.operations.work_queries import WorkFilter
from toolkit.contract.plans import Missing, Plan, PlanCreate
from toolkit.contract.tasks import PlanGiven, Task, TaskAnswer, TaskCreate
from toolkit.engine.context import EngineContext
from toolkit.engine.execution.job_executor import JobExecutor
from toolkit.engine.job_record import JobRecord, read_job
from toolkit.engine.orchestration.model_calls import (
    ASKED_CAPABILITY,
    PREVIEW_LIMIT_USD,
    ModelCalls,
    RunModelCalls,
    TaskModelCalls,
    can_ask,
    choose_call_options,
)
from toolkit.engine.orchestration.planning_steps import PlanningSteps
from toolkit.engine.orchestration.plans import Plans, make_workflow_request
from toolkit.engine.orchestration.single_jobs import SingleJobs
from toolkit.engine.orchestration.workflows import Workflows
from toolkit.engine.request_context import RequestContext
from toolkit.engine.services.idempotency import commit_accepted
from toolkit.planning.llm_planner import (
    MAX_ANSWER_TOKENS,
    MAX_TRIES,
    FailedTry,
    ModelRequest,
    build_planner_input,
    list_plannable,
)
from toolkit.planning.plan_draft import PlanDraft, PlannerView
from toolkit.planning.plan_validator import PlanRules
from toolkit.store import RUN_LIST, AccountScope, Lease

MAX_NAMED_ARTIFACTS = 20
MAX_VOICES = 10
_ARTIFACT_ID = re.compile(build_id_pattern(Prefix.ARTIFACT).strip("^$"))
KEYWORDS_ASKED = "`rules` was chosen, which plans by keywords."
KEYWORDS_IN_SANDBOX = "In the sandbox, `auto` plans by keywords."


@dataclass(eq=False, slots=True)
class Planning:
    """The service that plans by a language model, or by keywords if no model is available."""

    _core: EngineContext
    _steps: PlanningSteps
    _plans: Plans
    _workflows: Workflows
    _executor: JobExecutor
    _single_jobs: SingleJobs

    async def create(self, context: RequestContext, request: PlanCreate) -> Plan:
        """Plan an objective and store the plan; spend only the cost of a model's tokens.

        Raises:
            RequestError: `NOT_FOUND`, `INVALID_REQUEST`.
        """
        await self._plans.check(context.account_id, request)
        await self._core.quotas.check_storage(context.account_id, 1)
        options = self._choose_options(request)
        limit = request.constraints.max_cost_usd
        calls = RunModelCalls(self._single_jobs, context, limit, options)
        plan = await self._plan(context.account_id, request, calls)
        insert = self._core.records.plans.make_insert(context.account_id, plan)
        await commit_accepted(self._core, context, [insert], plan)
        return plan

    async def plan_task(self, task: Task, lease: Lease) -> Plan:
        """Plan a task; calls of a model for it are jobs under its lease."""
        request = await self.build_request(lease.account_id, task)
        if request.plan is not None:
            return await self._plans.make(lease.account_id, request)
        options = self._choose_options(request)
        calls = TaskModelCalls(self._core, self._executor, task, lease, options)
        answer = task.answers[-1].answer if task.answers else None
        return await self._plan(lease.account_id, request, calls, rewording=answer)

    async def build_request(
        self, account_id: str, task: Task, answers: Sequence[TaskAnswer] = ()
    ) -> TaskCreate:
        """Build the request to plan a task: its own request, with all answers given since.

        Raises:
            ValidationError: if objective and answers are too long together.
        """
        texts = [task.objective, *(answer.answer for answer in (*task.answers, *answers))]
        plan = None
        if task.plan_given and task.plan_id is not None:
            plan = PlanGiven.of(
                await self._core.records.plans.get(AccountScope(account_id), task.plan_id)
            )
        return TaskCreate(objective="\n\n".join(texts), constraints=task.constraints, plan=plan)

    def choose_planner(self, request: PlanCreate) -> PlannerChoice:
        """Choose the planner from the constraints, or else from the operator's settings.

        In the sandbox, `auto` becomes `rules`, which plans by keywords.
        """
        choice = request.constraints.planner or self._core.settings.planner
        return "rules" if choice == "auto" and self._core.settings.sandbox else choice

    def _choose_options(self, request: PlanCreate) -> Options:
        return choose_call_options(self._core.settings.planning, request.constraints.optimize_for)

    async def is_by_model(self, account_id: str, request: PlanCreate) -> bool:
        """Check whether a language model is asked for the plan of an objective."""
        choice, options = self.choose_planner(request), self._choose_options(request)
        return choice == "llm" or (
            choice == "auto" and await can_ask(self._core, account_id, options)
        )

    async def _plan(
        self,
        account_id: str,
        request: PlanCreate,
        calls: ModelCalls,
        rewording: str | None = None,
    ) -> Plan:
        """Plan by a model; by keywords if that is requested, or if `auto` finds no model.

        Args:
            rewording: the objective in other words, from a person's answer to the last question.
        """
        choice = self.choose_planner(request)
        view = await self._plans.find_view(account_id, request.constraints)
        if choice == "rules":
            is_asked = (request.constraints.planner or self._core.settings.planner) == "rules"
            draft = await self._draft_by_keywords(account_id, request, view, rewording)
            keyword_plan, _ = await self._plans.complete(account_id, request, draft)
            keyword_plan.planner_reason = KEYWORDS_ASKED if is_asked else KEYWORDS_IN_SANDBOX
            return keyword_plan
        attempt = _ModelPlanning(
            self._core,
            self._steps,
            self._plans,
            self._workflows,
            account_id,
            request,
            view,
            calls,
            self._core.settings.planning.max_tokens,
        )
        obstacle = None
        if not await can_ask(self._core, account_id, self._choose_options(request)):
            obstacle = self._explain_unconnected()
        plan = None if obstacle else await attempt.plan()
        failure = obstacle or attempt.explain_failure()
        if choice == "auto" and (plan is None or attempt.only_asks(plan)):
            draft = await self._draft_by_keywords(account_id, request, view, rewording)
            if plan is None or is_placed(draft):
                reason = f"The language model only asked: {plan.question}" if plan else failure
                plan, _ = await self._plans.complete(account_id, request, draft)
                plan.planner_reason = f"Planned by keywords. {reason}"
        if plan is None:
            plan = await self._make_failed_plan(account_id, request, failure, obstacle)
        plan.planner_reason = plan.planner_reason or (
            "`llm` was chosen, which plans by a language model."
            if choice == "llm"
            else "A language model is connected."
        )
        plan.cost_incurred_usd = to_wire_usd(attempt.cost)
        plan.llm_job_ids = list(attempt.job_ids)
        return plan

    async def _draft_by_keywords(
        self,
        account_id: str,
        request: PlanCreate,
        view: PlannerView,
        rewording: str | None,
    ) -> PlanDraft:
        draft = await self._steps.plan_objective(account_id, request, view)
        if draft.question is not None and rewording:
            reworded_request = request.model_copy(update={"objective": rewording})
            anew = await self._steps.plan_objective(account_id, reworded_request, view)
            draft = anew if is_placed(anew) or anew.missing else draft
        return draft

    async def _make_failed_plan(
        self,
        account_id: str,
        request: PlanCreate,
        failure: str,
        obstacle: str | None,
    ) -> Plan:
        """Make the plan of an objective that no model planned: a question or a missing connection.

        Args:
            failure: explanation for the caller.
            obstacle: reason why no model could be asked; None if its answers were unusable.
        """
        if obstacle is None:
            question = f'{failure} Rephrase the objective, or plan it by keywords: planner="rules".'
            draft = PlanDraft([], question=question)
        else:
            vendors = self._core.registry.find_vendors(ASKED_CAPABILITY)
            need = Missing(capability=ASKED_CAPABILITY.id, any_of=[vendor.id for vendor in vendors])
            draft = PlanDraft([], missing=(need,))
        plan, _ = await self._plans.complete(account_id, request, draft, "llm")
        plan.planner_reason = failure
        return plan

    def _explain_unconnected(self) -> str:
        provider = self._core.settings.planning.provider
        if provider is None:
            return "No text provider is connected."
        return f"The planner's text provider, `{provider}`, is not connected."


def is_placed(draft: PlanDraft) -> bool:
    """Check whether the keyword planner covered the whole objective, so that its plan may run."""
    return bool(draft.nodes) and draft.question is None and not draft.missing_capabilities


@dataclass(eq=False, slots=True)
class _ModelPlanning:
    """The planning of one objective by a model, with repairs up to the limit of tries."""

    _core: EngineContext
    _steps: PlanningSteps
    _plans: Plans
    _workflows: Workflows
    _account_id: str
    _request: PlanCreate
    _view: PlannerView
    _calls: ModelCalls
    _max_tokens: int
    _failed: list[FailedTry] = field(default_factory=list)
    _stopped_by: str = ""
    job_ids: list[str] = field(default_factory=list)
    cost: Decimal = ZERO_USD

    async def plan(self) -> Plan | None:
        """Have the model plan; return None if it makes no usable plan.

        If no artifact that the objective names exists, the plan is a question, and no model is
        asked.
        """
        if self._calls.remaining == 0:
            self._stopped_by = "The budget has nothing left for a language model."
            return None
        artifacts, unknown = await self._find_artifacts()
        if unknown and not artifacts:
            question = f"There is no artifact `{unknown[0]}`. Upload it, and give its id."
            draft = PlanDraft([], question=question)
            question_plan, _ = await self._plans.complete(
                self._account_id, self._request, draft, "llm"
            )
            return question_plan
        view = self._view
        capabilities = list_plannable(view.capabilities)
        model_request = ModelRequest(
            self._request.objective,
            capabilities,
            frozenset(
                c.id
                for c in capabilities
                if not c.needs_connection or view.providers[c.id] & view.connected
            ),
            artifacts,
            await self._find_voices(),
        )
        while capabilities and len(self._failed) < MAX_TRIES:
            model_input = build_planner_input(model_request, self._failed, self._max_tokens)
            job = await self._ask(model_input)
            if job is None:
                return None
            plan = await self._read_answer(job)
            if plan is not None or self._stopped_by:
                return plan
        return None

    def only_asks(self, plan: Plan) -> bool:
        """Check whether the model's plan is only a question."""
        return bool(self.job_ids and plan.question) and not (plan.nodes or plan.missing)

    def explain_failure(self) -> str:
        """Explain why the model made no usable plan."""
        if self._stopped_by or not self._failed:
            return self._stopped_by or "No capability is available for planning."
        first = self._failed[-1].faults[0]
        fault = f"`{first.path}`: {first.message}" if first.path else first.message
        tries = len(self._failed)
        return f"None of {tries} answers of the language model is a valid plan ({fault})."

    async def _find_artifacts(self) -> tuple[Mapping[str, str], list[str]]:
        """Find the artifacts that the objective names.

        Returns:
            the media types of existing artifacts by their ids, and the ids of all others.
        """
        media_types, unknown = {}, []
        ids = dict.fromkeys(_ARTIFACT_ID.findall(self._request.objective))
        for artifact_id in list(ids)[:MAX_NAMED_ARTIFACTS]:
            try:
                artifact = await self._core.records.artifacts.get(
                    AccountScope(self._account_id), artifact_id
                )
            except RequestError:
                unknown.append(artifact_id)
            else:
                media_types[artifact_id] = artifact.media_type
        return media_types, unknown

    async def _find_voices(self) -> Mapping[str, str]:
        """Find the voices that the account cloned last, by the names it gave them."""
        work_filter = WorkFilter(capability="voice.clone", status="completed")
        rows = await self._core.store.list_work(
            RUN_LIST, AccountScope(self._account_id), work_filter, MAX_VOICES, None
        )
        outputs = (read_job(row).output or {} for row in reversed(rows))
        return {
            str(output["name"]): str(output["voice"]) for output in outputs if output.get("voice")
        }

    async def _ask(self, model_input: dict[str, object]) -> JobRecord | None:
        """Ask the model once; return None, with the reason noted, if it could not be asked."""
        try:
            job = await self._calls.ask(model_input)
        except RequestError as error:
            if error.code is ErrorCode.BUDGET_EXCEEDED:
                self._stopped_by = self._explain_budget()
            else:
                self._stopped_by = f"The language model could not be asked ({error.message})"
            return None
        self.job_ids.append(job.id)
        self.cost += job.cost_incurred_usd
        return job

    def _explain_budget(self) -> str:
        limit = PREVIEW_LIMIT_USD if self._calls.remaining is None else self._calls.remaining
        amount = format_usd(limit, exact=True)
        return f"{amount} does not cover the possible cost of planning by a language model."

    async def _read_answer(self, job: JobRecord) -> Plan | None:
        """Read the plan in an answer; return None if it has faults or there is no plan."""
        if job.status != "completed" or job.output is None:
            why = job.error.message if job.error else "the call failed"
            if job.error is not None and job.error.code == ErrorCode.BUDGET_EXCEEDED.name:
                self._stopped_by = self._explain_budget()
                return None
            if job.error is None or job.error.code != ErrorCode.INVALID_OUTPUT.name:
                self._stopped_by = f"The language model did not answer ({why})"
                return None
            # The answer is empty, or holds only the model's reasoning.
            self._refuse("", [Detail("", why)], is_cut_off="max_tokens" in why)
            return None
        text = str(job.output["text"])
        is_cut_off = job.output["finish_reason"] == "length"
        allowed = frozenset(c.id for c in self._view.capabilities)
        rules = PlanRules(self._core.registry.by_name, allowed)
        try:
            read = await self._steps.read_reply(
                self._account_id, text, self._request.objective, self._view, rules
            )
        except ValueError as error:  # a further answer would cost money and fail the same way
            self._stopped_by = f"The language model answered, but {error}."
            return None
        plan: Plan | None = None
        faults = read.faults
        if not faults:
            plan, faults = await self._check(read.draft)
        if plan is None:
            self._refuse(text, faults, is_cut_off=is_cut_off)
        return plan

    def _refuse(self, text: str, faults: Sequence[Detail], *, is_cut_off: bool) -> None:
        """Note an answer without a plan; double the token limit if the answer was cut off."""
        if is_cut_off:
            text, faults = "", [Detail("", f"it was cut off after {self._max_tokens} tokens")]
            self._max_tokens = min(2 * self._max_tokens, MAX_ANSWER_TOKENS)
        self._failed.append(FailedTry(text, faults))

    async def _check(self, draft: PlanDraft) -> tuple[Plan | None, list[Detail]]:
        """Complete a plan, and check its budget and the rules of `POST /v1/workflows`.

        Returns:
            the plan, or None if it has faults; the faults.
        """
        limit = self._calls.remaining
        constraints = self._request.constraints.model_copy(
            update={"max_cost_usd": None if limit is None else to_wire_usd(limit)}
        )
        request = self._request.model_copy(update={"constraints": constraints})
        plan, refusal = await self._plans.complete(self._account_id, request, draft, "llm")
        if refusal is not None:
            return None, [Detail("constraints.max_cost_usd", refusal)]
        if not plan.executable:
            return plan, []
        flow = make_workflow_request(plan.objective, request.constraints, plan.nodes)
        try:
            await self._workflows.check(self._account_id, flow, limit=limit)
        except RequestError as error:
            return None, list(error.details) or [Detail("nodes", error.message)]
        return plan, []
