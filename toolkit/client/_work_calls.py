"""Asking for jobs, plans, tasks and workflows, as far as both clients do it alike."""

from collections.abc import Mapping, Sequence
from typing import TypeVar, Unpack

from toolkit.client._builder import Workflow
from toolkit.client._objective import PlanSource, make_review_body, make_task_body
from toolkit.client._options import check_arguments, collect_options, document_options
from toolkit.client._resource_calls import AnnotatedCalls, HandleCalls, ResourceCalls, WorkCalls
from toolkit.client._wire.messages import drop_none, make_annotation
from toolkit.client._work_views import PlanView
from toolkit.contract.choices import Decision, OptimizeFor, PlannerChoice, ReviewMode
from toolkit.contract.run_options import WORK_OPTIONS, WorkOptions

H = TypeVar("H")  # a handle, or for the async client what is awaited for one
# What the service waits for a model at most: three answers.
MODEL_PLANNING_S = 180.0


class JobCalls(WorkCalls[H]):
    """The calls of `client.jobs`."""

    @document_options(WorkOptions)
    def create(
        self,
        type: str,
        compute_id: str,
        input: Mapping[str, object],
        **options: Unpack[WorkOptions],
    ) -> H:
        """Have a job done on a compute of one's own; it is under way when this returns.

        Args:
            type: what to do, such as `image` (`job.type` of a capability).
            compute_id: the compute to do it on.
            input: the capability's input.
            **options: those of a run.

        Raises:
            RequestError: `INVALID_REQUEST`, `NOT_FOUND` and others.
        """
        chosen = collect_options(options, self._http.choose_cache("capability"), WORK_OPTIONS)
        body = {"type": type, "compute_id": compute_id, "input": dict(input), "options": chosen}
        return self._create(body)


class PlanCalls(ResourceCalls[H]):
    """The calls of `client.plans`."""

    def create(
        self,
        objective: str,
        *,
        max_cost_usd: float | None = None,
        optimize_for: OptimizeFor | None = None,
        planner: PlannerChoice | None = None,
    ) -> H:
        """Plan an objective without doing it: `tasks.create(plan=…)` runs the plan as it is.

        Args:
            objective: what is wanted, in plain words.
            max_cost_usd: what all of it may cost, the planning included; without it, planning
                alone may cost 0.05 USD.
            optimize_for: what the router favours.
            planner: `llm`, a language model, whose tokens are paid for; `rules`, which plan by
                keywords and spend nothing; `auto` (the service's default), the model where one is
                connected outside the sandbox.
        """
        constraints = drop_none(
            max_cost_usd=max_cost_usd, optimize_for=optimize_for, planner=planner
        )
        hold_s = 0.0 if planner == "rules" else MODEL_PLANNING_S
        return self._create({"objective": objective, "constraints": constraints}, hold_s=hold_s)


class TaskHandleCalls(HandleCalls[H]):
    """The calls of a task."""

    def submit_review(
        self,
        decision: Decision,
        *,
        issues: Sequence[str] = (),
        score: float | None = None,
        criteria: Mapping[str, float] | None = None,
        node_id: str | None = None,
        constraints: Mapping[str, object] | None = None,
        attempt: int | None = None,
    ) -> H:
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
        return self._call("POST", "/reviews", json=body)

    def resume(self, answer: str | None = None) -> H:
        """Take it back to planning, once what blocked it is there.

        Args:
            answer: to its `question`, where it has one.

        Raises:
            RequestError: `CONFLICT` when it is not blocked, `INVALID_REQUEST` for a question
                without an answer.
        """
        return self._call("POST", "/resume", json=drop_none(answer=answer))


class TaskCalls(AnnotatedCalls[H]):
    """The calls of `client.tasks`."""

    @check_arguments("`plans.create(objective)` makes a plan alone, `tasks.create(plan=…)` runs it")
    def create(
        self,
        objective: str | None = None,
        *,
        plan: PlanView | PlanSource | None = None,
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
    ) -> H:
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
        record = plan.record if isinstance(plan, PlanView) else plan
        body = make_task_body(objective, constraints, record)
        return self._create(body | make_annotation(tags, note), watches_text=stream)

    def submit_review(
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
    ) -> H:
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
        return self._call("POST", id, "/reviews", json=body)

    def resume(self, id: str, answer: str | None = None) -> H:
        """Take a blocked task back to planning.

        Args:
            id: the task.
            answer: to its `question`, where it has one.

        Raises:
            RequestError: `CONFLICT` when it is not blocked, `INVALID_REQUEST` for a question
                without an answer.
        """
        return self._call("POST", id, "/resume", json=drop_none(answer=answer))


class WorkflowCalls(AnnotatedCalls[H]):
    """The calls of `client.workflows`."""

    def submit(self, workflow: Workflow, *, stream: bool = False) -> H:
        """Submit a workflow; it is under way when this returns.

        Args:
            workflow: what to run.
            stream: have the texts of its nodes come as they are written, from the first on, for
                whoever follows it.

        Raises:
            RequestError: `INVALID_WORKFLOW`, `CREDENTIALS_MISSING`, `INVALID_REQUEST`, `NOT_FOUND`;
                `FUNCTION_UNAVAILABLE` for a function, by a client of a server.
        """
        if workflow.functions:
            from toolkit.client._functions import Functions

            functions = Functions(self._http.functions, self._http.url)
            functions._add_submitted(workflow.functions)
        return self.create(workflow.to_dict(), stream=stream)

    def create(self, body: Mapping[str, object], *, stream: bool = False) -> H:
        """Submit a workflow given as the contract's JSON.

        Args:
            body: what to run.
            stream: as for `submit`.
        """
        chosen = drop_none(cache=self._http.cache)
        given = body.get("options")
        options = {**chosen, **(given if isinstance(given, Mapping) else {})}
        asked = {**body, **({"options": options} if options else {})}
        return self._create(asked, watches_text=stream)

    def retry(self, id: str) -> H:
        """Run one that did not complete again, from its failed nodes on.

        Raises:
            RequestError: `CONFLICT` unless it has failed or was cancelled.
        """
        return self._call("POST", id, "/retry")

    def fork(
        self,
        id: str,
        from_node: str,
        overrides: Mapping[str, Mapping[str, object]] | None = None,
    ) -> H:
        """Make a new one that runs a node again and what depends on it, and keeps the rest.

        Args:
            id: the workflow whose results are kept.
            from_node: the node to run again.
            overrides: input members that differ, by the id of a node that runs again.

        Raises:
            RequestError: `INVALID_REQUEST` for a node that does not run again.
        """
        body = {"from_node": from_node, "overrides": dict(overrides or {})}
        return self._call("POST", id, "/fork", json=body)
