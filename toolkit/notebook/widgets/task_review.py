"""`TaskReview`: a task's attempts side by side, its question, and a person's own verdict."""

import json
from collections.abc import Callable
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING, Any

import ipywidgets
import traitlets

from toolkit.client import Task, WorkflowRun
from toolkit.contract.choices import Decision
from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.contract.jobs import FINAL_STATUSES
from toolkit.contract.plans import Missing, PlanReading
from toolkit.contract.tasks import FINAL_TASK_STATUSES, MAX_REVIEW_RETRIES
from toolkit.display.records.attempts import (
    CRITERIA,
    AttemptView,
    ShownArtifact,
    describe_action,
    describe_attempts,
    list_actions,
    list_attempts,
    read_score,
    render_attempts,
)
from toolkit.display.records.objective import render_reading
from toolkit.display.text import format_missing, format_spending
from toolkit.notebook import widget_html
from toolkit.notebook.schema_form import guard_control
from toolkit.notebook.widget_base import Panel, follow_events, make_button, make_labelled, make_row

if TYPE_CHECKING:
    import pandas as pd

CHOSEN_BY_ISSUES = "(nodes that the issues concern)"
RETRY_HINT = "Run a part of the task again, with the issues as instructions"
NO_RETRY_HINT = f"The limit of {MAX_REVIEW_RETRIES} retries is reached; submit a new task"
JSON_HINT = 'JSON, such as {"theme": "mint"}'


