"""The display of awaited work, in any place; in a log, a line for each change."""

import sys
import time
from datetime import UTC, datetime
from typing import TextIO

from pydantic import BaseModel

from toolkit.contract.events import PIECE_KINDS, Event, PieceKind, TextPiece
from toolkit.display.progress import ProgressMode
from toolkit.display.progress.places import find_place, open_screen
from toolkit.display.progress.words import MAX_ROWS, escape_line, format_end
from toolkit.display.progress.work_progress import WorkProgress
from toolkit.display.text import format_event

REDRAW_S = 0.1  # shortest time between two drawings
TICK_S = 0.25  # interval for counting seconds while nothing else changes


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

        The event that the work is running can arrive after its first text. Such a line waits, so
        that it does not cut the text in two.
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


class ProgressDisplay:
    """Show the progress of work until its end; then leave one line.

    Args:
        mode: True fits the place: rows in a notebook or a terminal, only the last line in a
            notebook without a reader, otherwise lines. "lines" prints a line for each change.
        is_streamed: whether the caller asked for the text; a terminal shows only the text of a run.
    """

    def __init__(
        self,
        mode: ProgressMode,
        record: BaseModel,
        *,
        is_streamed: bool = False,
    ) -> None:
        self.work = WorkProgress(record)
        place = find_place()
        # A notebook would show output on standard error as a fault.
        stream = sys.stdout if place in ("notebook", "batch") else sys.stderr
        writes_lines = mode == "lines" or place == "log"
        if place == "terminal" and is_streamed and self.work.is_single:
            writes_lines = True
        self._lines = EventLines(stream) if writes_lines else None
        self._screen = None if writes_lines else open_screen(place)
        self._lines_have_text = writes_lines and stream.isatty()
        self._is_drawn = place in ("notebook", "terminal") and not writes_lines
        self._is_streamed = is_streamed
        self._drawn_at = time.monotonic()
        self._has_changed = False

    @property
    def tick_s(self) -> float | None:
        """Seconds between drawings while nothing changes; None if the display does not redraw."""
        return TICK_S if self._is_drawn else None

    @property
    def needs_past(self) -> bool:
        """True if the display needs all past events; lines show only new events."""
        return self._lines is None

    @property
    def piece_kinds(self) -> tuple[PieceKind, ...]:
        """The kinds of pieces that the display shows while answers are written.

        Lines show the text if the caller asked for a stream on a terminal. A drawing shows all
        kinds if the caller asked, or if it has room for the rows.
        """
        if self._lines is not None:
            return ("text",) if self._is_streamed and self._lines_have_text else ()
        has_room = not self.work.is_single and len(self.work.nodes) <= MAX_ROWS
        return PIECE_KINDS if self._is_drawn and (self._is_streamed or has_room) else ()

    def add_event(self, event: Event) -> None:
        """Apply an event to the known progress, and print its line if lines are shown."""
        if self._lines is not None:
            if event.resource_id != self.work.id and not event.type.startswith("node."):
                return
            if event.terminal:
                self._lines.end_line()
            self._lines.add(event)
        self.work.apply_event(event)
        self._has_changed = True

    def add_record(self, record: BaseModel) -> None:
        """Apply a newly read record, of the work or of a workflow of the work."""
        self.work.apply_record(record)
        self._has_changed = True

    def add_piece(self, piece: TextPiece) -> None:
        """Add a piece of an answer that is being written."""
        if self._lines is not None and self.work.is_single:
            self._lines.add_text(piece, restarts=piece.restarts)
        self.work.add_piece(piece)
        self._has_changed = True

    def refresh(self) -> None:
        """Draw the work if a drawing is due."""
        if self._screen is None or not self._is_drawn:
            return
        quiet_s = time.monotonic() - self._drawn_at
        if quiet_s >= (REDRAW_S if self._has_changed else TICK_S):
            self._screen.draw(self.work)
            self._drawn_at, self._has_changed = time.monotonic(), False

    def end(self) -> None:
        """Replace the drawing, if any, with one line: the outcome, or that the work goes on."""
        if self._lines is not None:
            self._lines.end_line()
        elif self._screen is not None:
            self._screen.end(self.work, format_end(self.work, datetime.now(UTC)))
