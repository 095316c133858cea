"""Events of a run, job, workflow or task, numbered without gaps from 1."""

from pydantic import Field

from toolkit.contract.base import JsonObject, Record, Timestamp

TERMINAL_EVENTS: frozenset[str] = frozenset(
    f"{kind}.{state}"
    for kind in ("run", "job", "workflow", "task")
    for state in ("completed", "failed", "cancelled")
)


class Event(Record):
    """One event; `type` is `<kind>.<state>`, as in `node.completed` or `task.reviewing`."""

    n: int = Field(ge=1, description="number of the event, which grows by one within its resource")
    resource_id: str
    type: str
    at: Timestamp
    data: JsonObject = {}

    @property
    def terminal(self) -> bool:
        """True if no event of this resource comes after it."""
        return self.type in TERMINAL_EVENTS and self.data.get("id") == self.resource_id


class TextDelta(Record):
    """A piece of a text as a vendor writes it, on the event stream alone: `event: delta`.

    Pieces have no number: they are not stored, not in lists, and not sent again.
    """

    resource_id: str
    job_id: str
    node_id: str | None = Field(
        default=None, description="node that writes the text, in a workflow"
    )
    attempt: int = Field(
        ge=1, description="number of the attempt; a new attempt starts the text again"
    )
    text: str
