"""`LiveGraph`: the graph of a running workflow, as `WorkflowGraph` and the editor show it."""

from html import escape
from typing import TYPE_CHECKING, Any

import ipywidgets
import traitlets
from typing_extensions import deprecated

from toolkit.client import Task, WorkflowRun
from toolkit.contract.events import Event
from toolkit.contract.workflows import Node
from toolkit.display.text import format_missing
from toolkit.display.workflow.boxes import format_workflow_cost
from toolkit.display.workflow.svg import draw_workflow_svg
from toolkit.notebook import widget_html
from toolkit.notebook.background import follow_events
from toolkit.notebook.graph_widget import GraphWidget, describe_state
from toolkit.notebook.widget_base import Panel, make_button, make_row

if TYPE_CHECKING:
    import pandas as pd

ATTEMPT_COLUMNS = ("n", "provider", "model", "status", "error", "http_status", "cost_usd")
SELECTION_HINT = (
    "Choose a node (click, or Tab, arrows and Enter) to see its input, output and cost."
)


class LiveGraph(Panel):
    """A workflow's graph, live: its nodes change as they run, and show details when chosen.

    People know it as `WorkflowGraph`: its texts name that, and its attributes are told there.

    Args:
        work: a submitted workflow, or a task, whose workflows are shown one after the other.

    Raises:
        TypeError: for what is neither.
    """

    status = traitlets.Unicode("")
    selected = traitlets.Unicode("")

    def __init__(self, work: WorkflowRun | Task) -> None:
        if not isinstance(work, WorkflowRun | Task):
            raise TypeError("WorkflowGraph takes a submitted workflow or a task")
        self.view = GraphWidget()
        self.headline = ipywidgets.HTML()
        self.details = ipywidgets.HTML(f'<p class="tk-quiet">{SELECTION_HINT}</p>')
        self.cancel = make_button(
            "Cancel", "Cancel what has not ended yet", self._start_cancel, "warning"
        )
        self.retry = make_button("Retry", "Run again from the failed nodes on", self._start_retry)
        self.fork = make_button(
            "Run again from here", "A new workflow from the chosen node on", self._start_fork
        )
        super().__init__(
            self.headline, self.view, make_row(self.cancel, self.retry, self.fork), self.details
        )
        self._task = work if isinstance(work, Task) else None
        self._workflow = work if isinstance(work, WorkflowRun) else None
        traitlets.link((self.view, "selected"), (self, "selected"))
        self.observe(lambda _: self._start_details(), "selected")
        self._show_record()
        self._background.start_feed(
            self._follow_task if self._task is not None else self._follow_workflow
        )

    @property
    @deprecated("`rerun` is now called `fork`")
    def rerun(self) -> Any:
        """The button `fork`, by its old name."""
        return self.fork

    @property
    def workflow(self) -> WorkflowRun | None:
        """The workflow that is shown; none while a task is still being planned."""
        return self._workflow

    @property
    def nodes(self) -> list[Node]:
        """Its nodes, as they were when last read."""
        return [] if self._workflow is None else self._workflow.nodes

    def picture(self) -> str:
        """Return the graph with its states as they were when last read, as SVG."""
        return "" if self._workflow is None else self._workflow.picture()

    def table(self) -> "pd.DataFrame":
        """Return the nodes as a table, one row each."""
        from toolkit.display.records.data_frame import to_data_frame

        return to_data_frame(self.nodes)

    def snapshot(self) -> str:
        """Return the picture, for a saved notebook."""
        if self._workflow is None:
            return super().snapshot()
        record = self._workflow.record
        return draw_workflow_svg(
            record.name, self._list_current_nodes(), cost=format_workflow_cost(record)
        )

    def __repr__(self) -> str:
        if self._workflow is None:
            return f"<WorkflowGraph {self._task!r}>"
        done = sum(one["status"] == "completed" for one in self.view.states.values())
        return (
            f"<WorkflowGraph {self._workflow.id} {self.status}, "
            f"{done} of {len(self.nodes)} nodes completed>"
        )

    def _list_current_nodes(self) -> list[Node]:
        """Return the nodes, with the states from events since the record was read."""
        states = self.view.states
        return [
            node.model_copy(update={"status": states[node.id]["status"]})
            if node.id in states
            else node
            for node in self.nodes
        ]

    # The methods below run on the feed's thread, and only set traits.

    def _follow_task(self) -> None:
        """Show each workflow of a task until that is over."""
        task = self._task
        if task is None:
            return
        for event in follow_events(task, self._background.closed):
            self._show_status()
            made = event.data.get("workflow_id") if event is not None else None
            if event is not None and event.type == "task.executing" and isinstance(made, str):
                self._workflow = task.workflow(made)
                self._follow_workflow()
        self._show_status()

    def _follow_workflow(self) -> None:
        """Show a workflow's events from now on, until it is over.

        The record has the result of earlier events; applied again, they would show old states.
        """
        workflow = self._workflow
        if workflow is None:
            return
        told = workflow.events()
        after = told[-1].n if told else 0
        workflow.refresh()
        self._show_record()
        for event in follow_events(workflow, self._background.closed, after):
            if event is None:
                self._show_record()
            else:
                self._apply_event(event)
        self._show_record()

    def _apply_event(self, event: Event) -> None:
        kind, _, word = event.type.partition(".")
        node_id = event.data.get("node_id")
        if kind == "node" and isinstance(node_id, str):
            self.view.states = {**self.view.states, node_id: describe_state(word, event.data)}
            if node_id == self.selected:
                self._start_details()
        elif kind == "workflow":
            self.status = word
        self._show_status()

    def _show_record(self) -> None:
        """Draw the record as it was last read."""
        if self._workflow is None:
            self._show_status()
            return
        record = self._workflow.record
        titles = {node.id: node.capability for node in record.nodes}
        if [node["id"] for node in self.view.graph.get("nodes", [])] != list(titles):
            self.view.draw(titles, {node.id: node.depends_on for node in record.nodes})
        self.view.states = {
            node.id: describe_state(node.status, dict(node)) for node in record.nodes
        }
        self.status = record.status
        self._show_status()

    def _show_status(self) -> None:
        """Show the status in words, and enable the buttons that would do something."""
        workflow = self._workflow
        if workflow is None:
            task = self._task
            told = {"task": task.id, "status": task.status} if task is not None else {}
            if task is not None:
                told["missing"] = format_missing(task.missing)
                told["question"] = task.question or ""
            self.headline.value = widget_html.render_facts(told)
            for one in (self.cancel, self.retry, self.fork):
                one.disabled = True
            return
        states = self.view.states.values()
        done = sum(one["status"] == "completed" for one in states)
        over = self.status in workflow.ended
        record = workflow.record
        cost = {"cost": format_workflow_cost(record)} if over else {}
        took = {"took": f"{record.latency_ms / 1000:.2f} s"} if record.latency_ms and over else {}
        error = {"error": record.error.message} if record.error is not None and over else {}
        words = {"status": self.status, "done": f"{done} of {len(record.nodes)} nodes"}
        warned = {"warnings": "; ".join(record.warnings)} if record.warnings else {}
        line = widget_html.render_line({**words, **cost, **took, **warned, **error})
        self.headline.value = f"<h4>{escape(record.name)}</h4>{line}"
        self.view.label = f"Workflow {record.name}: {self.status}, {done} of {len(record.nodes)}"
        self.cancel.disabled = over
        self.retry.disabled = self.status not in ("failed", "cancelled") or self._task is not None
        self.fork.disabled = not (over and self.selected) or self._task is not None

    # The methods below answer a person: a handler starts them, and a thread runs them.

    def _start_details(self) -> None:
        self._background.start_action(self._show_details)

    def _show_details(self) -> None:
        """Show the details of the chosen node."""
        self._show_status()
        if self._workflow is None or not self.selected:
            self.details.value = f'<p class="tk-quiet">{SELECTION_HINT}</p>'
            return
        self.details.value = _render_details(self._workflow.refresh(), self.selected)

    def _start_cancel(self) -> None:
        workflow, task = self._workflow, self._task
        if task is not None:
            self._background.start_action(lambda: self._report_status(task.cancel()))
        elif workflow is not None:
            self._background.start_action(lambda: self._report_status(workflow.cancel()))

    def _report_status(self, work: WorkflowRun | Task) -> None:
        self.show_message(f"{work.id} is {work.status}.", fault=False)

    def _start_retry(self) -> None:
        self._background.start_action(self._retry_workflow)

    def _retry_workflow(self) -> None:
        if self._workflow is None:
            return
        self._workflow.retry()
        self._show_record()
        self._background.start_feed(self._follow_workflow)

    def _start_fork(self) -> None:
        self._background.start_action(self._fork_workflow)

    def _fork_workflow(self) -> None:
        if self._workflow is None or not self.selected:
            return
        self._workflow = self._workflow.fork(self.selected)
        self.show_message(f"This is a new workflow, {self._workflow.id}.", fault=False)
        self._show_record()
        self._background.start_feed(self._follow_workflow)


