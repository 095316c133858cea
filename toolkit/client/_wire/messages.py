"""Messages: headers, queries and bodies of requests, and envelopes of responses."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import httpx

from toolkit.client._wire.errors import make_foreign_error
from toolkit.contract.collector_pause import pause_collector
from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.contract.short_tracebacks import ArgumentError
from toolkit.profiles.resolution import ServerAccess
from toolkit.profiles.secret import find_key_fault

# Records are imported on use: reading JSON alone needs neither them nor pydantic.
if TYPE_CHECKING:
    from pydantic import BaseModel

    from toolkit.contract.events import Event, TextDelta
    from toolkit.contract.server_sent_events import EventDecoder

R = TypeVar("R", bound="BaseModel")
T = TypeVar("T")
LONG_POLL_S = 20
USER_AGENT = "capability-toolkit"
STREAM_TYPE = "text/event-stream"
# The service sends a sign of life at shorter intervals; after longer silence a stream is broken.
STREAM_SILENCE_S = 30.0


def make_headers(access: ServerAccess) -> dict[str, str]:
    """Return the headers of every request.

    Raises:
        RequestError: `UNAUTHENTICATED` for a key with characters that no header can carry.
    """
    sent = {"User-Agent": USER_AGENT, "Accept": "application/json"}
    if access.api_key is None:
        return sent
    fault = find_key_fault(access.api_key)
    if fault is not None:
        raise RequestError(
            ErrorCode.UNAUTHENTICATED,
            f"The key is not valid, because it has {fault}: copy it again.",
        )
    return {**sent, "Authorization": f"Bearer {access.api_key.get_secret_value()}"}


def make_preference_header(wait_s: int, *, watches_text: bool) -> dict[str, str]:
    """Make the header that asks the service to wait for the end of work or to stream texts, if any.

    >>> make_preference_header(20, watches_text=True)
    {'Prefer': 'wait=20, stream'}
    """
    wishes = [*([f"wait={wait_s}"] if wait_s else []), *(["stream"] if watches_text else [])]
    return {"Prefer": ", ".join(wishes)} if wishes else {}


def make_page_query(limit: int, cursor: str | None) -> dict[str, str | int]:
    """Make the query that asks for a page of a list."""
    return {"limit": limit} if cursor is None else {"limit": limit, "cursor": cursor}


def make_run_body(
    name: str,
    fields: Mapping[str, object],
    version: str | None,
    options: Mapping[str, object],
    target: str = "capability",
) -> dict[str, object]:
    """Make the body of a request for a run, or for a routing decision.

    Raises:
        TypeError: the input is no mapping.
    """
    check_input(fields)
    return {
        "target": target,
        "name": name,
        "input": dict(fields),
        "options": dict(options),
        **drop_none(version=version),
    }


def check_input(value: object) -> None:
    """Reject an input that is no mapping of fields.

    Raises:
        TypeError: the input is no mapping.
    """
    if not isinstance(value, Mapping):
        raise ArgumentError(
            'the input is a mapping of fields, as in {"objective": "A line on tides"},'
            f" not a {type(value).__name__}"
        )


def make_annotation(tags: Sequence[str] | None, note: str | None) -> dict[str, object]:
    """Make the body that annotates work, or the annotations in a body that creates work.

    >>> make_annotation(("first",), None)
    {'tags': ['first']}
    """
    if isinstance(tags, str):
        raise TypeError("tags are a list of texts, as in tags=['first']")
    return drop_none(tags=None if tags is None else list(tags), note=note)


def drop_none(**fields: object) -> dict[str, object]:
    """Return the fields that are not None."""
    return {name: value for name, value in fields.items() if value is not None}


def encode_body(body: object) -> bytes:
    """Encode a body as JSON, as httpx does.

    Raises:
        ValueError: for a number that JSON cannot represent.
        TypeError: for any other value that JSON cannot represent.
    """
    try:
        text = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except TypeError:
        check_values(body)
        raise
    return text.encode()


def check_values(value: object, path: str = "") -> None:
    """Reject a value that JSON cannot hold.

    Args:
        path: place of the value, such as `input.objective`.

    Raises:
        TypeError: a value has another type; the error names the value and its place.
    """
    if isinstance(value, Mapping):
        parts = [(str(name), part) for name, part in value.items()]
    elif isinstance(value, list | tuple):
        parts = [(str(place), part) for place, part in enumerate(value)]
    elif value is None or isinstance(value, str | int | float):
        return
    else:
        kind = type(value).__name__
        raise ArgumentError(f"`{path}` is a {kind}, but a field takes only JSON values")
    for name, part in parts:
        check_values(part, f"{path}.{name}" if path else name)


@dataclass(frozen=True, slots=True)
class RecordPage(Generic[T]):
    """A page of a list that the service returns in parts.

    Attributes:
        records: the records of the page, or handles of them.
        next_cursor: the cursor of the next page, or None after the last page.
        total: number of all records of the list, or None if the service did not count them.
    """

    records: Sequence[T]
    next_cursor: str | None = None
    total: int | None = None


class HttpAnswer:
    """The answer to a request over HTTP.

    Raises:
        ServiceError: `UNAVAILABLE` if the body is no envelope, for example of another server.
    """

    work = None  # must be read by a separate request

    def __init__(self, response: httpx.Response) -> None:
        self._response = response

    @property
    def has_waited(self) -> bool:
        """True if the service has waited as requested; a proxy may have dropped the preference."""
        return "wait=" in self._response.headers.get("preference-applied", "")

    def parse_data(self) -> Any:
        """Parse the record, or the page, as plain JSON."""
        try:
            envelope = self._response.json()
        except ValueError:
            raise make_foreign_error(self._response) from None
        return self._open_envelope(envelope)

    def _open_envelope(self, envelope: Any) -> Any:
        if not isinstance(envelope, dict) or "data" not in envelope:
            raise make_foreign_error(self._response)
        return envelope["data"]

    def parse_record(self, model: type[R]) -> R:
        """Parse the answer as one record of a model, which may have many parts."""
        from pydantic_core import from_json

        with pause_collector():
            try:
                envelope = from_json(self._response.content)
            except ValueError:
                raise make_foreign_error(self._response) from None
            return model.model_validate(self._open_envelope(envelope))

    def parse_page(self, model: type[R]) -> RecordPage[R]:
        """Parse the answer as a page of records of a model."""
        page = self.parse_data()
        records = [model.model_validate(item) for item in page["items"]]
        return RecordPage(records, page.get("next_cursor"), page.get("total"))


def parse_events(decoder: "EventDecoder", data: bytes) -> "list[Event | TextDelta]":
    """Parse the events and texts that a chunk of a stream completes; chunks may end anywhere."""
    from toolkit.contract.events import Event, TextDelta

    return [
        (TextDelta if event.type.endswith("delta") else Event).model_validate_json(event.data)
        for event in decoder.decode(data)
    ]
