"""Requests for operations and their answers as values: the messages between a client and an
engine that share a process.
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
    """A request for an operation, within a process.

    Attributes:
        method: the method of the operation.
        path: path, with the id of the record that it is about.
        key: caller's key; empty for no key.
        body: JSON of the request; empty for no body.
        query: parameters, as numbers or texts.
        file: file of an upload, as bytes or open for reading; None without an upload.
        span: first byte to return, and the byte after the last; None as the end means all the rest.
        is_last: test of events for requests of events; True if the work may be over after them, so
            that the answer needs its record.
        hold_s: seconds to wait for the end of the requested work.
        watches_text: whether the caller will watch the texts of the requested work.
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
    """The answer to an `OperationRequest`.

    Attributes:
        records: a single record, or the records of a page.
        next_cursor: cursor of the next page, if there is a next page.
        total: number of all records of the list, if it was counted.
        is_page: whether the records are a page, even a page of one record.
        work: record of the work behind the events, once it may be over.
        content: bytes of an answer that is not JSON.
    """

    records: Sequence[RecordDocument] = ()
    next_cursor: str | None = None
    total: int | None = None
    is_page: bool = False
    work: RecordDocument | None = None
    content: bytes = b""

    def to_json(self) -> bytes:
        """Return the JSON of the record, or of the page with its count and next cursor.

        Raises:
            RequestError: `INVALID_REQUEST` for an answer of bytes.
        """
        records = [record.to_json() for record in self.records]
        if not self.is_page:
            if not records:
                raise RequestError(ErrorCode.INVALID_REQUEST, "This path answers bytes, not JSON.")
            return records[0]
        after = {"count": len(records), "total": self.total, "next_cursor": self.next_cursor}
        return b'{"items":[%s],%s' % (b",".join(records), to_json(after)[1:])
