"""Runs, jobs, workflows, tasks and plans as views of both clients, with their displays."""

from collections.abc import Mapping
from datetime import datetime
from html import escape
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

from toolkit.client._builder import HasObjective
from toolkit.client._collections import RecordList
from toolkit.client._following import Change
from toolkit.client._graph_view import GraphView, TimelineView, make_planned_nodes
from toolkit.client._record_view import Member, RecordView, ReviewView, TextMember
from toolkit.client._tools import RequestedCall, ToolFunction, read_calls
from toolkit.contract.base import ErrorInfo, JsonObject
from toolkit.contract.capabilities import TimedText
from toolkit.contract.choices import RunTarget
from toolkit.contract.errors import ErrorCode, RequestError, WorkError
from toolkit.contract.events import Event, TextPiece
from toolkit.contract.jobs import FINAL_STATUSES, Attempt, CostSource, Job, Options, Routing
from toolkit.contract.maps import MapRecord
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
from toolkit.display.records.attempts import list_attempts, render_attempts
from toolkit.display.records.html import render_facts, render_reasoning
from toolkit.display.records.markdown import render_markdown
from toolkit.display.records.objective import describe_reading, render_reading
from toolkit.display.text import format_missing
from toolkit.display.workflow.boxes import format_workflow_cost

if TYPE_CHECKING:
    from pydantic import BaseModel

    from toolkit.display.progress.progress_display import ProgressDisplay

R = TypeVar("R", bound="BaseModel")
A = TypeVar("A", MapRecord, Run, Task, WorkflowRecord)
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
    """A run, job, workflow or task, as it was when last read."""

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
        """The state of the work, as last read."""
        return str(getattr(self.record, "status", ""))

    @property
    def done(self) -> bool:
        """True if the work was over when last read; a task is also over while it is blocked."""
        return self.status in self.ended

    def _show(self, change: Change, display: "ProgressDisplay") -> bool:
        """Pass a change to the display and keep a new record; return whether the work is over."""
        if isinstance(change, Event):
            display.add_event(change)
            if change.resource_id == self.id:
                self._last_event = change.n
        elif isinstance(change, TextPiece):
            display.add_piece(change)
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
    """One execution of a capability: the attributes of runs and jobs."""

    facts: tuple[str, ...] = (
        "capability", "status", "status_detail", "provider", "model", "upstream", "tier", "output",
        "artifact_id", "error", "cost_usd", "latency_ms", "retry_count", "cached_from",
        "workflow_id", "node_id",
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
        """Return the output as an instance of a pydantic model, once the execution is completed.

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
        """The text in the output, which a notebook shows as Markdown, or None without a text."""
        return find_text(self.record.output)

    @property
    def segments(self) -> RecordList[TimedText]:
        """The parts of the transcript of `speech.transcribe`, or none for another output."""
        output = self.record.output
        rows: Any = output.get("segments", ()) if isinstance(output, dict) else ()
        return RecordList([TimedText.model_validate(row) for row in rows], "segments")

    @property
    def reasoning(self) -> str:
        """The model's summary of its reasoning; empty if its provider returned none."""
        return str((self.record.output or {}).get("reasoning") or "")

    def _render_html(self) -> str:
        facts = self.to_dict()
        if isinstance(facts["output"], dict):
            facts["output"].pop("reasoning", None)  # folded, below the facts
        card = render_facts(f"{self.noun} {self.id}", {name: facts[name] for name in self.facts})
        return card + render_reasoning(self.reasoning)

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
    upstream = Member[str | None]("The host behind the provider, if the provider names it.")
    tier = Member[str | None]("The billed service tier, or None if the provider names none.")

    @property
    def cost_usd(self) -> float | None:
        """US dollars of the result: 0 if no vendor was called, or None while they are unknown.

        For a failed execution, the amount is the total paid.
        """
        return self.record.cost_usd

    reservation_usd = Member[float | None]("The maximum US dollars of its last call, if known.")
    usage = Member[JsonObject]("The units that the provider billed, such as tokens.")
    latency_ms = Member[int | None]("The milliseconds that it took, or None before its end.")
    retry_count = Member[int]("The number of times that it was started again.")
    cached = Member[bool]("True if the result of an equal job was used again.")
    workflow_id = TextMember("The workflow that it is a node of; empty outside of workflows.")
    map_id = TextMember("The map that it is a row of; empty outside of maps.")

    node_id = TextMember("The id of its node; empty outside of workflows.")

    @property
    def attempts(self) -> list[Attempt]:
        """Each try at a provider, in order."""
        return RecordList(self.record.attempts, "attempts")

    routing = Member[Routing | None]("The router's decision, with all candidates.")


class JobView(ExecutionView[Job]):
    """A job: one execution of a capability for a run, for a node or on a compute."""

    run_id = TextMember("The run that it belongs to; empty without a run.")
    compute_id = TextMember("The compute that it runs on; empty without a compute.")


class RunView(ExecutionView[Run], AnnotatedView[Run]):
    """A run: one execution of a capability or of an agent."""

    facts = (*ExecutionView.facts, "tags", "note")
    functions: Mapping[str, ToolFunction] = MappingProxyType({})
    target = Member[RunTarget]("`capability`, or `agent`.")
    job_id = Member[str | None]("The job of the run, or None for an agent's run.")
    compute_id = Member[str | None]("The compute that it ran on, if it ran on one.")
    run_id = Member[str | None]("The run that its job belongs to.")
    task_id = TextMember("The task of an agent's run; empty for a capability's.")

    @property
    def tool_calls(self) -> list[RequestedCall]:
        """The calls of tools that the model asks for.

        Arguments of your own functions are converted to the annotated types.

        A call whose arguments do not fit your function has a `fault`.
        """
        output = self.record.output or {}
        calls = output.get("tool_calls")
        return read_calls(calls if isinstance(calls, list) else [], self.functions)


class WorkflowRunView(GraphView, AnnotatedView[WorkflowRecord]):
    """A submitted workflow, with its nodes and their results."""

    @property
    def nodes(self) -> list[Node]:
        """The nodes of the workflow, in the order given."""
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
        """Return a Gantt chart of when each node ran, which a notebook displays."""
        return TimelineView(self.record)

    def _make_title(self) -> str:
        return self.record.name

    def _describe_cost(self) -> str:
        return format_workflow_cost(self.record)

    def _list_nodes(self) -> list[Node]:
        return self.record.nodes


class TaskView(AnnotatedView[Task], HasObjective[Task]):
    """A task: an objective that is planned, run and reviewed."""

    ended = FINAL_TASK_STATUSES | {"blocked"}
    facts = (
        "objective", "status", "missing", "question", "artifact_ids",
        "final_artifact_id", "best_artifact_id", "workflow_id", "review_attempts", "warnings",
        "cost_usd", "error", "tags", "note",
    )  # fmt: skip

    @property
    def review(self) -> ReviewView | None:
        """The last review, by the reviewer or a person, or None before the first."""
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
        """Every review, by the reviewer or a person, oldest first."""
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
    """A plan for an objective: the nodes that would run."""

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
        """Render the plan as HTML: how the objective was read, the graph, and missing inputs."""
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
