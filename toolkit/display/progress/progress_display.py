"""The display of awaited work, wherever it is shown."""

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

REDRAW_S = 0.1  # drawn no more often than that
TICK_S = 0.25  # seconds are counted that often where nothing else changes


class ProgressDisplay:
    """Shows how far work is, until it is over; then one line is left.

    Args:
        mode: True picks what fits the place: rows in a notebook or a terminal, the last line alone
            in a notebook that nobody looks at, lines elsewhere; "lines" prints a line each change.
        record: the work, as it was when last read.
        is_streamed: whether its text was asked for; of a run, a terminal shows that alone.
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
        # A notebook would show what is on standard error as a fault.
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
        """How often it wants to be drawn where nothing changes; none if it does not."""
        return TICK_S if self._is_drawn else None

    @property
    def needs_past(self) -> bool:
        """True if it has to be told of what has happened before."""
        return self._lines is None

    @property
    def shows_texts(self) -> bool:
        """True if texts are to be told as they are written: there is room, or it was asked."""
        if self._lines is not None:
            return self._is_streamed and self._lines_have_text
        has_room = not self.work.is_single and len(self.work.nodes) <= MAX_ROWS
        return self._is_drawn and (self._is_streamed or has_room)

    def add_event(self, event: Event) -> None:
        """Take in what has happened."""
        if self._lines is not None:
            if event.resource_id != self.work.id and not event.type.startswith("node."):
                return
            if event.terminal:
                self._lines.end_line()
            self._lines.add(event)
        self.work.apply_event(event)
        self._has_changed = True

    def add_record(self, record: BaseModel) -> None:
        """Take in a record as it was read anew: the work, or a workflow of it."""
        self.work.apply_record(record)
        self._has_changed = True

    def add_text(self, node_id: str, piece: str, *, restarts: bool) -> None:
        """Take in a piece of a text that is being written."""
        if self._lines is not None and self.work.is_single:
            self._lines.add_text(piece, restarts=restarts)
        self.work.add_text(node_id or self.work.id, piece, restarts=restarts)
        self._has_changed = True

    def refresh(self) -> None:
        """Draw it, if that is due."""
        if self._screen is None or not self._is_drawn:
            return
        quiet_s = time.monotonic() - self._drawn_at
        if quiet_s >= (REDRAW_S if self._has_changed else TICK_S):
            self._screen.draw(self.work)
            self._drawn_at, self._has_changed = time.monotonic(), False

    def end(self) -> None:
        """Leave one line: what it has come to, or that it goes on."""
        if self._lines is not None:
            self._lines.end_line()
        elif self._screen is not None:
            self._screen.end(format_end(self.work, datetime.now(UTC)))
