"""Calls about jobs, plans, tasks and workflows, which both clients share."""

from collections.abc import Mapping, Sequence
from typing import TypeVar, Unpack

from toolkit.client._builder import PlanSource, Workflow, make_review_body, make_task_body
from toolkit.client._options import check_arguments, collect_options, document_options
from toolkit.client._resource_calls import AnnotatedCalls, HandleCalls, ResourceCalls, WorkCalls
from toolkit.client._wire.messages import drop_none, make_annotation
from toolkit.client._work_views import PlanView
from toolkit.contract.choices import Decision, OptimizeFor, PlannerChoice, ReviewMode
from toolkit.contract.run_options import WORK_OPTIONS, WorkOptions

H = TypeVar("H")  # a handle; in the async client, a coroutine that returns one
# The longest that the service waits for a model: three answers.
MODEL_PLANNING_S = 180.0


class JobCalls(WorkCalls[H]):
    """The methods of `client.jobs`, for the sync and the async client."""

    @document_options(WorkOptions)
    def create(
        self,
        type: str,
        compute_id: str,
        input: Mapping[str, object],
        **options: Unpack[WorkOptions],
    ) -> H:
        """Start a job on a compute of your own.

        Args:
            type: type of the job, such as `image` (`job.type` of a capability).
            compute_id: id of the compute.
            input: input of the capability.
            **options: options of a run.

        Raises:
            RequestError: `INVALID_REQUEST`, `NOT_FOUND` and others.
        """
        config = collect_options(options, self._http.choose_cache("capability"), WORK_OPTIONS)
        body = {"type": type, "compute_id": compute_id, "input": dict(input), "options": config}
        return self._create(body)


class PlanCalls(ResourceCalls[H]):
    """The methods of `client.plans`, for the sync and the async client."""

    def create(
        self,
        objective: str,
        *,
        max_cost_usd: float | None = None,
        optimize_for: OptimizeFor | None = None,
        planner: PlannerChoice | None = None,
    ) -> H:
        """Plan an objective without running the plan; `tasks.create(plan=…)` runs it unchanged.

        Args:
            objective: the objective, in plain words.
            max_cost_usd: budget of the plan, planning included. Default: 0.05 USD for planning.
            optimize_for: goal of the router, such as `cost`.
            planner: `llm` plans with a language model, whose tokens cost money; `rules` plans by
                keywords for free; `auto`, the service's default, plans with a model if one is
                connected outside the sandbox.
        """
        constraints = drop_none(
            max_cost_usd=max_cost_usd, optimize_for=optimize_for, planner=planner
        )
        hold_s = 0.0 if planner == "rules" else MODEL_PLANNING_S
        return self._create({"objective": objective, "constraints": constraints}, hold_s=hold_s)


class TaskHandleCalls(HandleCalls[H]):
    """The methods of a task's handle, for the sync and the async client."""

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
        """Submit a person's verdict on the ended task, in place of the reviewer's.

        Args:
            decision: `pass`, `fail`, or `retry` to run a part of the task again.
            issues: faults of the result; a retry passes them to the nodes that run again.
            score: overall score, from 0 to 1.
            criteria: scores from 0 to 1 for `objective_alignment`, `technical_success` and
                `output_completeness`.
            node_id: node that a retry runs again, with its dependents. Default: the last node, or
                with `issues` the nodes before it that accept them.
            constraints: input values that a retry sets on that node.
            attempt: number of the judged attempt in `attempts`, from 1. Default: the delivered
                attempt; without one, the best for `pass` and the last for other decisions.

        Raises:
            RequestError: `CONFLICT` if the task is running, or was retried twice.
        """
        body = make_review_body(decision, issues, score, criteria, node_id, constraints, attempt)
        return self._call("POST", "/reviews", json=body)

    def resume(self, answer: str | None = None) -> H:
        """Return the blocked task to planning, after the cause of the block was removed.

        Args:
            answer: answer to the task's `question`, if any.

        Raises:
            RequestError: `CONFLICT` if the task is not blocked, `INVALID_REQUEST` if its question
                is not answered.
        """
        return self._call("POST", "/resume", json=drop_none(answer=answer))