class TaskReview(Panel):
    """The attempts of a task side by side, with artifacts and verdicts; a person can judge.

    A blocked task shows its missing things and its question, and takes the answer.

    Args:
        task: the task, running or over.

    Attributes:
        status: the status of the task.
        attempts: the comparison, as HTML.
        answer, resume: the answer to the question, and the button that resumes the task.
        attempt: the attempt that a person judges.
        issues, node, constraints: the details of a person's verdict.
        accept, reject, retry: the verdicts.
    """

    status = traitlets.Unicode("")

    def __init__(self, task: Task) -> None:
        self.task = task
        self.headline = ipywidgets.HTML()
        self.attempts = ipywidgets.HTML()
        self.answer = make_labelled(ipywidgets.Textarea, "your answer")
        self.resume = make_button(
            "Resume", "Plan the task again", self.make_action(self._answer_question), "primary"
        )
        self.attempt = make_labelled(ipywidgets.Dropdown, "attempt to judge")
        self.issues = make_labelled(ipywidgets.Textarea, "issues", placeholder="one on each line")
        self.node = make_labelled(
            ipywidgets.Dropdown, "run again from", options=[(CHOSEN_BY_ISSUES, None)]
        )
        self.constraints = make_labelled(
            ipywidgets.Textarea, "with this input", placeholder=JSON_HINT
        )
        for area in (self.answer, self.issues, self.constraints):
            area.rows = 2
            guard_control(area, lambda text: self.show_message(text))
        self.accept = self._make_verdict("pass", "Deliver the selected attempt", "success")
        self.reject = self._make_verdict("fail", "Reject the selected attempt", "danger")
        self.retry = self._make_verdict("retry", RETRY_HINT)
        self._asking = ipywidgets.VBox([self.answer, make_row(self.resume)])
        self._judging = ipywidgets.VBox(
            [
                ipywidgets.HTML("<h4>Your verdict</h4>"),
                self.attempt, self.issues, self.node, self.constraints,
                make_row(self.accept, self.retry, self.reject),
            ]
        )  # fmt: skip
        super().__init__(self.headline, self._asking, self.attempts, self._judging)
        self._reader = _AttemptReader(task)
        self._views: list[AttemptView] = []
        self._readings: dict[str, PlanReading] = {}  # by the id of the plan
        self._show_task()
        self._background.start_feed(self._follow_task)

    def table(self) -> "pd.DataFrame":
        """Return the verdicts as a table, one row each."""
        import pandas as pd

        rows = [
            {
                "attempt": view.n,
                "reviewer": review.reviewer,
                "decision": review.decision,
                **{name: read_score(review, name) for name in ("score", *CRITERIA)},
                "issues": "; ".join(review.issues),
                "recommended": "; ".join(map(describe_action, list_actions(review))),
            }
            for view in self._views
            for review in view.reviews
        ]
        return pd.DataFrame(rows)

    def snapshot(self) -> str:
        """Return the attempts and their verdicts, for a saved notebook."""
        return f"{self.headline.value}{self.attempts.value}"

    def __repr__(self) -> str:
        """Return the task, and each attempt on a line, for displays without HTML."""
        record = self.task.record
        lines = [f"<TaskReview {self.task!r}, {len(record.reviews)} reviews>"]
        if record.status == "blocked":
            lines += [_describe_block(record.missing, record.question)]
        if self._views:
            lines.append(describe_attempts(self._views))
        return "\n".join(lines)

    # The methods below run on the feed's or the actions' thread, and only set traits.

    def _follow_task(self, after: int = 0) -> None:
        for event in follow_events(self.task, self._background.closed, after):
            if event is None or event.type.startswith("task."):
                self.task.refresh()
                self._show_task()

    def _show_task(self) -> None:
        record = self.task.record
        self._views = self._reader.read_attempts()
        self.status = record.status
        self.headline.value = self._render_headline()
        self.attempts.value = render_attempts(self._views)
        blocked = record.status == "blocked"
        over = record.status in FINAL_TASK_STATUSES and bool(self._views)
        self._asking.layout.display = None if blocked else "none"
        self.answer.layout.display = None if record.question else "none"
        self._judging.layout.display = "none" if blocked else None
        retries = MAX_REVIEW_RETRIES - record.review_attempts
        for control in (self.accept, self.reject):
            control.disabled = not over
        for control in (self.retry, self.node, self.constraints):
            control.disabled = not over or retries <= 0
        self.retry.tooltip = RETRY_HINT if retries > 0 else NO_RETRY_HINT
        self._offer_choices()

    def _offer_choices(self) -> None:
        """Offer the attempts to judge, with the best chosen, and the nodes to run again."""
        views = [view for view in self._views if view.status in FINAL_STATUSES]
        default = next((view.n for view in views if view.is_best), views[-1].n if views else None)
        options = tuple((view.title, view.n) for view in views)
        if self.attempt.options != options:
            self.attempt.options = options
            self.attempt.value = default
        if self._views:
            workflow = self._reader.read_workflow(self._views[-1].workflow_id)
            nodes = ((CHOSEN_BY_ISSUES, None), *((node.id, node.id) for node in workflow.nodes))
            if self.node.options != nodes:
                self.node.options = nodes

    def _render_headline(self) -> str:
        record = self.task.record
        facts = {"status": record.status, "review_attempts": record.review_attempts}
        has_cost = record.cost_usd is not None or record.status in FINAL_TASK_STATUSES
        cost = (
            {"cost": format_spending(record.cost_usd, record.cost_incurred_usd)} if has_cost else {}
        )
        body = render_reading(record.objective, self._read_reading())
        body += widget_html.render_line({**facts, **cost})
        if record.error is not None:
            body += _render_alert(f"{record.error.code}: {record.error.message}")
        if record.status == "blocked":
            body += _render_alert(_describe_block(record.missing, record.question))
            steps = "".join(f"<li>{_render_next_step(need)}</li>" for need in record.missing)
            body += f"<ul>{steps}</ul>" if steps else ""
        return body + "".join(f'<div class="tk-status">{escape(w)}</div>' for w in record.warnings)

    def _read_reading(self) -> PlanReading:
        """Return how much of the objective the plan understood; all of it before a plan."""
        plan_id = self.task.plan_id
        if not plan_id:
            return PlanReading()
        if plan_id not in self._readings:
            self._readings[plan_id] = self.task.plan().reading
        return self._readings[plan_id]

    def _make_verdict(self, decision: Decision, does: str, kind: str = "") -> Any:
        judge = self.make_action(lambda: self._judge(decision))
        return make_button(decision.capitalize(), does, judge, kind)

    def _answer_question(self) -> None:
        answer = str(self.answer.value).strip()
        if self.task.record.question and not answer:
            self.show_message("The task asks a question. Answer it before you resume the task.")
            return
        self._act(lambda: self.task.resume(answer or None), "The task is being planned again.")
        self.answer.value = ""

    def _judge(self, decision: Decision) -> None:
        text = str(self.constraints.value).strip()
        try:
            constraints = json.loads(text) if text and decision == "retry" else None
        except ValueError:
            self.show_message(f"The input for a retry must be {JSON_HINT}.")
            return
        issues = [line.strip() for line in str(self.issues.value).splitlines() if line.strip()]
        self._act(
            lambda: self.task.submit_review(
                decision,
                issues=issues,
                node_id=self.node.value if decision == "retry" else None,
                constraints=constraints,
                attempt=self.attempt.value,
            ),
            f"Your verdict is stored: {decision}.",
        )

    def _act(self, act: Callable[[], object], message: str) -> None:
        """Change the task, show it, and follow it if it goes on."""
        seen = self.task.events()[-1].n
        act()
        self._show_task()
        self.show_message(message, fault=False)
        if not self.task.done:
            self._background.start_feed(lambda: self._follow_task(seen))


