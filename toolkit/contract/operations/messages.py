"""Requests for operations and their answers as values: what passes between a client and an engine
that share a process.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any, TypeAlias

from toolkit.contract.base import RecordDocument
from toolkit.contract.events import Event
from toolkit.contract.operations.definitions import ApiOperation

EventTest: TypeAlias = Callable[[Sequence[Event]], bool]


@dataclass(frozen=True, slots=True)
class OperationTarget:
    """The operation that a method and a path name.

    Attributes:
        operation: the operation.
        id: the id in the path; empty where there is none.
    """

    operation: ApiOperation[Any, Any]
    id: str


@dataclass(frozen=True, slots=True)
class OperationRequest:
    """A request for an operation.

    Attributes:
        target: the operation, and what it is asked of.
        key: the caller's key; empty for none.
        body: the JSON that is sent; empty for nothing.
        query: the parameters, as numbers or texts.
        file: the file of an upload, as bytes or open to be read; none for what uploads nothing.
        span: the first byte that is wanted, and the one after the last; none for all that follow.
        is_last: where events of some work are asked for: tells whether the work may be over after
            them, so that its record is wanted, too.
        hold_s: seconds to wait for the end of the work that is asked for or read.
        watches_text: whether the texts of the work that is asked for will be watched.
    """

    target: OperationTarget
    key: str
    body: bytes = b""
    query: Mapping[str, str | int] = field(default_factory=dict)
    file: bytes | IO[bytes] | None = None
    span: tuple[int, int | None] = (0, None)
    is_last: EventTest | None = None
    hold_s: float = 0.0
    watches_text: bool = False


@dataclass(frozen=True, slots=True)
class OperationAnswer:
    """The answer to a request.

    Attributes:
        records: one, or those of a page.
        next_cursor: leads to the next page, where there is one.
        total: the number of all records of the list, if it was counted.
        work: the record of the work that the events are of, once it may be over.
        content: of what answers with bytes, the bytes.
    """

    records: Sequence[RecordDocument] = ()
    next_cursor: str | None = None
    total: int | None = None
    work: RecordDocument | None = None
    content: bytes = b""
