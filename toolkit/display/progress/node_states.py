"""The state of a node, or of a run, from records and events."""

from dataclasses import dataclass, field
from datetime import datetime

from toolkit.contract.events import Event
from toolkit.contract.jobs import Job
from toolkit.contract.workflows import Node
from toolkit.display.text import truncate_line

MAX_TEXT_CHARACTERS = 4_000  # of the end of a text that is being written
OVER = frozenset({"completed", "failed", "cancelled"})


@dataclass(slots=True)
class NodeState:
    """The state of a node as last reported.

    Attributes:
        capability: capability for estimating its time; empty while unknown.
        expected_s: expected duration in seconds, from its provider's latency; None if unknown.
        text: end of the text that the node is writing.
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

    @property
    def is_over(self) -> bool:
        """True if the node runs no more."""
        return self.status in OVER

    def measure_s(self, now: datetime) -> float | None:
        """Return the elapsed seconds, or None if the node has not started."""
        if self.took_s is not None or self.started_at is None:
            return self.took_s
        return max(0.0, (now - self.started_at).total_seconds())

    def add_text(self, piece: str, *, restarts: bool) -> None:
        """Add a piece to the text that the node is writing."""
        self.text = (piece if restarts else self.text + piece)[-MAX_TEXT_CHARACTERS:]

    def apply_record(self, record: Node | Job) -> None:
        """Apply the fields of a record."""
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
        """Apply the data of an event."""
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
                self.started_at, self.text = None, ""
            elif self.started_at is None:
                self.started_at = event.at
            return
        self.text = ""
        cost, latency_ms = data.get("cost_usd"), data.get("latency_ms")
        self.cost_usd = float(cost) if isinstance(cost, int | float) else 0.0
        if self.started_at is not None:
            self.took_s = max(0.0, (event.at - self.started_at).total_seconds())
        elif isinstance(latency_ms, int | float):
            self.took_s = latency_ms / 1000


def _format_error(error: dict[str, object]) -> str:
    """Format an error on one line."""
    return f"{error.get('code')}: {truncate_line(error.get('message') or '', 100)}"
