"""The known progress of awaited work: the state of each node, money and time."""

from datetime import UTC, datetime

from pydantic import BaseModel

from toolkit.contract.events import Event
from toolkit.contract.jobs import Job
from toolkit.contract.tasks import Task
from toolkit.contract.workflows import WorkflowRecord
from toolkit.display.progress.node_states import OVER, NodeState
from toolkit.display.text import format_missing, format_spending, truncate_line

MAX_TITLE_CHARACTERS = 60


class WorkProgress:
    """The progress of a run, a workflow or a task.

    The nodes of a task are the nodes of its current workflow.

    Attributes:
        id, title, status: identity and status of the work.
        nodes: state of each node by id; a run has one node.
        budget_usd: highest total cost in US dollars; None without a limit.
        outcome: addition to the end of the work: an error, a question, or missing things.
        detail: reason why all of the work waits, such as `waiting secret`; empty without a reason.
        width: highest number of nodes that have run at once so far.
    """

    def __init__(self, record: BaseModel) -> None:
        self.id = str(getattr(record, "id", ""))
        self.title = self.id
        self.status = ""
        self.outcome = ""
        self.detail = ""
        self.nodes: dict[str, NodeState] = {}
        self.budget_usd: float | None = None
        self.width = 0
        self._spent_before_usd = 0.0  # cost of a task's earlier workflows
        self._running: set[str] = set()
        self._workflow_id = ""
        self._spending = ""  # total cost from the record, once the work is over
        self._created_at = datetime.now(UTC)
        self._ended_at: datetime | None = None
        self.apply_record(record)

    @property
    def is_over(self) -> bool:
        """True if the work has ended or is blocked."""
        return self.status in OVER or self.status == "blocked"

    @property
    def is_single(self) -> bool:
        """True for a run, which has no nodes."""
        return list(self.nodes) == [self.id]

    @property
    def spent_usd(self) -> float:
        """US dollars that the work's nodes have cost so far."""
        return self._spent_before_usd + sum(node.cost_usd for node in self.nodes.values())

    def describe_spending(self) -> str:
        """Format the cost; at the end, add the cost of all attempts if it differs."""
        spent_usd = round(self.spent_usd, 9)
        return (self.is_over and self._spending) or format_spending(spent_usd, spent_usd)

    def count_states(self) -> dict[str, int]:
        """Count the nodes in each state."""
        counts: dict[str, int] = {}
        for node in self.nodes.values():
            counts[node.status] = counts.get(node.status, 0) + 1
        return counts

    def measure_s(self, now: datetime) -> float:
        """Return the elapsed seconds."""
        return max(0.0, ((self._ended_at or now) - self._created_at).total_seconds())

    def apply_record(self, record: BaseModel) -> None:
        """Apply a record, of the work or of a workflow of the work."""
        if isinstance(record, WorkflowRecord):
            self._apply_nodes(record)
        elif isinstance(record, Job):
            self.nodes.setdefault(self.id, NodeState(self.id)).apply_record(record)
        if getattr(record, "id", "") != self.id:
            return
        if isinstance(record, WorkflowRecord | Job | Task):
            self.status = record.status
            self._created_at, self._ended_at = record.created_at, record.completed_at
            self.outcome = ""
            self.detail = _format_detail(record.status_detail)
            if record.error is not None:
                self.outcome = f"{record.error.code}: {truncate_line(record.error.message, 200)}"
            final = format_spending(record.cost_usd, record.cost_incurred_usd)
            self._spending = final if self.is_over else ""
            if isinstance(record, Task):
                self.title = truncate_line(record.objective, MAX_TITLE_CHARACTERS) or self.id
                self.budget_usd = record.constraints.max_cost_usd
                if self.status == "blocked":
                    self.outcome = record.question or format_missing(record.missing)
            else:
                title = record.capability if isinstance(record, Job) else record.name
                self.title = truncate_line(title, MAX_TITLE_CHARACTERS) or self.id
                self.budget_usd = record.options.max_cost_usd

    def apply_event(self, event: Event) -> None:
        """Apply an event."""
        kind, _, state = event.type.partition(".")
        node_id = event.data.get("node_id")
        if kind == "node" and isinstance(node_id, str):
            self.nodes.setdefault(node_id, NodeState(node_id)).apply_event(event)
            self._note_running(node_id, is_running=state == "running")
        elif event.resource_id == self.id:
            self.status, self.outcome = state, ""
            self.detail = _format_detail(event.data.get("status_detail"))
            self._ended_at = event.at if self.is_over else None
            if self.id in self.nodes:
                self.nodes[self.id].apply_event(event)

    def add_text(self, node_id: str, piece: str, *, restarts: bool) -> None:
        """Add a piece of the text that a node is writing; a run uses its own id."""
        if node_id in self.nodes and not self.nodes[node_id].is_over:
            self.nodes[node_id].add_text(piece, restarts=restarts)

    def _note_running(self, node_id: str, *, is_running: bool) -> None:
        (self._running.add if is_running else self._running.discard)(node_id)
        self.width = max(self.width, len(self._running))

    def _apply_nodes(self, record: WorkflowRecord) -> None:
        if record.id != self._workflow_id:
            self._spent_before_usd += sum(node.cost_usd for node in self.nodes.values())
            self._workflow_id, self.nodes = record.id, {}
        for node in record.nodes:
            self.nodes.setdefault(node.id, NodeState(node.id)).apply_record(node)
            self._note_running(node.id, is_running=node.status == "running")


def _format_detail(detail: object) -> str:
    return str(detail or "").replace("_", " ")
