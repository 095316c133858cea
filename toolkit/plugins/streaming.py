"""Streamed answers: read piece by piece, and assembled into the form of an unstreamed answer.

A flow that asks a vendor to stream gives `send` a reader. The driver feeds it the data that
arrives and shows the pieces that it returns to watchers. The flow receives the whole answer in the
vendor's form for answers without a stream, so one function reads both.
"""

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Protocol

from toolkit.contract.events import PieceKind
from toolkit.contract.server_sent_events import EventDecoder
from toolkit.plugins.json_reader import read_json

# Request extension: the reader of the answer, if the answer may be streamed.
STREAM_READER = "toolkit.stream_reader"


class BrokenStreamError(Exception):
    """Raised by a reader if a stream differs from the vendor's documentation."""


@dataclass(frozen=True, slots=True)
class WholeAnswer:
    """A streamed answer, assembled into the form of an answer without a stream.

    Attributes:
        status: HTTP status that the same answer has without a stream. A failure may come in the
            middle of a stream that began with status 200.
        body: JSON of the answer.
    """

    status: int
    body: bytes


@dataclass(frozen=True, slots=True)
class AnswerPiece:
    """A piece of an answer.

    Attributes:
        kind: `text`, `reasoning` or `tool_call`.
        text: words, or a piece of the JSON with the arguments of a tool call.
        index: number of the tool call within the answer, from 0.
        id: the vendor's id of the tool call.
        name: name of the tool.
    """

    kind: PieceKind
    text: str
    index: int = 0
    id: str = ""
    name: str = ""


class StreamReader(Protocol):
    """A reader of one streamed answer.

    Attributes:
        media_type: content type of a stream; the reader gets no answer of another type.
    """

    media_type: str

    def read(self, data: bytes) -> list[AnswerPiece]:
        """Read the data that arrived, and return the pieces in it.

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
        self._pieces = AnswerPieces()

    def read(self, data: bytes) -> list[AnswerPiece]:
        """Read the events that arrived, and return the pieces in them.

        Raises:
            BrokenStreamError: the data of an event is not a JSON object.
        """
        return [
            piece
            for event in self._events.decode(data)
            if event.data != "[DONE]"
            for piece in self._add_event(_parse_object(event.data))
        ]

    @abstractmethod
    def _add_event(self, event: dict[str, Any]) -> list[AnswerPiece]:
        """Add an event to the answer, and return the pieces in the event."""

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
    """Build a whole answer whose body is an object as JSON."""
    return WholeAnswer(status, json.dumps(document).encode())


class AnswerPieces:
    """Cuts an answer into pieces to show, which joined by kind equal the stored answer.

    Text that begins with thoughts (`<think>…</think>`) is reasoning up to their end.

    >>> pieces = AnswerPieces()
    >>> shown = [pieces.add_text(text) for text in ("<thi", "nk>Hm.</thi", "nk> Tea", " time. ")]
    >>> [(piece.kind, piece.text) for added in shown for piece in added]
    [('reasoning', 'Hm.'), ('text', 'Tea'), ('text', ' time.')]
    """

    def __init__(self) -> None:
        self._thoughts = _ThoughtSplitter()
        self._parts: dict[tuple[PieceKind, int], _TrimmedText] = {}
        self._calls: dict[int, AnswerPiece] = {}
        self._block: int | None = None

    def add_text(self, text: object) -> list[AnswerPiece]:
        """Add a piece of the text, and return the pieces to show now; none for a non-text."""
        if not isinstance(text, str):
            return []
        thoughts, answer = self._thoughts.split(text)
        return [*self.add_reasoning(thoughts), *self._cut(AnswerPiece("text", answer))]

    def add_reasoning(self, text: object, block: int = 0) -> list[AnswerPiece]:
        """Add a piece of the reasoning, and return the pieces to show now; none for a non-text.

        A piece of another `block` than the last begins a new paragraph.
        """
        if not isinstance(text, str) or not text:
            return []
        gap = "" if self._block in (None, block) else "\n\n"
        self._block = block
        return self._cut(AnswerPiece("reasoning", gap + text))

    def add_call(
        self, block: int, arguments: object = "", *, id: object = None, name: object = None
    ) -> list[AnswerPiece]:
        """Add a piece of the JSON with a tool call's arguments; return the pieces to show now.

        Any number that distinguishes the calls is the `block`. The first piece of a call has its
        id and name, and is returned even if it is empty.
        """
        text = arguments if isinstance(arguments, str) else ""
        call = self._calls.get(block)
        if call is not None:
            return self._cut(replace(call, text=text))
        index = len(self._calls)
        call = AnswerPiece("tool_call", "", index, _clean(id), _clean(name))
        self._calls[block] = call
        return self._cut(replace(call, text=text)) or [call]

    def _cut(self, piece: AnswerPiece) -> list[AnswerPiece]:
        part = self._parts.setdefault((piece.kind, piece.index), _TrimmedText())
        text = part.add(piece.text)
        return [replace(piece, text=text)] if text else []


class _TrimmedText:
    """A text that comes in pieces, stripped: white space at its end waits for more text."""

    def __init__(self) -> None:
        self._held = ""
        self._has_begun = False

    def add(self, piece: str) -> str:
        """Add a piece, and return the text that can be shown now."""
        text = self._held + piece
        if not self._has_begun:
            text = text.lstrip()
            self._has_begun = bool(text)
        # Hold back half of a surrogate pair, because some vendors cut there.
        end = len(text) - 1 if text and "\ud800" <= text[-1] <= "\udbff" else len(text)
        visible = text[:end].rstrip()
        self._held = text[len(visible) :]
        return _clean(visible)


class _ThoughtSplitter:
    """Splits a text into the `<think>` part at its beginning, if any, and the answer after it."""

    _OPENING, _CLOSING = "<think>", "</think>"

    def __init__(self) -> None:
        self._held = ""
        self._has_begun = False
        self._in_thoughts = False

    def split(self, piece: str) -> tuple[str, str]:
        """Return the thoughts and the answer in a piece; an unfinished tag is held back."""
        text, self._held = self._held + piece, ""
        if not self._has_begun:
            text = text.lstrip()
            self._in_thoughts = text.startswith(self._OPENING)
            if not self._in_thoughts and self._OPENING.startswith(text):
                self._held = text
                return "", ""
            self._has_begun = True
            text = text.removeprefix(self._OPENING)
        if not self._in_thoughts:
            return "", text
        thoughts, closed, answer = text.partition(self._CLOSING)
        if closed:
            self._in_thoughts = False
            return thoughts, answer
        sizes = range(len(self._CLOSING) - 1, 0, -1)
        size = next((size for size in sizes if text.endswith(self._CLOSING[:size])), 0)
        self._held = text[len(text) - size :]
        return text[: len(text) - size], ""


def _clean(text: object) -> str:
    """Return a text without NUL and with lone surrogates replaced; "" if it is no text."""
    if not isinstance(text, str):
        return ""
    whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return whole.replace("\0", "")
