"""Events of a run, job, map, workflow or task, numbered without gaps from 1."""

from typing import Literal, TypeAlias

from pydantic import Field

from toolkit.contract.base import JsonObject, Record, Timestamp

PieceKind: TypeAlias = Literal["reasoning", "text", "tool_call"]
# In the order in which models write them.
PIECE_KINDS: tuple[PieceKind, ...] = ("reasoning", "text", "tool_call")
TERMINAL_EVENTS: frozenset[str] = frozenset(
    f"{kind}.{state}"
    for kind in ("run", "job", "map", "workflow", "task")
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


class ToolCallPart(Record):
    """The tool call whose arguments a piece continues."""

    index: int = Field(ge=0, description="number of the call within the answer, from 0")
    id: str
    name: str = Field(description="name of the tool")


class TextDelta(Record):
    """A piece of an answer as a vendor writes it, on the event stream alone.

    A piece of the text is an `event: delta`, a piece of the model's reasoning an
    `event: reasoning_delta`, a piece of the arguments of a tool call an `event: tool_call_delta`.
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
    kind: PieceKind = "text"
    text: str
    tool_call: ToolCallPart | None = Field(
        default=None, description="the tool call, whose first piece may have no text"
    )

    @property
    def event_type(self) -> str:
        """The type of the server-sent event that has the piece."""
        return "delta" if self.kind == "text" else f"{self.kind}_delta"

    @property
    def part(self) -> tuple[PieceKind, int]:
        """The part of the answer that the piece continues: its kind, and the index of its call."""
        return self.kind, 0 if self.tool_call is None else self.tool_call.index


class TextPiece(str):
    """A piece of a text, of a model's reasoning, or of the arguments of a tool call.

    Attributes:
        kind: `text`, `reasoning` or `tool_call`.
        restarts: whether this kind begins again with this piece, because its earlier pieces are
            void: an attempt failed, or the answer was stored in another form.
        tool_call: `index`, `id` and `name` of the tool call, whose arguments are JSON; None for
            other kinds.
        job_id: the job that writes it; empty if it is the job that the caller asked for.
        node_id: the node that writes it; empty outside workflows.
    """

    kind: PieceKind
    restarts: bool
    tool_call: ToolCallPart | None
    job_id: str
    node_id: str

    @classmethod
    def of(cls, delta: TextDelta, text: str, *, restarts: bool = False) -> "TextPiece":
        """Make a piece with this text of the part that a delta continues."""
        piece = cls(text)
        piece.kind, piece.tool_call, piece.restarts = delta.kind, delta.tool_call, restarts
        piece.job_id, piece.node_id = delta.job_id, delta.node_id or ""
        return piece
