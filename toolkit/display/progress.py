"""Progress of awaited work: a display in a notebook, lines in a terminal."""

import sys
import time
from collections.abc import Callable
from html import escape
from typing import Any, Literal, TextIO

from toolkit.contract.events import Event
from toolkit.display.text import format_event

ProgressMode = bool | Literal["lines"]
MAX_LINES = 14
MAX_TEXT_CHARACTERS = 4_000  # of a text that is being written: its end
REDRAW_S = 0.05


class EventProgress:
    """Shows events as they come; a context manager that leaves the last state on the screen.

    Args:
        mode: True picks what fits the place, "lines" prints a line for each change, False shows
            nothing.
        stream: where lines go; by default standard error, or in a notebook, which would show that
            as a fault, standard output.
    """

    def __init__(self, mode: ProgressMode = True, stream: TextIO | None = None) -> None:
        self._lines: list[str] = []
        self._stream = stream or (sys.stdout if _is_in_notebook() else sys.stderr)
        self._seen: dict[str, str] = {}
        self._display: Any = None
        self._text = ""
        self._drawn_at = 0.0
        self._line_is_open = False  # of a terminal: text was written and not ended
        self._show: Callable[[], None] = _do_nothing
        if mode == "lines":
            self._show = self._print_last
        elif mode:
            self._show = self._update_display if _is_in_notebook() else self._print_last

    @property
    def is_silent(self) -> bool:
        """True if nothing is shown."""
        return self._show is _do_nothing

    @property
    def shows_text(self) -> bool:
        """True if a text can be shown as it is written: by a notebook, or a terminal."""
        if self._show == self._update_display:
            return True
        return not self.is_silent and self._stream.isatty()

    def add_text(self, piece: str, *, restarts: bool = False) -> None:
        """Show a piece of a text that is being written; its result shows the whole."""
        self._text = piece if restarts else self._text + piece
        if self._show == self._update_display:
            if time.monotonic() - self._drawn_at >= REDRAW_S:
                self._update_display()
            return
        if restarts:
            self._end_line()
        print(piece, end="", file=self._stream, flush=True)
        self._line_is_open = True

    def end_text(self) -> None:
        """Show the text no longer: it is over, and its result shows it."""
        if self._text and self._show == self._update_display:
            self._text = ""
            self._update_display()
        self._end_line()

    def _end_line(self) -> None:
        if self._line_is_open:
            print(file=self._stream, flush=True)
            self._line_is_open = False

    def add(self, event: Event) -> None:
        """Show an event, unless it says nothing new."""
        line = format_event(event)
        name = str(event.data.get("node_id") or event.resource_id)
        if self._seen.get(name) == line:
            return
        self._seen[name] = line
        self._lines.append(line)
        self._show()

    def _print_last(self) -> None:
        self._end_line()
        print(self._lines[-1], file=self._stream, flush=True)

    def _update_display(self) -> None:
        from IPython.display import HTML, display

        hidden = len(self._lines) - MAX_LINES
        lines = [f"… {hidden} earlier"] if hidden > 0 else []
        text = "\n".join([*lines, *self._lines[-MAX_LINES:]])
        self._drawn_at = time.monotonic()
        written = (
            f'<div style="white-space:pre-wrap">{escape(self._text[-MAX_TEXT_CHARACTERS:])}</div>'
            if self._text
            else ""
        )
        shown = HTML(f'<pre style="line-height:1.3;margin:0">{escape(text)}</pre>{written}')
        if self._display is None:
            self._display = display(shown, display_id=True)
        else:
            self._display.update(shown)


def _do_nothing() -> None:
    return None


def _is_in_notebook() -> bool:
    """Tell whether a kernel with rich output runs this."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return type(shell).__name__ == "ZMQInteractiveShell"
