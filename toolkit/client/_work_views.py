"""Runs, jobs, workflows, tasks and plans as views of both clients, which show themselves."""

from datetime import datetime
from html import escape
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

from toolkit.client._following import Change
from toolkit.client._graph_view import GraphView, TimelineView, make_planned_nodes
from toolkit.client._members import Member, TextMember
from toolkit.client._objective import HasObjective
from toolkit.client._record_list import RecordList
from toolkit.client._record_view import RecordView, ReviewView
from toolkit.client._text_pieces import TextPiece
from toolkit.contract.base import ErrorInfo, JsonObject
from toolkit.contract.choices import RunTarget
from toolkit.contract.errors import ErrorCode, RequestError, WorkError
from toolkit.contract.events import Event
from toolkit.contract.jobs import FINAL_STATUSES, Attempt, CostSource, Job, Options, Routing
from toolkit.contract.plans import Constraints, CostRange, Plan, PlanNode, PlanReading
from toolkit.contract.runs import Run
from toolkit.contract.tasks import (
    FINAL_TASK_STATUSES,
    MAX_REVIEW_RETRIES,
    AgentCall,
    Task,
    TaskAnswer,
    TaskAttempt,
)
from toolkit.contract.workflows import Node, WorkflowRecord
from toolkit.display.records.attempt_view import list_attempts
from toolkit.display.records.attempts import render_attempts
from toolkit.display.records.markdown import render_markdown
from toolkit.display.records.objective import describe_reading, render_reading
from toolkit.display.text import format_missing
from toolkit.display.workflow.boxes import format_workflow_cost

if TYPE_CHECKING:
    from pydantic import BaseModel

    from toolkit.display.progress.progress_display import ProgressDisplay

R = TypeVar("R", bound="BaseModel")
A = TypeVar("A", Run, Task, WorkflowRecord)
J = TypeVar("J", bound=Job)
M = TypeVar("M", bound="BaseModel")


