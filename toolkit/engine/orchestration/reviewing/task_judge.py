"""The judge of a task's texts: asks a language model, and says so where it could not be asked."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

from toolkit.contract.jobs import Options
from toolkit.contract.plans import Plan
from toolkit.contract.tasks import JUDGE_REVIEWER, Review, Task
from toolkit.engine.context import EngineContext
from toolkit.engine.execution.job_executor import JobExecutor
from toolkit.engine.orchestration.model_calls import (
    ASKED_CAPABILITY,
    ModelCalls,
    TaskModelCalls,
    choose_call_options,
)
from toolkit.engine.orchestration.planning_steps import PlanningSteps
from toolkit.engine.routing.router import is_servable
from toolkit.planning.review.evidence import Evidence
from toolkit.planning.review.issues import ReviewIssue
from toolkit.planning.review.judge import (
    MAX_SAMPLES,
    JudgeBrief,
    JudgeSample,
    build_brief,
    build_judge_input,
    is_near_line,
    make_issues,
    merge_samples,
)
from toolkit.planning.review.reviewer import judge_issues
from toolkit.review_thresholds import ReviewThresholds
from toolkit.store import AccountScope, Lease

ReadAnswer = Callable[[str, JudgeBrief], Awaitable[JudgeSample]]


@dataclass(frozen=True, slots=True)
class Judgement:
    """The judge's opinion of a task's texts.

    Attributes:
        is_given: whether it gave any; the checks alone decide where it did not.
        notes: what a person should know of how it came about.
    """

    is_given: bool
    issues: Sequence[ReviewIssue] = ()
    notes: Sequence[str] = ()


class TaskJudge:
    """The judge: asked by jobs of the task, under its budget, about what the checks let pass."""

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
        """Reconsider what the checks let pass, where the task or else the operator wants it.

        Args:
            verdict: the checks'.
            task: whose results are reviewed; its record names the jobs by which the judge is asked.
            lease: the task's.
            plan: that the task follows.
            evidence: the results.
            issues: what the checks found and let pass.
            retries_left: how many times it may still be run again.
        """
        wanted = task.constraints.review or self._core.settings.reviewer
        if wanted == "checks" or verdict.decision != "pass":
            return verdict
        brief = build_brief(plan.objective, evidence)
        if wanted == "auto" and not await self._is_offered(task, lease.account_id, brief):
            return verdict
        judgement = await self._judge(task, lease, brief)
        if judgement.is_given:
            verdict = judge_issues(
                [*issues, *judgement.issues],
                evidence,
                attempt=task.review_attempts,
                retries_left=retries_left,
                thresholds=self._core.settings.review,
            )
            verdict.reviewer = JUDGE_REVIEWER
        verdict.issues += judgement.notes
        return verdict

    async def _is_offered(self, task: Task, account_id: str, brief: JudgeBrief) -> bool:
        """Tell whether `auto` asks the judge: where it can be asked outside the sandbox."""
        if self._core.settings.sandbox:
            return False
        options = self._choose_options(task)
        return await self._find_obstacle(task, account_id, brief, options) is None

    def _choose_options(self, task: Task) -> Options:
        settings = self._core.settings
        use = settings.judging
        use = use.model_copy(update={"provider": use.provider or settings.planning.provider})
        return choose_call_options(use, task.constraints.optimize_for)

    async def _judge(self, task: Task, lease: Lease, brief: JudgeBrief) -> Judgement:
        options = self._choose_options(task)
        obstacle = await self._find_obstacle(task, lease.account_id, brief, options)
        if obstacle is not None:
            return _fall_back(obstacle)
        calls = TaskModelCalls(self._core, self._executor, task, lease, options)
        read = partial(self._steps.read_judgement, lease.account_id)
        settings = self._core.settings
        return await judge_texts(brief, calls, read, settings.review, settings.judging.max_tokens)

    async def _find_obstacle(
        self, task: Task, account_id: str, brief: JudgeBrief, options: Options
    ) -> str | None:
        """Find why the judge cannot be asked at all; none if it can."""
        if not brief.texts:
            return "there is no text to judge"
        allowed = task.constraints.capabilities
        if allowed is not None and ASKED_CAPABILITY.id not in allowed:
            return f"the task may not use {ASKED_CAPABILITY.id}"
        pool = await self._core.find_providers(AccountScope(account_id), ASKED_CAPABILITY, options)
        if not is_servable(ASKED_CAPABILITY, options, pool):
            return "no language model is connected"
        return None


async def judge_texts(
    brief: JudgeBrief,
    calls: ModelCalls,
    read: ReadAnswer,
    thresholds: ReviewThresholds,
    max_tokens: int,
) -> Judgement:
    """Have a model judge texts; where they score near what passes, a second time."""
    samples: list[JudgeSample] = []
    failure = ""
    while len(samples) < MAX_SAMPLES and not failure:
        sample, failure = await _ask(brief, calls, read, len(samples), max_tokens)
        samples += [] if sample is None else [sample]
        if samples and not is_near_line(merge_samples(samples), thresholds):
            break
    if not samples:
        return _fall_back(failure)
    merged = merge_samples(samples)
    told = [f"judge: it was asked again, but {failure}."] if failure else []
    if merged.dropped:
        told.append(f"judge: {merged.dropped} of its findings quote what is not there.")
    return Judgement(True, make_issues(merged, thresholds), told)


async def _ask(
    brief: JudgeBrief, calls: ModelCalls, read: ReadAnswer, sample: int, max_tokens: int
) -> tuple[JudgeSample | None, str]:
    """Ask once; without an answer that can be read, say why."""
    job = await calls.ask(build_judge_input(brief, sample, max_tokens))
    if job.output is None:
        return None, f"it did not answer ({job.error.code if job.error else job.status})"
    try:
        return await read(str(job.output["text"]), brief), ""
    except ValueError:
        return None, "its answer is not what it was asked for"


def _fall_back(reason: str) -> Judgement:
    return Judgement(False, notes=[f"judge: {reason}; the checks decide."])
