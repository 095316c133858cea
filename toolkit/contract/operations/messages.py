"""Requests for operations and their answers as values: what passes between a client and an engine
that share a process.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, TypeAlias

from pydantic_core import to_json

from toolkit.contract.base import RecordDocument
from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.contract.events import Event

EventTest: TypeAlias = Callable[[Sequence[Event]], bool]


@dataclass(frozen=True, slots=True)
class OperationRequest:
    """A request for an operation.

    Attributes:
        method: the method of the operation.
        path: its path, with the id of what it is asked of.
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

    method: str
    path: str
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
        is_page: whether the records are those of a page, be it of one.
        work: the record of the work that the events are of, once it may be over.
        content: of what answers with bytes, the bytes.
    """

    records: Sequence[RecordDocument] = ()
    next_cursor: str | None = None
    total: int | None = None
    is_page: bool = False
    work: RecordDocument | None = None
    content: bytes = b""

    def to_json(self) -> bytes:
        """Write the data of the answer's envelope: the record, or the page.

        Raises:
            RequestError: `INVALID_REQUEST` for an answer of bytes.
        """
        records = [one.to_json() for one in self.records]
        if not self.is_page:
            if not records:
                raise RequestError(ErrorCode.INVALID_REQUEST, "This path has bytes, and no JSON.")
            return records[0]
        after = {"count": len(records), "total": self.total, "next_cursor": self.next_cursor}
        return b'{"items":[%s],%s' % (b",".join(records), to_json(after)[1:])
