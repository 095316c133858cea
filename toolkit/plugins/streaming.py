"""Streamed answers: read piece by piece, and assembled into the answer without a stream.

A flow that asks a vendor to stream gives `send` a reader. The driver feeds it the data that
arrives and shows the text that it returns to watchers. The flow receives the whole answer in the
vendor's form for answers without a stream, so one function reads both.
"""

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Protocol

from toolkit.contract.server_sent_events import EventDecoder
from toolkit.plugins.json_reader import read_json

# Request extension: the reader of the answer, if the answer may be streamed.
STREAM_READER = "toolkit.stream_reader"


class BrokenStreamError(Exception):
    """Raised by a reader if a stream differs from the vendor's documentation."""


@dataclass(frozen=True, slots=True)
class WholeAnswer:
    """A streamed answer, assembled.

    Attributes:
        status: HTTP status that the same answer has without a stream. A failure may come in the
            middle of a stream that began with status 200.
        body: JSON of the answer.
    """

    status: int
    body: bytes


class StreamReader(Protocol):
    """A reader of one streamed answer.

    Attributes:
        media_type: content type of a stream; the reader gets no answer of another type.
    """

    media_type: str

    def read(self, data: bytes) -> str:
        """Read the data that arrived, and return the text in it.

        Raises:
            BrokenStreamError: the data differs from the vendor's documentation.
        """
        ...

    def assemble(self) -> WholeAnswer | None:
        """Assemble the answer; returns None if the stream ended before the answer did."""
        ...


class JsonEventReader(ABC):
    """The base of readers of server-sent events that hold one JSON object each."""

    media_type = "text/event-stream"

    def __init__(self) -> None:
        self._events = EventDecoder()

    def read(self, data: bytes) -> str:
        """Read the events that arrived, and return the text in them.

        Raises:
            BrokenStreamError: the data of an event is not a JSON object.
        """
        return "".join(
            self._add_event(_parse_object(event.data))
            for event in self._events.decode(data)
            if event.data != "[DONE]"
        )

    @abstractmethod
    def _add_event(self, event: dict[str, Any]) -> str:
        """Add an event to the answer, and return the text in the event."""

    @abstractmethod
    def assemble(self) -> WholeAnswer | None:
        """Assemble the answer; returns None if the stream ended before the answer did."""


def _parse_object(data: str) -> dict[str, Any]:
    try:
        value = read_json(data.encode())
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise BrokenStreamError("an event of the stream is not a JSON object")
    return value


def build_answer(document: object, status: int = 200) -> WholeAnswer:
    """Build the whole answer from an object."""
    return WholeAnswer(status, json.dumps(document).encode())


class VisibleText:
    """The part of a streamed text that can be shown, so that the pieces total the stored text.

    Thoughts at the start of an answer (`<think>…</think>`) and white space at either end are left
    out. Text that may still belong to them is held back.

    >>> shown = VisibleText()
    >>> [shown.add(piece) for piece in ("<thi", "nk>Hm.</think>", " Tea", " ", "time. ")]
    ['', '', 'Tea', '', ' time.']
    """

    _OPENING, _CLOSING = "<think>", "</think>"

    def __init__(self) -> None:
        self._held = ""
        self._has_begun = False
        self._in_thoughts = False

    def add(self, piece: str) -> str:
        """Add a piece, and return the text that can be shown now."""
        text = self._held + piece
        if not self._has_begun:
            text = self._skip_thoughts(text.lstrip())
            if not self._has_begun:
                self._held = text
                return ""
        # Hold back half of a surrogate pair, because some vendors cut there.
        end = len(text) - 1 if text and "\ud800" <= text[-1] <= "\udbff" else len(text)
        visible = text[:end].rstrip()
        self._held = text[len(visible) :]
        output = visible.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        return output.replace("\0", "")

    def _skip_thoughts(self, text: str) -> str:
        """Return the text after the thoughts, or the text to hold until their end is known."""
        if self._in_thoughts or text.startswith(self._OPENING):
            self._in_thoughts = True
            _, closed, after = text.partition(self._CLOSING)
            if not closed:
                return text[-len(self._CLOSING) :]
            self._in_thoughts = False
            text = after.lstrip()
            self._has_begun = bool(text)
            return text
        self._has_begun = bool(text) and not self._OPENING.startswith(text)
        return text
