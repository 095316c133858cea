"""The CPU steps of planning and review: in worker processes, with deadlines, accounts in turn."""

import logging
from collections.abc import Callable, Sequence
from typing import TypeVar

from toolkit.contract.errors import Detail, ErrorCode, WorkError
from toolkit.contract.plans import PlanCreate, PlanNode
from toolkit.engine.context import EngineContext
from toolkit.planning import steps
from toolkit.planning.model_reply import ReadPlan
from toolkit.planning.plan_draft import PlanDraft, PlannerView
from toolkit.planning.plan_validator import PlanRules
from toolkit.planning.review.evidence import Evidence, ReviewIssue
from toolkit.planning.review.judge import JudgeBrief, Judgement
from toolkit.plugins import ProviderError, RunInProcess

T = TypeVar("T")
log = logging.getLogger(__name__)

# The maximum time of a step that works on texts alone, in seconds. A second is usual; on a busy
# machine, the start of its process alone may take several.
TEXT_DEADLINE_S = 15.0
# A worker process may be killed, for example if memory runs out: the step is retried once.
MAX_TRIES = 2
STEPS = (
    steps.plan_objective,
    steps.read_reply,
    steps.find_faults,
    steps.check_results,
    steps.read_judgement,
)


class StepEndedError(ValueError):
    """A text could not be read in time, or ended its worker process; the message says which."""


class PlanningSteps:
    """The steps of planning and review that worker processes carry out."""

    def __init__(self, core: EngineContext) -> None:
        self._core = core

    def prepare(self) -> None:
        """Start a worker process for a first plan, without waiting for it."""
        self._core.driver.prepare_steps(STEPS)

    async def plan_objective(
        self, account_id: str, request: PlanCreate, view: PlannerView
    ) -> PlanDraft:
        """Plan an objective by keywords; if that takes too long, the plan is a question instead."""
        constraints = request.constraints.model_dump_json()
        args = (request.objective, constraints, steps.write_view(view))
        try:
            answer = await self._run_on_text(account_id, steps.plan_objective, *args)
        except StepEndedError as error:
            return PlanDraft(
                [],
                question=f"Planning by keywords failed: {error}. Shorten the objective, or connect"
                " a text provider so that a language model plans it.",
            )
        return steps.DRAFT.validate_json(answer)

    async def read_reply(
        self, account_id: str, text: str, objective: str, view: PlannerView, rules: PlanRules
    ) -> ReadPlan:
        """Read a model's plan, and find its faults.

        Raises:
            StepEndedError: if the answer takes too long to read, or ends the worker process.
        """
        args = (text, objective, steps.write_view(view), steps.write_rules(rules))
        answer = await self._run_on_text(account_id, steps.read_reply, *args)
        return steps.READ_PLAN.validate_json(answer)

    async def find_faults(
        self,
        account_id: str,
        nodes: Sequence[PlanNode],
        deliverables: Sequence[str],
        rules: PlanRules,
    ) -> list[Detail]:
        """Find every fault of a plan that a caller provides."""
        args = (steps.NODES.dump_json(list(nodes)), list(deliverables), steps.write_rules(rules))
        try:
            answer = await self._run_on_text(account_id, steps.find_faults, *args)
        except StepEndedError as error:
            return [Detail("nodes", str(error))]
        return [Detail(path, message) for path, message in answer]

    async def check_results(
        self,
        account_id: str,
        objective: str,
        evidence: Sequence[Evidence],
        deliverables: Sequence[str],
        attempt: int,
    ) -> list[ReviewIssue]:
        """Check the results of a task's workflow in a worker process; return the issues found.

        Raises:
            WorkError: `PROVIDER_TIMEOUT`, or `INTERNAL` if the worker process died each time.
        """
        settings = self._core.settings
        capabilities, documents = steps.write_evidence(evidence)
        has_media = any(
            item.blob is not None and not item.blob.media_type.startswith(("text/", "application/"))
            for item in evidence
        )
        # Measuring pictures and sounds takes long.
        timeout_s = settings.cpu_timeout_s if has_media else TEXT_DEADLINE_S
        args = (objective, capabilities, documents, list(deliverables), attempt)
        try:
            answer = await self._run(account_id, steps.check_results, *args, timeout_s=timeout_s)
        except ProviderError as error:
            if self._core.is_draining:
                raise  # the engine ends its worker processes; the next process continues the task
            reason = f"could not be made ({error.message.rstrip('.')})"
            if error.code is ErrorCode.PROVIDER_TIMEOUT:
                reason = f"took longer than {timeout_s:g} s and were stopped"
            # This ends the task: the same checks would end the same way each time.
            raise _make_check_error(error.code, reason) from None
        except Exception as error:  # a defect of a check
            log.exception("the checks of the results failed")
            reason = f"failed ({type(error).__name__}), which is a defect of the toolkit"
            raise _make_check_error(ErrorCode.INTERNAL, reason) from None
        return steps.ISSUES.validate_json(answer)

    async def read_judgement(self, account_id: str, text: str, brief: JudgeBrief) -> Judgement:
        """Read a judge's answer, and keep the findings that are proven.

        Raises:
            ValueError: if the answer is not the requested JSON, or takes too long to read.
        """
        document = steps.BRIEF.dump_json(brief).decode()
        answer = await self._run_on_text(account_id, steps.read_judgement, text, document)
        return steps.JUDGEMENT.validate_json(answer)

    async def _run_on_text(self, account_id: str, function: Callable[..., T], *args: object) -> T:
        """Run a step that works on texts alone, within `TEXT_DEADLINE_S`; return its result.

        Raises:
            StepEndedError: if it takes too long, or ends the worker process.
        """
        try:
            return await self._run(account_id, function, *args, timeout_s=TEXT_DEADLINE_S)
        except ProviderError as error:
            reason = f"({error.message.rstrip('.')})"
            if error.code is ErrorCode.PROVIDER_TIMEOUT:
                reason = f"within {TEXT_DEADLINE_S:g} s"
            raise StepEndedError(f"the text could not be read {reason}") from None

    async def _run(
        self, account_id: str, function: Callable[..., T], *args: object, timeout_s: float
    ) -> T:
        step = RunInProcess(function, args, timeout_s=timeout_s)
        for tries_left in reversed(range(MAX_TRIES)):
            try:
                answer: T = await self._core.driver.run_in_process(step, account_id)  # type: ignore[assignment]
            except ProviderError as error:
                if not (error.retryable and tries_left):
                    raise
            else:
                return answer
        raise AssertionError("the last try returns or raises")


def _make_check_error(code: ErrorCode, reason: str) -> WorkError:
    return WorkError(
        code,
        f"The checks of the results {reason}. Look at the results, and pass or fail them by"
        " `task.submit_review`.",
    )