class GeneratedText(str):
    """A text whose Markdown a notebook shows; HTML in it is shown as text, a picture as a link."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return render_markdown(self)


def find_text(output: object) -> GeneratedText | None:
    """Find the text in the output of a capability. Returns None if there is none."""
    text = output.get("text") if isinstance(output, dict) else None
    return GeneratedText(text) if isinstance(text, str) else None


class WorkView(RecordView[R]):
    """Work, as it was when last read."""

    resource = ""
    record_type: type[Any]
    _last_event = 0  # the number of the last event that was shown
    ended: frozenset[str] = FINAL_STATUSES
    failed: frozenset[str] = frozenset({"failed", "cancelled"})

    status_detail = Member[str | None]("The reason why it waits, if any.")
    created_at = Member[datetime]("The time at which it was asked for.")
    completed_at = Member[datetime | None]("The time at which it ended, or None before.")
    cost_incurred_usd = Member[float]("The total US dollars paid, with failed attempts.")
    estimated_cost_usd = Member[float | None]("The expected US dollars, or None if unknown.")
    error = Member[ErrorInfo | None]("The error, if there was any.")

    @property
    def status(self) -> str:
        """The state it was in when last read."""
        return str(getattr(self.record, "status", ""))

    @property
    def done(self) -> bool:
        """True if it was over when last read."""
        return self.status in self.ended

    def _show(self, change: Change, display: "ProgressDisplay") -> bool:
        """Show a change; return whether this is over with it."""
        if isinstance(change, Event):
            display.add_event(change)
            if change.resource_id == self.id:
                self._last_event = change.n
        elif isinstance(change, TextPiece):
            display.add_text(change.node_id, change, restarts=change.restarts)
        else:
            display.add_record(change)
            if isinstance(change, self.record_type) and getattr(change, "id", "") == self.id:
                self.record = change
                return self.done
        return False

    def _raise_if_failed(self) -> Self:
        error = getattr(self.record, "error", None)
        if self.status in self.failed and error is not None:
            failure: WorkError = error.to_exception(of_work=True)
            failure.work, failure.next_call = self, self._format_next_call()
            raise failure
        return self

    def _format_next_call(self) -> str:
        """Format the call that continues failed work, or the call that reads it if none can."""
        return f'client.{self.resource}.get("{self.id}")'


class AnnotatedView(WorkView[A]):
    """Work with tags and a note."""

    tags = Member[list[str]]("The tags that it has, in the order given.")
    note = TextMember("The note on it; empty without a note.")


class ExecutionView(WorkView[J]):
    """A capability being executed."""

    facts: tuple[str, ...] = (
        "capability", "status", "status_detail", "provider", "model", "output", "artifact_id",
        "error", "cost_usd", "latency_ms", "retry_count", "cached_from", "workflow_id", "node_id",
    )  # fmt: skip

    @property
    def output(self) -> Any:
        """The output of the capability, or None if it failed or was cancelled.

        Raises:
            RequestError: `CONFLICT` until it is over.
        """
        self._check_done()
        return self.record.output

    def _check_done(self) -> None:
        if not self.done:
            message = f"{self.id} is {self.status}: call `.wait()` first."
            raise RequestError(ErrorCode.CONFLICT, message)

    def parse(self, model: "type[M]") -> M:
        """Make an instance of a pydantic model of its answer, once it is completed.

        Args:
            model: the model, such as the `output_model` of the request.

        Raises:
            WorkError: it failed, or its answer does not fit the model.
            RequestError: `CONFLICT` until it is over.
        """
        from toolkit.client._output_model import parse_output

        self._raise_if_failed()
        return parse_output(model, self.output, self.id)

    @property
    def text(self) -> GeneratedText | None:
        """The text of its output, which a notebook shows as Markdown, or None without a text."""
        return find_text(self.record.output)

    artifact_id = TextMember("The artifact of the work; empty until completion.")
    capability = Member[str]("The capability, as `name@version`.")
    options = Member[Options]("The options that it was given.")
    connection_id = Member[str | None]("The connection that was called last.")
    cost_source = Member[CostSource]("`reported`, `metered`, `estimated` or `unknown`.")
    queue_ms = Member[int | None]("The milliseconds that it waited for free slots.")
    cached_from = Member[str | None]("The job whose result was used again, at no cost.")
    started_at = Member[datetime | None]("The time at which it started, or None before.")
    input = Member[JsonObject]("The input, as it was given.")
    provider = Member[str | None]("The provider that served it, or was asked last.")
    model = Member[str | None]("The model that answered, as the provider names it.")

    @property
    def cost_usd(self) -> float | None:
        """US dollars of its result, 0 if no vendor was called, or None while that is unknown.

        For a failed execution, the amount is the total paid.
        """
        return self.record.cost_usd

    reservation_usd = Member[float | None]("The maximum US dollars of its last call, if known.")
    usage = Member[JsonObject]("The units that the provider billed, such as tokens.")
    latency_ms = Member[int | None]("The milliseconds that it took, or None before its end.")
    retry_count = Member[int]("The number of times that it was started again.")
    cached = Member[bool]("True if the result of an equal job was used again.")
    workflow_id = TextMember("The workflow that it is a node of; empty outside of workflows.")

    node_id = TextMember("The id of its node; empty outside of workflows.")

    @property
    def attempts(self) -> list[Attempt]:
        """Each try at a provider, in order."""
        return RecordList(self.record.attempts, "attempts")

    routing = Member[Routing | None]("The router's decision, with all candidates.")


class JobView(ExecutionView[Job]):
    """A job."""

    run_id = TextMember("The run that it belongs to; empty without a run.")
    compute_id = TextMember("The compute that it runs on; empty without a compute.")


class RunView(ExecutionView[Run], AnnotatedView[Run]):
    """A run."""

    facts = (*ExecutionView.facts, "tags", "note")
    target = Member[RunTarget]("`capability`, or `agent`.")
    job_id = Member[str | None]("The job of the run, or None for an agent's run.")
    compute_id = Member[str | None]("The compute that it ran on, if it ran on one.")
    run_id = Member[str | None]("The run that its job belongs to.")
    task_id = TextMember("The task of an agent's run; empty for a capability's.")


class WorkflowRunView(GraphView, AnnotatedView[WorkflowRecord]):
    """A submitted workflow."""

    @property
    def nodes(self) -> list[Node]:
        """Its nodes, in the order given."""
        return RecordList(self.record.nodes, "nodes")

    cost_usd = Member[float | None]("The US dollars of its completed jobs, if known.")
    name = Member[str]("The name that it was given.")
    options = Member[Options]("The options that all of its nodes share.")
    endpoint_id = Member[str | None]("The endpoint that its GPU work runs at, if one was named.")
    compute_id = Member[str | None]("The compute that its GPU work runs on, if one was named.")
    max_retries = Member[int]("The most retries of each node.")
    forked_from = Member[str | None]("The workflow whose results it starts from.")
    started_at = Member[datetime | None]("The time at which it started, or None before.")
    error = Member[ErrorInfo | None]("The first error, if there was any.")
    task_id = TextMember("The task that it belongs to; empty without a task.")

    sink_artifact_ids = Member[dict[str, str]]("The artifacts of sink nodes, by node id.")

    @property
    def latency_ms(self) -> int:
        """Wall time from submit to completion, in milliseconds; 0 until then."""
        return self.record.latency_ms or 0

    retries = Member[int]("Node retries across the workflow.")
    warnings = Member[list[str]]("The faults that did not stop it, such as failed optional nodes.")
    final_artifact_id = TextMember("The artifact of the last sink node; empty until completion.")

    def _format_next_call(self) -> str:
        return f'client.workflows.retry("{self.id}").wait()'

    def _list_rows(self) -> list[Node]:
        return self.record.nodes

    def timeline(self) -> TimelineView:
        """Return a Gantt chart of when each node ran, which shows itself."""
        return TimelineView(self.record)

    def _make_title(self) -> str:
        return self.record.name

    def _describe_cost(self) -> str:
        return format_workflow_cost(self.record)

    def _list_nodes(self) -> list[Node]:
        return self.record.nodes


class TaskView(AnnotatedView[Task], HasObjective[Task]):
    """A task."""

    ended = FINAL_TASK_STATUSES | {"blocked"}
    facts = (
        "objective", "status", "missing", "question", "artifact_ids",
        "final_artifact_id", "best_artifact_id", "workflow_id", "review_attempts", "warnings",
        "cost_usd", "error", "tags", "note",
    )  # fmt: skip

    @property
    def review(self) -> ReviewView | None:
        """The last verdict, the reviewer's or a person's."""
        return None if self.record.review is None else ReviewView(self.record.review)

    final_artifact_id = TextMember("The delivered artifact; empty until the review has passed.")
    best_artifact_id = TextMember("The artifact of the best attempt; empty without one.")

    attempts = Member[list[TaskAttempt]]("Every workflow and its review, oldest first.")
    llm_job_ids = Member[list[str]]("The jobs of language models that planned or judged it.")
    final_attempt = Member[int | None]("The number of the delivered attempt, from 1.")
    plan_given = Member[bool]("True if the caller gave its plan.")
    constraints = Member[Constraints]("The limits of its work.")
    agent = Member[AgentCall | None]("The agent that it runs, with the input of the run.")
    answers = Member[list[TaskAnswer]]("The answers of a person to its questions.")
    question = Member[str | None]("The question that `task.resume(answer=…)` answers.")
    workflow_id = TextMember("The last workflow; empty before the first.")

    workflow_ids = Member[list[str]]("Every workflow that was run for it, oldest first.")
    plan_id = TextMember("The plan that it follows; empty before there is a plan.")

    artifact_ids = Member[dict[str, str]]("The artifacts that it delivers, by node id.")

    @property
    def reviews(self) -> list[ReviewView]:
        """Every verdict, oldest first."""
        return [ReviewView(review) for review in self.record.reviews]

    review_attempts = Member[int]("Times that a review had it run again.")
    cost_usd = Member[float | None]("The US dollars of its workflows, if known.")
    warnings = Member[list[str]]("The faults of its last workflow that did not stop it.")

    def _format_next_call(self) -> str:
        if not self.workflow_id or self.review_attempts >= MAX_REVIEW_RETRIES:
            return super()._format_next_call()
        return f'client.tasks.submit_review("{self.id}", "retry").wait()'

    def _render_html(self) -> str:
        return super()._render_html() + render_attempts(list_attempts(self.record))


class PlanView(GraphView, HasObjective[Plan], RecordView[Plan]):
    """A plan."""

    planned = True
    nodes = Member[list[PlanNode]]("The nodes that it would run, each with the reason for it.")
    deliverables = Member[list[str]]("The nodes whose results were asked for.")
    planner = Member[Literal["rules", "llm"]]("`llm`, or `rules` for the keyword planner.")
    executable = Member[bool]("True if it can run in its current state.")
    estimated_cost_usd = Member[CostRange]("The minimum, expected and maximum US dollars.")
    reading = Member[PlanReading]("How much of the objective was understood.")
    planner_reason = Member[str]("The reason for the choice of the planner.")
    cost_incurred_usd = Member[float]("The US dollars of the language model that planned it.")
    llm_job_ids = Member[list[str]]("The jobs of the language model that planned it.")
    rationale = Member[str]("The reasons for it, in a few sentences.")

    def __repr__(self) -> str:
        text = super().__repr__().removesuffix(">")
        read = "" if self.reading.understood >= 1 else f", {describe_reading(self.reading)}"
        return f"{text}{read}{f', asks: {self.question}' if self.question else ''}>"

    def _list_rows(self) -> list[PlanNode]:
        return self.record.nodes

    def _make_title(self) -> str:
        return self.record.objective

    def _list_nodes(self) -> list[Node]:
        return make_planned_nodes([node.model_dump() for node in self.record.nodes])

    def preview(self) -> str:
        """Render it as HTML: how the objective was understood, its graph, and missing inputs."""
        read = render_reading(self.objective, self.reading, self.question)
        graph = self.picture() if self.nodes else ""
        lacks = f"<p>{escape(format_missing(self.missing))}</p>" if self.missing else ""
        reason = f"<p>{escape(self.planner_reason)}</p>" if self.planner_reason else ""
        return f"{read}{reason}{lacks}{graph}"

    def _repr_mimebundle_(self, **_: object) -> Any:
        if self.executable and self.reading.understood >= 1:
            return super()._repr_mimebundle_()
        # The graph alone would look executable, and as if the objective was understood.
        facts = "" if self.executable else self._render_html()
        return {"text/plain": repr(self), "text/html": f"{self.preview()}{facts}"}
