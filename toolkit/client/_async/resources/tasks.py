"""`client.tasks`: objectives planned, run, reviewed and tried again."""

from collections.abc import Mapping, Sequence
from typing import Self

from toolkit.client._async.annotated import AsyncAnnotated, AsyncAnnotatedResource
from toolkit.client._async.resources.plans import AsyncPlan, AsyncPlans
from toolkit.client._async.resources.workflows import AsyncWorkflowRun, AsyncWorkflows
from toolkit.client._objective import PlanSource, make_review_body, make_task_body
from toolkit.client._options import check_arguments
from toolkit.client._wire.messages import drop_none, make_annotation
from toolkit.client._work_views import TaskView
from toolkit.contract import tasks
from toolkit.contract.choices import Decision, OptimizeFor, PlannerChoice, ReviewMode
from toolkit.contract.errors import ErrorCode, RequestError


class AsyncTask(TaskView, AsyncAnnotated[tasks.Task]):
    """A task; `wait` also returns when it is blocked, which only a person can change."""

    noun, resource, record_type = "Task", "tasks", tasks.Task

    async def workflow(self, id: str | None = None) -> AsyncWorkflowRun:
        """Read a workflow that was run for it.

        Args:
            id: one of `workflow_ids`; the last one by default.

        Raises:
            RequestError: `NOT_FOUND` while there is none.
        """
        chosen = id or self.workflow_id
        if not chosen:
            raise RequestError(ErrorCode.NOT_FOUND, f"{self.id} has no workflow yet: wait for it.")
        return await AsyncWorkflows(self._http).get(chosen)

    async def plan(self) -> AsyncPlan:
        """Read the plan that it follows.

        Raises:
            RequestError: `NOT_FOUND` while there is none.
        """
        if not self.plan_id:
            raise RequestError(ErrorCode.NOT_FOUND, f"{self.id} has no plan yet: wait for it.")
        return await AsyncPlans(self._http).get(self.plan_id)

    async def submit_review(
        self,
        decision: Decision,
        *,
        issues: Sequence[str] = (),
        score: float | None = None,
        criteria: Mapping[str, float] | None = None,
        node_id: str | None = None,
        constraints: Mapping[str, object] | None = None,
        attempt: int | None = None,
    ) -> Self:
        """Judge it once it has ended, in place of the reviewer.

        Args:
            decision: `pass`, `fail`, or `retry` to run part of it again.
            issues: what is wrong with it; a retry tells it the nodes that run again.
            score: overall, 0 to 1.
            criteria: `objective_alignment`, `technical_success`, `output_completeness`; 0 to 1.
            node_id: what a retry runs again, with what depends on it; by default the last node, or
                with issues, those before it that can be told them.
            constraints: input members that a retry sets on that node.
            attempt: which of `attempts` is judged, counted from 1; the one that is delivered, or
                else for `pass` the best and for the others the last, by default.

        Raises:
            RequestError: `CONFLICT` for a task that is under way, or was retried twice.
        """
        body = make_review_body(decision, issues, score, criteria, node_id, constraints, attempt)
        return await self._call("POST", "/reviews", json=body)

    async def resume(self, answer: str | None = None) -> Self:
        """Take it back to planning, once what blocked it is there.

        Args:
            answer: to its `question`, where it has one.

        Raises:
            RequestError: `CONFLICT` when it is not blocked, `INVALID_REQUEST` for a question
                without an answer.
        """
        return await self._call("POST", "/resume", json=drop_none(answer=answer))


class AsyncTasks(AsyncAnnotatedResource[AsyncTask]):
    """`client.tasks`."""

    handle = AsyncTask

    @check_arguments("`plans.create(objective)` makes a plan alone, `tasks.create(plan=…)` runs it")
    async def create(
        self,
        objective: str | None = None,
        *,
        plan: AsyncPlan | PlanSource | None = None,
        max_cost_usd: float | None = None,
        optimize_for: OptimizeFor | None = None,
        endpoint_id: str | None = None,
        compute_id: str | None = None,
        capabilities: Sequence[str] | None = None,
        planner: PlannerChoice | None = None,
        review: ReviewMode | None = None,
        tags: Sequence[str] | None = None,
        note: str | None = None,
        stream: bool = False,
    ) -> AsyncTask:
        """Have an objective planned, run and reviewed.

        Args:
            objective: what is wanted, in plain words; that of the plan, or the workflow's name, by
                default.
            plan: is run as it is: one that was previewed, edited or not, its JSON, or a workflow.
            max_cost_usd: what all of it may cost.
            optimize_for: what providers are chosen by.
            endpoint_id, compute_id: where GPU work runs.
            capabilities: the only ones that may be used; all of them by default.
            planner: `llm`, a language model; `rules`, by keywords; or `auto`, the model where one
                is connected outside the sandbox.
            review: `checks`; `judge`, a language model as well; or `auto`, the judge where one is
                connected outside the sandbox and affordable.
            tags: words to find it by in lists; those of a workflow that is its plan, by default.
            note: a remark on it, in your own words; likewise.
            stream: have the texts of its nodes come as they are written, from the first on:
                `wait()` shows them.

        Raises:
            RequestError: `INVALID_WORKFLOW` with every fault of a plan.
        """
        constraints = drop_none(
            max_cost_usd=max_cost_usd,
            optimize_for=optimize_for,
            endpoint_id=endpoint_id,
            compute_id=compute_id,
            capabilities=capabilities and list(capabilities),
            planner=planner,
            review=review,
        )
        record = plan.record if isinstance(plan, AsyncPlan) else plan
        body = make_task_body(objective, constraints, record)
        task = await self._create(body | make_annotation(tags, note), watches_text=stream)
        task.is_streamed = stream
        return task

    async def submit_review(
        self,
        id: str,
        decision: Decision,
        *,
        issues: Sequence[str] = (),
        score: float | None = None,
        criteria: Mapping[str, float] | None = None,
        node_id: str | None = None,
        constraints: Mapping[str, object] | None = None,
        attempt: int | None = None,
    ) -> AsyncTask:
        """Judge a task that has ended, in place of the reviewer.

        Args:
            id: the task.
            decision: `pass`, `fail`, or `retry` to run part of it again.
            issues: what is wrong with it; a retry tells it the nodes that run again.
            score: overall, 0 to 1.
            criteria: `objective_alignment`, `technical_success`, `output_completeness`; 0 to 1.
            node_id: what a retry runs again, with what depends on it; by default the last node, or
                with issues, those before it that can be told them.
            constraints: input members that a retry sets on that node.
            attempt: which of `attempts` is judged, counted from 1; the one that is delivered, or
                else for `pass` the best and for the others the last, by default.

        Raises:
            RequestError: `CONFLICT` for a task that is under way, or was retried twice.
        """
        body = make_review_body(decision, issues, score, criteria, node_id, constraints, attempt)
        return await self._call("POST", id, "/reviews", body)

    async def resume(self, id: str, answer: str | None = None) -> AsyncTask:
        """Take a blocked task back to planning.

        Args:
            id: the task.
            answer: to its `question`, where it has one.

        Raises:
            RequestError: `CONFLICT` when it is not blocked, `INVALID_REQUEST` for a question
                without an answer.
        """
        return await self._call("POST", id, "/resume", drop_none(answer=answer))
