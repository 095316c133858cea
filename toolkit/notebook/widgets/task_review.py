"""`TaskReview`: a task's attempts side by side, and a person's own verdict."""

import json
from html import escape
from typing import TYPE_CHECKING

import ipywidgets
import traitlets

from toolkit.client import Task, WorkflowRun
from toolkit.contract.choices import Decision
from toolkit.contract.tasks import FINAL_TASK_STATUSES, Review
from toolkit.display.text import format_missing, format_spending
from toolkit.display.workflow.boxes import format_workflow_cost
from toolkit.notebook import widget_html
from toolkit.notebook.background import follow_events
from toolkit.notebook.schema_form import guard_control
from toolkit.notebook.widget_base import Panel, make_button, make_labelled, make_row

if TYPE_CHECKING:
    import pandas as pd

LAST_NODE_CHOICE = "(the last one)"


class TaskReview(Panel):
    """The attempts of a task side by side, with their reviews and artifacts; a person can judge.

    Args:
        task: the task, under way or over.

    Attributes:
        status: of the task.
        attempts: the columns, as HTML.
        issues, node, constraints: the details of a person's verdict.
        accept, reject, retry: the verdicts.
    """

    status = traitlets.Unicode("")

    def __init__(self, task: Task) -> None:
        self.task = task
        self.headline = ipywidgets.HTML()
        self.attempts = ipywidgets.HTML()
        self.issues = make_labelled(ipywidgets.Textarea, "issues", placeholder="one on each line")
        self.node = make_labelled(
            ipywidgets.Dropdown, "run again from", options=[(LAST_NODE_CHOICE, None)]
        )
        self.constraints = make_labelled(
            ipywidgets.Textarea, "with this input", placeholder='JSON, such as {"theme": "mint"}'
        )
        for area in (self.issues, self.constraints):
            area.rows = 2
            guard_control(area, lambda told: self.show_message(told))
        self.accept = make_button("Pass", "Accept what the task delivers", self._pass, "success")
        self.reject = make_button("Fail", "Refuse what the task delivers", self._fail, "danger")
        self.retry = make_button("Retry", "Run part of it again, as said above", self._retry)
        super().__init__(
            self.headline, self.attempts, ipywidgets.HTML("<h4>Your verdict</h4>"),
            self.issues, self.node, self.constraints,
            make_row(self.accept, self.reject, self.retry),
        )  # fmt: skip
        self._artifact_html: dict[str, str] = {}  # artifacts that were read, as HTML
        self._show_attempts()
        self._background.start_feed(self._follow_task)

    def table(self) -> "pd.DataFrame":
        """Return the reviews as a table, one row each."""
        import pandas as pd

        rows = []
        for attempt, review in self._list_reviews():
            action = review.recommended_action
            rows.append(
                {
                    "attempt": attempt + 1,
                    "reviewer": review.reviewer,
                    "decision": review.decision,
                    "score": review.score,
                    **(review.criteria.model_dump() if review.criteria else {}),
                    "issues": "; ".join(review.issues),
                    "recommended": f"{action.action} {action.node_id}" if action else "",
                }
            )
        return pd.DataFrame(rows)

    def snapshot(self) -> str:
        """Return the attempts and their reviews, for a saved notebook."""
        return f"{self.headline.value}{self.attempts.value}"

    def __repr__(self) -> str:
        return f"<TaskReview {self.task!r}, {len(self.task.record.reviews)} reviews>"

    def _list_reviews(self) -> list[tuple[int, Review]]:
        """Return each review with the number of the attempt that it judges."""
        found, attempt = [], 0
        for review in self.task.record.reviews:
            found.append((attempt, review))
            if review.decision == "retry" and attempt + 1 < len(self.task.record.workflow_ids):
                attempt += 1
        return found

    # The methods below run on the feed's thread or that of actions, and only set traits.

    def _follow_task(self, after: int = 0) -> None:
        for event in follow_events(self.task, self._background.closed, after):
            if event is None or event.type.startswith("task."):
                self.task.refresh()
                self._show_attempts()

    def _show_attempts(self) -> None:
        record = self.task.record
        self.status = record.status
        told = {"status": record.status, "review_attempts": record.review_attempts}
        known = record.cost_usd is not None or record.status in FINAL_TASK_STATUSES
        cost = {"cost": format_spending(record.cost_usd, record.cost_incurred_usd)} if known else {}
        self.headline.value = (
            f"<h4>{escape(record.objective)}</h4>{widget_html.render_line({**told, **cost})}"
        )
        if record.error is not None:
            told_wrong = f"{record.error.code}: {record.error.message}"
            self.headline.value += f'<div class="tk-alert">{escape(told_wrong)}</div>'
        if record.missing:
            lacking = f"Blocked: {format_missing(record.missing)}. Then resume the task."
            self.headline.value += f'<div class="tk-alert">{escape(lacking)}</div>'
        over = record.status in ("completed", "failed")
        for control in (self.accept, self.reject, self.retry):
            control.disabled = not over
        workflows = [self.task.workflow(one) for one in record.workflow_ids]
        cards = [
            self._render_attempt(number, workflow) for number, workflow in enumerate(workflows)
        ]
        self.attempts.value = f'<div class="tk-columns">{"".join(cards)}</div>'
        if workflows:
            nodes = [(node.id, node.id) for node in workflows[-1].nodes]
            self.node.options = [(LAST_NODE_CHOICE, None), *nodes]

    def _render_attempt(self, number: int, workflow: WorkflowRun) -> str:
        """Render one column: the result of the workflow, and its review."""
        last = workflow.id == self.task.record.workflow_id
        delivered = self.task.record.artifact_ids if last else {}
        artifacts = delivered or workflow.sink_artifact_ids
        shown = "".join(
            f"<div>{escape(node)}</div>{self._render_artifact(workflow, node)}"
            for node in artifacts
        )
        state = {"workflow": workflow.status, "cost": format_workflow_cost(workflow.record)}
        reviews = "".join(
            _render_review(review) for at, review in self._list_reviews() if at == number
        )
        return widget_html.render_card(
            f"Attempt {number + 1}", f"{widget_html.render_line(state)}{reviews}{shown}"
        )

    def _render_artifact(self, workflow: WorkflowRun, node_id: str) -> str:
        artifact_id = workflow[node_id].artifact_id or ""
        if artifact_id not in self._artifact_html:
            self._artifact_html[artifact_id] = widget_html.render_artifact(
                workflow.artifact(node_id)
            )
        return self._artifact_html[artifact_id]

    # The methods below are handlers.

    def _pass(self) -> None:
        self._background.start_action(lambda: self._judge("pass"))

    def _fail(self) -> None:
        self._background.start_action(lambda: self._judge("fail"))

    def _retry(self) -> None:
        self._background.start_action(lambda: self._judge("retry"))

    def _judge(self, decision: Decision) -> None:
        text = str(self.constraints.value).strip()
        try:
            constraints = json.loads(text) if text and decision == "retry" else None
        except ValueError:
            self.show_message('What a retry adds to the input is JSON, such as {"theme": "mint"}.')
            return
        seen = self.task.events()[-1].n
        issues = [line.strip() for line in str(self.issues.value).splitlines() if line.strip()]
        self.task.review(
            decision,
            issues=issues,
            node_id=self.node.value if decision == "retry" else None,
            constraints=constraints,
        )
        self._show_attempts()
        self.show_message(f"Your verdict is kept: {decision}.", fault=False)
        if not self.task.done:
            self._background.start_feed(lambda: self._follow_task(seen))


def _render_review(review: Review) -> str:
    """Render a verdict: the decision in words, the three criteria as bars, the issues."""
    scores = {"score": review.score, **(review.criteria.model_dump() if review.criteria else {})}
    rows = "".join(
        f'<tr><th scope="row">{escape(name.replace("_", " "))}</th>'
        f"<td>{widget_html.render_bar(value)}{value:.2f}</td></tr>"
        for name, value in scores.items()
        if value is not None
    )
    issues = "".join(f"<li>{escape(issue)}</li>" for issue in review.issues)
    action = review.recommended_action
    advice = ""
    if action is not None:
        how = (
            f" with {json.dumps(action.constraints, ensure_ascii=False)}"
            if action.constraints
            else ""
        )
        advice = f"<p>Recommended: {escape(f'{action.action} {action.node_id}{how}')}</p>"
    return (
        f"<p><b>{escape(review.decision)}</b> by {escape(review.reviewer)}</p>"
        f'<table class="tk">{rows}</table>{f"<ul>{issues}</ul>" if issues else ""}{advice}'
    )