def _render_details(workflow: WorkflowRun, node_id: str) -> str:
    """Render the details of a node: its job, its input and its output."""
    node = workflow[node_id]
    job = workflow.job(node_id) if node.job_id else None
    known = {
        "capability": node.capability,
        "status": node.status,
        "depends_on": node.depends_on,
        "retries": node.retry_count,
        "error": node.error and f"{node.error.code}: {node.error.message}",
    }
    cards = [("Input", widget_html.render_json(node.input if job is None else job.input))]
    if job is not None:
        known |= {
            "provider": job.provider,
            "model": job.model_name,
            "cost_usd": job.cost_usd,
            "took": f"{job.latency_ms} ms" if job.latency_ms is not None else None,
            "cached_from": job.record.cached_from,
        }
        attempts = [attempt.model_dump(mode="json") for attempt in job.attempts]
        columns = [c for c in ATTEMPT_COLUMNS if any(one.get(c) is not None for one in attempts)]
        if attempts:
            cards.insert(0, ("Attempts", widget_html.render_table(attempts, columns)))
        if job.output is not None:
            cards.append(("Output", widget_html.render_json(job.output)))
        if job.artifact_id:
            cards.append(("Artifact", widget_html.render_artifact(job.artifact())))
    shown = "".join(widget_html.render_card(title, content) for title, content in cards)
    facts = widget_html.render_facts(known)
    return f"<h4>{escape(node.id)}</h4>{facts}<div class='tk-columns'>{shown}</div>"
