"""Progress of awaited work: a display in a notebook, lines in a terminal."""

import sys
from collections.abc import Callable
from html import escape
from typing import Any, Literal, TextIO

from toolkit.contract.events import Event
from toolkit.display.text import format_event

ProgressMode = bool | Literal["lines"]
MAX_LINES = 14


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
        self._show: Callable[[], None] = _do_nothing
        if mode == "lines":
            self._show = self._print_last
        elif mode:
            self._show = self._update_display if _is_in_notebook() else self._print_last

    @property
    def is_silent(self) -> bool:
        """True if nothing is shown."""
        return self._show is _do_nothing

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
        print(self._lines[-1], file=self._stream, flush=True)

    def _update_display(self) -> None:
        from IPython.display import HTML, display

        hidden = len(self._lines) - MAX_LINES
        lines = [f"… {hidden} earlier"] if hidden > 0 else []
        text = "\n".join([*lines, *self._lines[-MAX_LINES:]])
        shown = HTML(f'<pre style="line-height:1.3;margin:0">{escape(text)}</pre>')
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
