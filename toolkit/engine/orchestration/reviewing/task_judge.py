"""The judge of a task's texts: asks a language model, and reports if it could not ask."""

from collections.abc import Sequence

from toolkit.contract.jobs import Options
from toolkit.contract.plans import Plan
from toolkit.contract.tasks import JUDGE_REVIEWER, Review, Task
from toolkit.engine.context import EngineContext
from toolkit.engine.execution.job_executor import JobExecutor
from toolkit.engine.orchestration.model_calls import (
    ASKED_CAPABILITY,
    TaskModelCalls,
    can_ask,
    choose_call_options,
)
from toolkit.engine.orchestration.planning_steps import PlanningSteps
from toolkit.planning.review.evidence import Evidence
from toolkit.planning.review.issues import ReviewIssue
from toolkit.planning.review.judge import (
    JudgeBrief,
    Judgement,
    build_brief,
    build_judge_input,
    make_issues,
)
from toolkit.planning.review.reviewer import judge_issues
from toolkit.store import Lease


class TaskJudge:
    """The judge of results that passed the checks: asked by jobs under the task's budget."""

    def __init__(self, core: EngineContext, steps: PlanningSteps, executor: JobExecutor) -> None:
        self._core = core
        self._steps = steps
        self._executor = executor

    async def reconsider(
        self,
        verdict: Review,
        task: Task,
        lease: Lease,
        plan: Plan,
        evidence: Sequence[Evidence],
        issues: Sequence[ReviewIssue],
        retries_left: int,
    ) -> Review:
        """Reconsider the checks' suspicions, if the task or else the operator wants it.

        A certain finding of the checks stands; the judge decides on the rest.

        Args:
            task: task whose results are reviewed; its record names the jobs that ask the judge.
            retries_left: number of further retries that the task may have.
        """
        reviewer = task.constraints.review or self._core.settings.reviewer
        certain = [issue for issue in issues if not issue.is_hint]
        if reviewer == "checks" or any(issue.is_blocking for issue in certain):
            return verdict
        hints = [issue for issue in issues if issue.is_hint]
        brief = build_brief(plan.objective, evidence, hints)
        if reviewer == "auto" and not await self._is_offered(task, lease.account_id, brief):
            return verdict
        judgement, note = await self._judge(task, lease, brief)
        if judgement is not None:
            verdict = judge_issues(
                [*certain, *make_issues(judgement)],
                evidence,
                attempt=task.review_attempts,
                retries_left=retries_left,
                thresholds=self._core.settings.review,
            )
            verdict.reviewer = JUDGE_REVIEWER
        verdict.issues += [note] if note else []
        return verdict

    async def _is_offered(self, task: Task, account_id: str, brief: JudgeBrief) -> bool:
        """Check whether `auto` asks the judge: if the judge is available and the sandbox is off."""
        if self._core.settings.sandbox:
            return False
        options = self._choose_options(task)
        return await self._find_obstacle(task, account_id, brief, options) is None

    def _choose_options(self, task: Task) -> Options:
        settings = self._core.settings
        use = settings.judging
        use = use.model_copy(update={"provider": use.provider or settings.planning.provider})
        return choose_call_options(use, task.constraints.optimize_for)

    async def _judge(
        self, task: Task, lease: Lease, brief: JudgeBrief
    ) -> tuple[Judgement | None, str]:
        """Ask the judge.

        Returns:
            the judgement, or None without an answer; a note on its origin, which may be empty.
        """
        options = self._choose_options(task)
        obstacle = await self._find_obstacle(task, lease.account_id, brief, options)
        if obstacle is not None:
            return None, f"judge: {obstacle}; the checks decide."
        calls = TaskModelCalls(self._core, self._executor, task, lease, options)
        job = await calls.ask(build_judge_input(brief, self._core.settings.judging.max_tokens))
        if job.output is None:
            code = job.error.code if job.error else job.status
            return None, f"judge: it did not answer ({code}); the checks decide."
        try:
            judgement = await self._steps.read_judgement(
                lease.account_id, str(job.output["text"]), brief
            )
        except ValueError:
            return None, "judge: its answer is not in the requested form; the checks decide."
        if judgement.dropped:
            return (
                judgement,
                f"judge: {judgement.dropped} of its findings quote text that is not there.",
            )
        return judgement, ""

    async def _find_obstacle(
        self, task: Task, account_id: str, brief: JudgeBrief, options: Options
    ) -> str | None:
        """Find the reason why the judge cannot be asked; None if it can."""
        if not brief.texts:
            return "there is no text to judge"
        allowed = task.constraints.capabilities
        if allowed is not None and ASKED_CAPABILITY.id not in allowed:
            return f"the task may not use {ASKED_CAPABILITY.id}"
        if not await can_ask(self._core, account_id, options):
            return "no language model is connected"
        return None
