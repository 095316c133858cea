"""Server-sent events: the format of the streams of vendors and of the service."""

import codecs
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServerSentEvent:
    """One event: its type, empty without a type, and its data."""

    type: str
    data: str


class EventDecoder:
    r"""A decoder of server-sent events in pieces (HTML standard, "Server-sent events").

    >>> decoder = EventDecoder()
    >>> decoder.decode(b"event: ping\ndata: on")
    []
    >>> decoder.decode(b"e\n\n")
    [ServerSentEvent(type='ping', data='one')]
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._rest = ""
        self._type = ""
        self._data: list[str] = []

    def decode(self, data: bytes) -> list[ServerSentEvent]:
        """Return the events that this piece completes."""
        text = self._rest + self._decoder.decode(data)
        # A line may end in CR LF, whose second half comes later.
        tail = "\r" if text.endswith("\r") else ""
        text = text.removesuffix(tail) if tail else text
        lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        self._rest = lines.pop() + tail
        events = (self._take_line(line) for line in lines)
        return [event for event in events if event is not None]

    def _take_line(self, line: str) -> ServerSentEvent | None:
        if not line:
            event = ServerSentEvent(self._type, "\n".join(self._data)) if self._data else None
            self._type, self._data = "", []
            return event
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._type = value
        return None
