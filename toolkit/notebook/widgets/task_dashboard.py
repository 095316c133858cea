"""`TaskDashboard`: enter an objective, watch the task run, read the review."""

import ipywidgets

from toolkit.client import Client, Plan, Task
from toolkit.notebook.live_graph import LiveGraph
from toolkit.notebook.schema_form import guard_control
from toolkit.notebook.widget_base import Panel, make_button, make_labelled, make_row
from toolkit.notebook.widgets.task_review import TaskReview

EXAMPLE_OBJECTIVE = "A social card with a spoken summary about tidal power"


class TaskDashboard(Panel):
    """One page for a task: its objective, its graph while it runs, and its review.

    Args:
        client: the client that runs the task.
        objective: the objective that the form suggests.

    Attributes:
        objective, max_cost_usd, preview, start: the form.
        planned: the previewed plan, as HTML.
        task, graph, review: parts of the last task; None before the first.
    """

    def __init__(self, client: Client, objective: str = EXAMPLE_OBJECTIVE) -> None:
        self._client = client
        self.task: Task | None = None
        self._previewed: tuple[str, float, Plan] | None = None
        self.graph: LiveGraph | None = None
        self.review: TaskReview | None = None
        self.objective = make_labelled(ipywidgets.Textarea, "objective", value=objective)
        self.objective.rows = 2
        self.max_cost_usd = make_labelled(
            ipywidgets.BoundedFloatText,
            "maximum cost, dollars",
            value=0.1,
            min=0.0,
            max=1000,
            step=0.05,
        )
        self.start = make_button(
            "Start", "Plan, run and review the objective", self._start_task, "primary"
        )
        self.preview = make_button(
            "Preview", "Show the plan without running it", self._start_preview
        )
        self.planned = ipywidgets.HTML()
        self.shown = ipywidgets.VBox()
        super().__init__(
            self.objective,
            self.max_cost_usd,
            make_row(self.preview, self.start),
            self.planned,
            self.shown,
        )
        guard_control(self.objective, self.show_message)

    def snapshot(self) -> str:
        """Return the graph and the review, for a saved notebook."""
        if self.graph is None or self.review is None:
            return super().snapshot()
        return self.graph.snapshot() + self.review.snapshot()

    def close(self) -> None:
        """Close the dashboard with its graph and its review; the task goes on."""
        for part in (self.graph, self.review):
            if part is not None:
                part.close()
        super().close()

    def __repr__(self) -> str:
        return f"<TaskDashboard {self.task!r}>" if self.task else "<TaskDashboard, no task yet>"

    def _start_preview(self) -> None:
        objective, limit = str(self.objective.value), float(self.max_cost_usd.value)
        self._background.start_action(lambda: self._create_plan(objective, limit))

    def _create_plan(self, objective: str, limit: float) -> None:
        plan = self._client.plans.create(objective, max_cost_usd=limit)
        self._previewed = (objective, limit, plan)
        self.planned.value = plan.preview()
        self.show_message("", fault=False)

    def _start_task(self) -> None:
        objective, limit = str(self.objective.value), float(self.max_cost_usd.value)
        self._background.start_action(lambda: self._create_task(objective, limit))

    def _create_task(self, objective: str, limit: float) -> None:
        reusable_plan = None
        if self._previewed is not None and self._previewed[:2] == (objective, limit):
            plan = self._previewed[2]
            reusable_plan = plan if plan.executable else None  # a paid plan is not made again
        self.task = self._client.tasks.create(objective, plan=reusable_plan, max_cost_usd=limit)
        self.planned.value = ""
        self.show_message(f"{self.task.id} is running.", fault=False)
        before = (self.graph, self.review)
        # Each part reads the task itself: both follow it, and neither waits for the other.
        self.graph = LiveGraph(self.task)
        self.review = TaskReview(self._client.tasks.get(self.task.id))
        self.shown.children = (self.graph, self.review)
        for part in before:
            if part is not None:
                part.close()
