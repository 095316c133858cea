"""Streamed answers: read as they come, and put together into what is answered without a stream.

A flow that asks a vendor to stream gives `send` a reader. The driver feeds it what arrives, shows
the text that it returns to who watches, and hands the flow the whole answer in the form that the
vendor has for answers that are not streamed: so one function reads both.
"""

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Protocol

from toolkit.contract.server_sent_events import EventDecoder
from toolkit.plugins.json_reader import read_json

# The extension of a request that carries the reader of its answer, where that may be streamed.
STREAM_READER = "toolkit.stream_reader"


class BrokenStreamError(Exception):
    """Raised by a reader for a stream that is not what the vendor documents."""


@dataclass(frozen=True, slots=True)
class WholeAnswer:
    """A streamed answer, put together.

    Attributes:
        status: the HTTP status that the vendor answers so with where it does not stream: a
            failure may come in the middle of a stream whose own status was 200.
        body: its JSON.
    """

    status: int
    body: bytes


class StreamReader(Protocol):
    """A reader of one streamed answer.

    Attributes:
        media_type: the content type of a stream; an answer of another type is not given to it.
    """

    media_type: str

    def read(self, data: bytes) -> str:
        """Read what arrived, and return the text in it.

        Raises:
            BrokenStreamError: it is not what the vendor documents.
        """
        ...

    def assemble(self) -> WholeAnswer | None:
        """Put the answer together; none if the stream ended before the answer did."""
        ...


class JsonEventReader(ABC):
    """The base of readers whose vendor streams server-sent events with an object of JSON each."""

    media_type = "text/event-stream"

    def __init__(self) -> None:
        self._events = EventDecoder()

    def read(self, data: bytes) -> str:
        """Read the events that arrived, and return the text in them.

        Raises:
            BrokenStreamError: an event's data is no object of JSON.
        """
        return "".join(
            self._add_event(_parse_object(event.data))
            for event in self._events.decode(data)
            if event.data != "[DONE]"
        )

    @abstractmethod
    def _add_event(self, said: dict[str, Any]) -> str:
        """Add what an event says to the answer, and return the text in it."""

    @abstractmethod
    def assemble(self) -> WholeAnswer | None:
        """Put the answer together; none if the stream ended before the answer did."""


def _parse_object(data: str) -> dict[str, Any]:
    try:
        value = read_json(data.encode())
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise BrokenStreamError("an event of the stream is no JSON object")
    return value


def build_answer(said: object, status: int = 200) -> WholeAnswer:
    """Build the whole answer of an object."""
    return WholeAnswer(status, json.dumps(said).encode())


class VisibleText:
    """The part of a streamed text that is shown, so that all of it is the text that is kept.

    Thoughts that a model opens its answer with (`<think>…</think>`) are left out, and so is white
    space at either end; what cannot be told yet is held back.

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
        """Return what can be shown now."""
        text = self._held + piece
        if not self._has_begun:
            text = self._skip_thoughts(text.lstrip())
            if not self._has_begun:
                self._held = text
                return ""
        # Half of a character outside the basic plane: some vendors cut there.
        end = len(text) - 1 if text and "\ud800" <= text[-1] <= "\udbff" else len(text)
        shown = text[:end].rstrip()
        self._held = text[len(shown) :]
        whole = shown.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        return whole.replace("\0", "")

    def _skip_thoughts(self, text: str) -> str:
        """Return what follows the thoughts, or what has to be held until that is known."""
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