class _AttemptReader:
    """A reader of a task's attempts that reads unchangeable data only once."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._workflows: dict[str, WorkflowRun] = {}
        self._artifacts: dict[str, ShownArtifact] = {}

    def read_attempts(self) -> list[AttemptView]:
        """Read the attempts of the task's current record, oldest first."""
        delivered = {
            attempt.workflow_id: attempt.artifact_ids for attempt in self._task.record.attempts
        }
        return [
            self._complete_view(view, delivered.get(view.workflow_id) or {})
            for view in list_attempts(self._task.record)
        ]

    def read_workflow(self, id: str) -> WorkflowRun:
        """Return a workflow of the task, read again only if it had not ended."""
        workflow = self._workflows.get(id)
        if workflow is None or workflow.status not in FINAL_STATUSES:
            workflow = self._workflows[id] = self._task.workflow(id)
        return workflow

    def _complete_view(self, view: AttemptView, artifact_ids: dict[str, str]) -> AttemptView:
        workflow = self.read_workflow(view.workflow_id)
        nodes = artifact_ids or workflow.sink_artifact_ids
        artifacts = {node: self._read_artifact(workflow, node) for node in nodes}
        return replace(
            view,
            status=workflow.status,
            artifacts={
                node: artifact for node, artifact in artifacts.items() if artifact is not None
            },
            cost_usd=workflow.record.cost_usd if view.cost_usd is None else view.cost_usd,
        )

    def _read_artifact(self, workflow: WorkflowRun, node_id: str) -> ShownArtifact | None:
        artifact_id = workflow[node_id].artifact_id
        if artifact_id is None:
            return None
        if artifact_id not in self._artifacts:
            try:
                artifact = workflow.artifact(node_id)
            except RequestError as error:
                if error.code is not ErrorCode.NOT_FOUND:
                    raise
                return None  # deleted since
            self._artifacts[artifact_id] = widget_html.read_shown_artifact(artifact)
        return self._artifacts[artifact_id]


def _describe_block(missing: list[Missing], question: str | None) -> str:
    parts = ([format_missing(missing)] if missing else []) + ([question] if question else [])
    return f"Blocked: {'; '.join(parts)}"


def _render_alert(sentence: str) -> str:
    return f'<div class="tk-alert">{escape(sentence)}</div>'


def _render_next_step(missing: Missing) -> str:
    if missing.any_of:
        call = f'client.connections.connect("{missing.any_of[0]}")'
        return f"Connect a provider, such as <code>{escape(call)}</code>, then resume the task."
    if missing.capability.endswith(".upload"):
        return (
            "Upload it by <code>client.artifacts.upload(path)</code>; put its id into a new task."
        )
    capability = f"<code>{escape(missing.capability)}</code>"
    return f"Install a plugin for {capability}, or submit a new task without it."
