"""Requests for operations and their answers as values: what passes between a client and an engine
that share a process.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from toolkit.contract.events import Event

EventTest: TypeAlias = Callable[[Sequence[Event]], bool]


@dataclass(frozen=True, slots=True)
class OperationRequest:
    """A request for an operation.

    Attributes:
        method: the method.
        path: the path below `/v1`.
        key: the caller's key; empty for none.
        body: the JSON that is sent; empty for nothing.
        query: the parameters, as numbers or texts.
        is_last: where events of some work are asked for: tells whether the work may be over after
            them, so that its record is wanted, too.
        needs_events: false where that record alone is wanted, if it can be had without them.
    """

    method: str
    path: str
    key: str
    body: bytes = b""
    query: Mapping[str, str | int] = field(default_factory=dict)
    is_last: EventTest | None = None
    needs_events: bool = True


@dataclass(frozen=True, slots=True)
class OperationAnswer:
    """The answer to a request: the JSON of each record, as none is shared with who made it.

    Attributes:
        records: one, or those of a page.
        next_cursor: leads to the next page, where there is one.
        work: the record of the work that the events are of, once it may be over.
    """

    records: Sequence[bytes]
    next_cursor: str | None = None
    work: bytes | None = None