class TaskCalls(AnnotatedCalls[H]):
    """The methods of `client.tasks`, for the sync and the async client."""

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
        """Plan an objective, run the plan and review the result.

        Args:
            objective: the objective, in plain words. Default: the objective of the plan, or the
                name of the workflow.
            plan: plan to run unchanged: a previewed or edited plan, its JSON, or a workflow.
            max_cost_usd: budget of the task.
            optimize_for: goal of the router, such as `cost`.
            endpoint_id, compute_id: endpoint or compute for GPU work.
            capabilities: capabilities that the plan may use. Default: all.
            planner: `llm` plans with a language model, `rules` by keywords; `auto` plans with a
                model if one is connected outside the sandbox.
            review: `checks` reviews by checks alone; `judge` adds a language model; `auto` adds it
                if one is connected outside the sandbox and the budget covers it.
            tags: words to find the task by in lists. Default: the tags of a workflow in `plan`.
            note: a remark in your own words. Default: the note of a workflow in `plan`.
            stream: stream the texts of all nodes while they are written; `wait()` shows them.

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
        """Submit a person's verdict on an ended task, in place of the reviewer's.

        Args:
            id: id of the task.
            decision: `pass`, `fail`, or `retry` to run a part of the task again.
            issues: faults of the result; a retry passes them to the nodes that run again.
            score: overall score, from 0 to 1.
            criteria: scores from 0 to 1 for `objective_alignment`, `technical_success` and
                `output_completeness`.
            node_id: node that a retry runs again, with its dependents. Default: the last node, or
                with `issues` the nodes before it that accept them.
            constraints: input values that a retry sets on that node.
            attempt: number of the judged attempt in `attempts`, from 1. Default: the delivered
                attempt; without one, the best for `pass` and the last for other decisions.

        Raises:
            RequestError: `CONFLICT` if the task is running, or was retried twice.
        """
        body = make_review_body(decision, issues, score, criteria, node_id, constraints, attempt)
        return self._call("POST", id, "/reviews", json=body)

    def resume(self, id: str, answer: str | None = None) -> H:
        """Return a blocked task to planning, after the cause of the block was removed.

        Args:
            id: id of the task.
            answer: answer to the task's `question`, if any.

        Raises:
            RequestError: `CONFLICT` if the task is not blocked, `INVALID_REQUEST` if its question
                is not answered.
        """
        return self._call("POST", id, "/resume", json=drop_none(answer=answer))


class WorkflowCalls(AnnotatedCalls[H]):
    """The methods of `client.workflows`, for the sync and the async client."""

    def submit(self, workflow: Workflow, *, stream: bool = False) -> H:
        """Submit a workflow, without waiting for its end.

        Args:
            workflow: the workflow.
            stream: stream the texts of all nodes to the caller that follows the workflow.

        Raises:
            RequestError: `INVALID_WORKFLOW`, `CREDENTIALS_MISSING`, `INVALID_REQUEST`, `NOT_FOUND`;
                `FUNCTION_UNAVAILABLE` if a client of a server submits a function.
        """
        if workflow.functions:
            from toolkit.client._function_nodes import Functions

            functions = Functions(self._http.functions, self._http.url)
            functions._add_submitted(workflow.functions)
        return self.create(workflow.to_dict(), stream=stream)

    def create(self, body: Mapping[str, object], *, stream: bool = False) -> H:
        """Submit a workflow in the JSON form of the contract.

        Args:
            body: the workflow.
            stream: see `submit`.
        """
        defaults = drop_none(cache=self._http.cache)
        overrides = body.get("options")
        options = {**defaults, **(overrides if isinstance(overrides, Mapping) else {})}
        request = {**body, **({"options": options} if options else {})}
        return self._create(request, watches_text=stream)

    def retry(self, id: str) -> H:
        """Run a failed or cancelled workflow again, from its failed nodes on.

        Raises:
            RequestError: `CONFLICT` for any other workflow.
        """
        return self._call("POST", id, "/retry")

    def fork(
        self,
        id: str,
        from_node: str,
        overrides: Mapping[str, Mapping[str, object]] | None = None,
    ) -> H:
        """Create a workflow that runs a node and its dependents again and keeps all other results.

        Args:
            id: id of the workflow that the results come from.
            from_node: id of the node to run again.
            overrides: changed input values, by the id of a node that runs again.

        Raises:
            RequestError: `INVALID_REQUEST` if `overrides` names a node that does not run again.
        """
        body = {"from_node": from_node, "overrides": dict(overrides or {})}
        return self._call("POST", id, "/fork", json=body)
