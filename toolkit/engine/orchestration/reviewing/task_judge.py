"""The judge of results: asks a model about texts and pictures, a transcriber about speech."""

from collections.abc import Sequence
from dataclasses import replace

from toolkit.capabilities.speech_transcribe import CAPABILITY as TRANSCRIBER
from toolkit.contract.errors import ErrorCode
from toolkit.contract.jobs import Options
from toolkit.contract.plans import Plan
from toolkit.contract.tasks import JUDGE_REVIEWER, Review, Task
from toolkit.engine.context import EngineContext
from toolkit.engine.execution.job_executor import JobExecutor
from toolkit.engine.job_record import JobRecord
from toolkit.engine.orchestration.model_calls import (
    ASKED_CAPABILITY,
    TaskModelCalls,
    can_ask,
    choose_call_options,
)
from toolkit.engine.orchestration.planning_steps import PlanningSteps
from toolkit.planning.review.evidence import Evidence, ReviewIssue
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
    """Asks a model to judge a task's results after the checks, by jobs under the task's budget."""

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
        """Return the verdict after the judge has reconsidered the checks' uncertain findings.

        A certain finding of the checks stands; the judge decides on the rest. The verdict is
        returned unchanged if the settings exclude the judge or a certain finding decides already.
        If the judge gives no usable answer, the verdict only gets a note about that.

        Args:
            task: task whose results are reviewed; its record names the jobs that ask the judge.
            retries_left: number of further retries that the task may have.
        """
        reviewer = task.constraints.review or self._core.settings.reviewer
        certain = [issue for issue in issues if not issue.is_hint]
        if reviewer == "checks" or any(issue.is_blocking for issue in certain):
            return verdict
        hints = [issue for issue in issues if issue.is_hint]
        sees = await can_ask(self._core, lease.account_id, self._choose_options(task), "images")
        brief = build_brief(plan.objective, evidence, hints, shows_pictures=sees)
        if reviewer == "auto" and not await self._is_offered(task, lease.account_id, brief):
            return verdict
        judgement, note = await self._judge(task, lease, brief)
        if judgement is not None:
            verdict = judge_issues(
                [*certain, *make_issues(judgement)],
                evidence,
                attempt=task.review_attempts,
                retries_left=retries_left,
                pass_score=self._core.settings.review.pass_score,
            )
            verdict.reviewer = JUDGE_REVIEWER
            verdict.saw_pictures = judgement.saw_pictures
        verdict.issues += [note] if note else []
        return verdict

    async def hear_narrations(
        self, task: Task, lease: Lease, evidence: Sequence[Evidence]
    ) -> list[Evidence]:
        """Return the evidence, with transcripts of spoken texts if a transcriber may be asked.

        A spoken text that could not be transcribed is checked without its words.
        """
        heard = list(evidence)
        places = [place for place, item in enumerate(heard) if item.is_narration]
        settings, allowed = self._core.settings, task.constraints.capabilities
        reviewer = task.constraints.review or settings.reviewer
        options = Options(
            optimize_for=task.constraints.optimize_for, deadline_s=settings.judging.deadline_s
        )
        if (
            not places
            or reviewer == "checks"
            or (reviewer == "auto" and settings.sandbox)
            or (allowed is not None and TRANSCRIBER.id not in allowed)
            or not await can_ask(self._core, lease.account_id, options, capability=TRANSCRIBER)
        ):
            return heard
        calls = TaskModelCalls(self._core, self._executor, task, lease, options, TRANSCRIBER)
        for place in places:
            item = heard[place]
            job = await calls.ask({"audio": (item.output or {})["artifact_id"]})
            if job.output is not None:
                heard[place] = replace(item, heard_text=str(job.output["text"]))
        return heard

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
        """Ask the judge about a brief, and again without pictures if they may be the obstacle.

        Returns:
            the judgement, or None without a usable answer; a note on a problem, or "".
        """
        options = self._choose_options(task)
        obstacle = await self._find_obstacle(task, lease.account_id, brief, options)
        if obstacle is not None:
            return None, f"judge: {obstacle}; the checks decide."
        calls = TaskModelCalls(self._core, self._executor, task, lease, options)
        max_tokens = self._core.settings.judging.max_tokens
        job = await calls.ask(build_judge_input(brief, max_tokens))
        if brief.picture_ids and _is_refused(job):
            brief = brief.without_pictures()
            if brief.texts:
                job = await calls.ask(build_judge_input(brief, max_tokens))
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
                f"judge: {judgement.dropped} of its findings are left out: their quotes are not in"
                " the texts, or they came after the tenth.",
            )
        return judgement, ""

    async def _find_obstacle(
        self, task: Task, account_id: str, brief: JudgeBrief, options: Options
    ) -> str | None:
        """Find the reason why the judge cannot be asked; None if it can."""
        if not brief.texts:
            return "there is nothing to judge"
        allowed = task.constraints.capabilities
        if allowed is not None and ASKED_CAPABILITY.id not in allowed:
            return f"the task may not use {ASKED_CAPABILITY.id}"
        if not await can_ask(self._core, account_id, options):
            return "no language model is connected"
        return None


def _is_refused(job: JobRecord) -> bool:
    """Check whether a job failed because of its pictures: it was not tried, or was rejected.

    Pictures may make a request too expensive. A local model may not be able to see.
    """
    if job.error is None or not job.attempts:
        return job.error is not None
    is_answered = job.attempts[-1].http_status is not None
    return is_answered and job.error.code == ErrorCode.PROVIDER_REJECTED.name
