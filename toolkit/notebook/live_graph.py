"""The live graph of a workflow, which `WorkflowGraph` and other widgets show."""

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

import ipywidgets
import traitlets
from pydantic import BaseModel

from toolkit.client import Task, TextPiece, WorkflowRun
from toolkit.contract.errors import ToolkitError
from toolkit.contract.events import Event
from toolkit.contract.tasks import Task as TaskRecord
from toolkit.contract.workflows import Node, WorkflowRecord
from toolkit.display.text import format_missing
from toolkit.display.workflow.boxes import format_workflow_cost
from toolkit.display.workflow.groups import MAX_SINGLE_BOXES
from toolkit.display.workflow.svg import draw_workflow_svg
from toolkit.notebook import widget_html
from toolkit.notebook.graph_twin import GraphTwin
from toolkit.notebook.graph_widget import GraphWidget, describe_state
from toolkit.notebook.node_details import NodeTexts, render_details, render_hint
from toolkit.notebook.widget_base import Panel, make_button, make_row

if TYPE_CHECKING:
    import pandas as pd

REDRAW_S = 0.25  # seconds in which changes are collected before they are drawn
POLL_S = 2.0  # seconds without changes after which a picture that is due is drawn


class LiveGraph(Panel):
    """A workflow's graph, live: its nodes change as they run, and show details when chosen.

    The public name is `WorkflowGraph`; its texts use that name, and it documents the attributes.

    Args:
        work: a submitted workflow, or a task, whose workflows are shown one after the other.

    Raises:
        TypeError: if the work is neither.
    """

    status = traitlets.Unicode("")
    selected = traitlets.Unicode("")

    def __init__(self, work: WorkflowRun | Task) -> None:
        if not isinstance(work, WorkflowRun | Task):
            raise TypeError("WorkflowGraph takes a submitted workflow or a task")
        self.view = GraphWidget()
        self.headline = ipywidgets.HTML()
        self.writing = ipywidgets.HTML()
        self.details = ipywidgets.HTML(render_hint())
        self.cancel = make_button(
            "Cancel",
            "Cancel all nodes that have not ended",
            self.make_action(self._cancel_work),
            "warning",
        )
        self.retry = make_button(
            "Retry",
            "Run the failed nodes again, and all nodes after them",
            self.make_action(self._retry_workflow),
        )
        self.fork = make_button(
            "Run again from here",
            "Start a new workflow that runs again from the selected node",
            self.make_action(self._fork_workflow),
        )
        super().__init__(
            self.headline,
            self.view,
            make_row(self.cancel, self.retry, self.fork),
            self.writing,
            self.details,
        )
        self._task = work if isinstance(work, Task) else None
        self._workflow = work if isinstance(work, WorkflowRun) else None
        self._texts = NodeTexts()
        self._twin = GraphTwin(work.id, self._read_picture)
        self.add_class(self._twin.live_class)
        traitlets.link((self.view, "selected"), (self, "selected"))
        self._start_details = self.make_action(self._show_details)
        self.observe(lambda _: self._start_details(), "selected")
        self._show_record()
        self._start_watch(work)

    @property
    def workflow(self) -> WorkflowRun | None:
        """The workflow that is shown; None while a task is still being planned."""
        return self._workflow

    @property
    def nodes(self) -> list[Node]:
        """The nodes of the workflow, as last read."""
        return [] if self._workflow is None else self._workflow.nodes

    def picture(self) -> str:
        """Return the graph with the states last read, as SVG."""
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

    def _display_(self) -> object:
        """Return only the graph, an anywidget that marimo keeps alive; it has no buttons."""
        return self.view

    def __repr__(self) -> str:
        if self._workflow is None:
            return f"<WorkflowGraph {self._task!r}>"
        count = sum(state["status"] == "completed" for state in self.view.states.values())
        return (
            f"<WorkflowGraph {self._workflow.id} {self.status}, "
            f"{count} of {len(self.nodes)} nodes completed>"
        )

    def _list_current_nodes(self) -> list[Node]:
        """Return the nodes, with the states of events since the record was read."""
        states = self.view.states
        return [
            node.model_copy(update={"status": states[node.id]["status"]})
            if node.id in states
            else node
            for node in self.nodes
        ]

    def _read_picture(self) -> tuple[WorkflowRecord, list[Node]] | None:
        if self._workflow is None:
            return None
        return self._workflow.record, self._list_current_nodes()

    def _ipython_display_(self) -> None:
        """Display the widget, and below it the picture for readers without a kernel."""
        from IPython.display import display

        bundle = self._repr_mimebundle_()
        del bundle["text/html"]
        display(bundle, raw=True)
        self._twin.show(is_over=self._is_over())

    def close(self) -> None:
        """End the threads and remove the widget from the page; the work itself goes on."""
        if hasattr(self, "_following"):
            self._following.close()
        super().close()

    def _is_over(self) -> bool:
        """Check whether the work has ended or waits for a person to continue it."""
        if self._task is not None:
            return self._task.done
        return self._workflow is not None and self.status in self._workflow.ended

    # The methods below run on the watch's thread, and only set traits.

    def _start_watch(self, work: WorkflowRun | Task) -> None:
        """Start to follow some work in the background, as long as the graph shows it."""
        self._background.expect(True)
        self._background.start_feed(lambda: self._watch(work), is_awaited=False)

    def _watch(self, work: WorkflowRun | Task) -> None:
        """Show every change, from any source, and wait for a retry after the end.

        The record includes earlier events; if they were applied again, old states would show.
        """
        after = 0
        if isinstance(work, WorkflowRun):
            events = work.events()
            after = events[-1].n if events else 0
            work.refresh()
            self._show_record()
        closed = self._background.closed
        with work.follow(after, texts=True, beyond_end=True) as following:
            self._following = following
            try:
                while not (closed.is_set() or following.is_over):
                    self._apply_changes(following.take(POLL_S))
                    self._twin.update(is_over=self._is_over())
                    self._background.expect(not self._is_over())
                    closed.wait(REDRAW_S)
            except ToolkitError:
                if not self._is_over():  # at the end no change can be lost
                    raise
            finally:
                if self._following is following:
                    self._background.expect(False)

    def _apply_changes(self, changes: Sequence[Event | TextPiece | BaseModel]) -> None:
        """Draw several changes of the work (events, texts, records) at once."""
        if not changes:
            return
        states = dict(self.view.states)
        shows_texts = len(states) <= MAX_SINGLE_BOXES
        is_selected_changed = False
        for change in changes:
            if isinstance(change, TextPiece):
                self._texts.add(change)
                if shows_texts and change.node_id in states:
                    line = self._texts.describe(change.node_id)
                    states[change.node_id] = {"status": "running", "line": line}
            elif isinstance(change, Event):
                node_id = self._apply_event(change, states)
                is_selected_changed |= node_id == self.selected
            else:
                self._take_record(change)
                states = dict(self.view.states)
                is_selected_changed = True
        self.view.states = states
        self._twin.note_change()
        self.writing.value = self._texts.render(self.selected)
        self._show_status()
        if is_selected_changed and self.selected:
            self._start_details()

    def _apply_event(self, event: Event, states: dict[str, dict[str, str]]) -> str:
        """Apply an event to the states; return the id of the event's node, or an empty string."""
        kind, _, word = event.type.partition(".")
        node_id = event.data.get("node_id")
        if kind == "workflow":
            self.status = word
        if kind != "node" or not isinstance(node_id, str):
            return ""
        if word != "running":
            self._texts.drop(node_id)
        states[node_id] = describe_state(word, event.data)
        return node_id

    def _take_record(self, record: BaseModel) -> None:
        """Show a newly read record of the task or of a workflow."""
        if isinstance(record, WorkflowRecord):
            if self._workflow is not None and self._workflow.id == record.id:
                self._workflow.record = record
            elif self._task is not None:
                self._workflow = self._task.workflow(record.id)
            self._show_record()
        elif isinstance(record, TaskRecord) and self._task is not None:
            self._task.record = record

    def _show_record(self) -> None:
        """Draw the graph, the states and the status of the workflow as last read."""
        if self._workflow is None:
            self._show_status()
            return
        record = self._workflow.record
        titles = {node.id: node.label for node in record.nodes}
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
            facts = {"task": task.id, "status": task.status} if task is not None else {}
            if task is not None:
                facts["missing"] = format_missing(task.missing)
                facts["question"] = task.question or ""
            self.headline.value = widget_html.render_literally(widget_html.render_facts(facts))
            for button in (self.cancel, self.retry, self.fork):
                button.disabled = True
            return
        states = self.view.states.values()
        count = sum(state["status"] == "completed" for state in states)
        is_over = self.status in workflow.ended
        record = workflow.record
        cost = {"cost": format_workflow_cost(record)} if is_over else {}
        latency = (
            {"took": f"{record.latency_ms / 1000:.2f} s"} if record.latency_ms and is_over else {}
        )
        error = {"error": record.error.message} if record.error is not None and is_over else {}
        words = {"status": self.status, "done": f"{count} of {len(record.nodes)} nodes"}
        warnings = {"warnings": "; ".join(record.warnings)} if record.warnings else {}
        line = widget_html.render_line({**words, **cost, **latency, **warnings, **error})
        self.headline.value = widget_html.render_literally(f"<h4>{escape(record.name)}</h4>{line}")
        self.view.label = f"Workflow {record.name}: {self.status}, {count} of {len(record.nodes)}"
        self.cancel.disabled = is_over
        self.retry.disabled = self.status not in ("failed", "cancelled") or self._task is not None
        self.fork.disabled = not (is_over and self.selected) or self._task is not None

    # The methods below respond to a person: a handler starts them, and a thread runs them.

    def _show_details(self) -> None:
        self._show_status()
        if self._workflow is None or not self.selected:
            self.details.value = render_hint()
            self.writing.value = ""
            return
        self.writing.value = self._texts.render(self.selected)
        self.details.value = render_details(self._workflow.refresh(), self.selected)

    def _cancel_work(self) -> None:
        work = self._task or self._workflow
        if work is not None:
            handle = work.cancel()
            self.show_message(f"{handle.id} is {handle.status}.", fault=False)

    def _retry_workflow(self) -> None:
        if self._workflow is None:
            return
        self._workflow.retry()
        self._background.expect(True)
        self._show_record()

    def _fork_workflow(self) -> None:
        if self._workflow is None or not self.selected:
            return
        self._following.close()
        self._workflow = self._workflow.fork(self.selected)
        self.show_message(f"This is a new workflow, {self._workflow.id}.", fault=False)
        self._texts.clear()
        self._show_record()
        self._start_watch(self._workflow)
