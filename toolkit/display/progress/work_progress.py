"""The known progress of awaited work: the state of each node from records and events, money and
time.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime

from pydantic import BaseModel

from toolkit.contract.events import Event, TextPiece
from toolkit.contract.jobs import Job
from toolkit.contract.tasks import Task
from toolkit.contract.workflows import Node, WorkflowRecord
from toolkit.display.text import format_missing, format_spending, truncate_line

MAX_TEXT_CHARACTERS = 4_000  # of each part of an answer that is being written
OVER = frozenset({"completed", "failed", "cancelled"})
MAX_TITLE_CHARACTERS = 60


@dataclass(slots=True)
class NodeState:
    """The state of a node as last reported.

    Attributes:
        expected_s: expected duration in seconds, from its provider's latency; None if unknown.
        reasoning: end of the model's reasoning, kept until the node starts again.
        calls: tools that the model asks for, with their arguments, by index.
    """

    id: str
    capability: str = ""
    depends_on: list[str] = field(default_factory=list)
    status: str = "pending"
    provider: str = ""
    detail: str = ""
    error: str = ""
    is_cached: bool = False
    cost_usd: float = 0.0
    started_at: datetime | None = None
    took_s: float | None = None
    expected_s: float | None = None
    text: str = ""
    reasoning: str = ""
    calls: dict[int, str] = field(default_factory=dict)

    @property
    def is_over(self) -> bool:
        """True if the node runs no more."""
        return self.status in OVER

    def measure_s(self, now: datetime) -> float | None:
        """Return the elapsed seconds, or None if the node has not started."""
        if self.took_s is not None or self.started_at is None:
            return self.took_s
        return max(0.0, (now - self.started_at).total_seconds())

    def add_piece(self, piece: TextPiece) -> None:
        """Add a piece of the answer that the node is writing."""
        if piece.kind == "text":
            self.text = ("" if piece.restarts else self.text) + piece
            self.text = self.text[-MAX_TEXT_CHARACTERS:]
        elif piece.kind == "reasoning":
            self.reasoning = ("" if piece.restarts else self.reasoning) + piece
            self.reasoning = self.reasoning[-MAX_TEXT_CHARACTERS:]
        elif piece.tool_call is not None:
            if piece.restarts:
                self.calls.clear()
            index = piece.tool_call.index
            call = self.calls.get(index, f"{piece.tool_call.name} ") + piece
            self.calls[index] = call[:MAX_TEXT_CHARACTERS]

    def apply_record(self, record: Node | Job) -> None:
        """Take the state from the record of the node or of its job."""
        self.capability = record.capability
        self.status = record.status
        self.provider = record.provider or ""
        self.detail = (record.status_detail or "").replace("_", " ")
        self.error = "" if record.error is None else _format_error(dict(record.error))
        self.is_cached = record.cached_from is not None
        self.cost_usd = record.cost_usd or 0.0
        self.started_at = record.started_at
        if record.started_at is not None and record.completed_at is not None:
            self.took_s = (record.completed_at - record.started_at).total_seconds()
        if isinstance(record, Node):
            self.depends_on = record.depends_on
        elif record.routing is not None:
            candidates = [row for row in record.routing.candidates if not row.excluded][:1]
            latency_ms = candidates[0].latency_p50_ms if candidates else None
            self.expected_s = None if latency_ms is None else latency_ms / 1000

    def apply_event(self, event: Event) -> None:
        """Update the state by an event; a node that starts again loses its times and its text."""
        data = event.data
        self.status = event.type.partition(".")[2]
        self.provider = str(data.get("provider") or "")
        self.detail = str(data.get("status_detail") or "").replace("_", " ")
        error = data.get("error")
        self.error = _format_error(error) if isinstance(error, dict) else ""
        self.is_cached = bool(data.get("cached_from"))
        if not self.is_over:
            self.took_s = None
            if self.status != "running":
                self.started_at, self.text, self.reasoning = None, "", ""
                self.calls.clear()
            elif self.started_at is None:
                self.started_at = event.at
            return
        self.text = ""
        self.calls.clear()
        cost, latency_ms = data.get("cost_usd"), data.get("latency_ms")
        self.cost_usd = float(cost) if isinstance(cost, int | float) else 0.0
        if self.started_at is not None:
            self.took_s = max(0.0, (event.at - self.started_at).total_seconds())
        elif isinstance(latency_ms, int | float):
            self.took_s = latency_ms / 1000


def _format_error(error: dict[str, object]) -> str:
    return f"{error.get('code')}: {truncate_line(error.get('message') or '', 100)}"


class WorkProgress:
    """The progress of a run, a job, a workflow or a task.

    The nodes of a task are the nodes of its current workflow.

    Attributes:
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
        """True for a run or a job, whose only node is the work itself."""
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
        """Update the work, or one of its nodes, by an event."""
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

    def add_piece(self, piece: TextPiece) -> None:
        """Add a piece of the answer that a node, or the run, is writing."""
        node = self.nodes.get(piece.node_id or self.id)
        if node is not None and not node.is_over:
            node.add_piece(piece)

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
