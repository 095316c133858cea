"""Progress as lines: a line for each change, and texts as they are written."""

from typing import TextIO

from toolkit.contract.events import Event
from toolkit.display.progress.words import escape_line
from toolkit.display.text import format_event


class EventLines:
    """Print a line for each event with news."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._seen: dict[str, str] = {}  # the last line of each node
        self._is_open = False  # text was written, and its line has not ended
        self._held: list[str] = []  # lines that wait until the open line ends

    def add_text(self, piece: str, *, restarts: bool) -> None:
        """Print a piece of a text that is being written."""
        if restarts:
            self.end_line()
        # A model's text must not control the terminal.
        lines = [escape_line(line) for line in piece.replace("\t", "    ").split("\n")]
        print("\n".join(lines), end="", file=self._stream, flush=True)
        self._is_open = True

    def add(self, event: Event) -> None:
        """Print the line of an event, unless it repeats the node's last line.

        The event that work runs can arrive after its first text. Such a line waits, so that it does
        not cut the text in two.
        """
        line = format_event(event)
        name = str(event.data.get("node_id") or event.resource_id)
        if self._seen.get(name) == line:
            return
        self._seen[name] = line
        if self._is_open and event.type.endswith(".running"):
            self._held.append(line)
            return
        self.end_line()
        print(escape_line(line), file=self._stream, flush=True)

    def end_line(self) -> None:
        """End the line of a text, if any, and print the lines that waited for its end."""
        if not self._is_open:
            return
        for line in ("", *self._held):
            print(escape_line(line), file=self._stream, flush=True)
        self._held.clear()
        self._is_open = False
