"""The display of awaited work, in any place."""

import sys
import time
from datetime import UTC, datetime

from pydantic import BaseModel

from toolkit.contract.events import Event
from toolkit.display.progress import ProgressMode
from toolkit.display.progress.event_lines import EventLines
from toolkit.display.progress.places import find_place, open_screen
from toolkit.display.progress.words import MAX_ROWS, format_end
from toolkit.display.progress.work_progress import WorkProgress

REDRAW_S = 0.1  # shortest time between two drawings
TICK_S = 0.25  # interval for counting seconds while nothing else changes


class ProgressDisplay:
    """Show the progress of work until its end; then leave one line.

    Args:
        mode: True fits the place: rows in a notebook or a terminal, only the last line in a
            notebook without a reader, otherwise lines. "lines" prints a line for each change.
        record: record of the work, as last read.
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
        """True if the display needs past events as well."""
        return self._lines is None

    @property
    def shows_texts(self) -> bool:
        """Whether the display shows texts while they are written.

        Lines show them if the caller asked for a stream on a terminal. A drawing shows them if the
        caller asked, or if it has room for the rows.
        """
        if self._lines is not None:
            return self._is_streamed and self._lines_have_text
        has_room = not self.work.is_single and len(self.work.nodes) <= MAX_ROWS
        return self._is_drawn and (self._is_streamed or has_room)

    def add_event(self, event: Event) -> None:
        """Apply an event."""
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

    def add_text(self, node_id: str, piece: str, *, restarts: bool) -> None:
        """Add a piece of a text that is being written."""
        if self._lines is not None and self.work.is_single:
            self._lines.add_text(piece, restarts=restarts)
        self.work.add_text(node_id or self.work.id, piece, restarts=restarts)
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
        """Leave one line: the outcome, or that the work goes on."""
        if self._lines is not None:
            self._lines.end_line()
        elif self._screen is not None:
            self._screen.end(format_end(self.work, datetime.now(UTC)))
