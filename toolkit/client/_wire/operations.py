"""Requests to an engine in this process, and its answers."""

import re
from collections.abc import Mapping
from typing import IO, TYPE_CHECKING, Any, Protocol, TypeVar

import httpx

from toolkit.client._wire.messages import RecordPage, encode_body
from toolkit.contract.operations.messages import EventTest, OperationAnswer, OperationRequest
from toolkit.profiles.resolution import ServerAccess

if TYPE_CHECKING:
    from pydantic import BaseModel

R = TypeVar("R", bound="BaseModel")
A = TypeVar("A", covariant=True)  # the answer; in the async client, a coroutine for it
S = TypeVar("S", covariant=True)  # an iterator
# Paths with other characters are parsed as a URL.
_PLAIN_PATH = re.compile(r"(?:/[\w.@:-]+)+", re.ASCII)


class OperationChannel(Protocol[A, S]):
    """A channel to the operations of an engine in this process, without HTTP."""

    def call(self, request: OperationRequest) -> A:
        """Carry out an operation of the engine and return its answer.

        Raises:
            ToolkitError: the same errors as over HTTP.
        """
        ...

    def stream(self, request: OperationRequest, deadline: float | None) -> S:
        """Yield the events and texts of a resource as they come, until a deadline.

        Raises:
            ToolkitError: the same errors as over HTTP.
        """
        ...


def make_operation(
    access: ServerAccess,
    method: str,
    path: str,
    *,
    json: object = None,
    params: Mapping[str, str | int] | None = None,
    upload: tuple[str, bytes | IO[bytes]] | None = None,
    span: tuple[int, int | None] = (0, None),
    is_last: EventTest | None = None,
    prefer_wait_s: int = 0,
    watches_text: bool = False,
    **_options: object,
) -> OperationRequest:
    """Make the request of an operation for an engine in this process.

    Options that only HTTP needs, such as timeouts, are ignored.
    """
    if not _PLAIN_PATH.fullmatch(path):
        url = httpx.URL(f"{access.base_url}{path}")
        path, params = url.path.removeprefix("/v1"), params or dict(url.params)
    return OperationRequest(
        method,
        path,
        "" if access.api_key is None else access.api_key.get_secret_value(),
        b"" if json is None else encode_body(json),
        params or {},
        None if upload is None else upload[1],
        span,
        is_last,
        prefer_wait_s,
        watches_text,
    )


class EngineAnswer:
    """The answer of an engine, which always waits as requested.

    Attributes:
        work: the work that the events belong to, if it may have ended.
    """

    has_waited = True

    def __init__(self, answer: OperationAnswer) -> None:
        self._answer = answer
        self.work = answer.work

    def parse_data(self) -> Any:
        """Parse the record, or the page, as plain JSON."""
        from pydantic_core import from_json

        return from_json(self._answer.to_json())

    def parse_record(self, model: type[R]) -> R:
        """Parse the first record as an instance of a model."""
        return self._answer.records[0].parse(model)

    def parse_page(self, model: type[R]) -> RecordPage[R]:
        """Parse all records, with the cursor of the next page."""
        records = [record.parse(model) for record in self._answer.records]
        return RecordPage(records, self._answer.next_cursor, self._answer.total)
