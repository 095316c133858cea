"""The places where progress is shown: a notebook somebody looks at, a batch, a terminal, a log."""

import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, Protocol, TextIO, TypeAlias

from toolkit.display.progress.html import render_line, render_progress
from toolkit.display.progress.words import escape_line, format_headline
from toolkit.display.progress.work_progress import WorkProgress

if TYPE_CHECKING:
    from toolkit.display.progress.terminal import TerminalRows

Place: TypeAlias = Literal["notebook", "batch", "terminal", "log"]


class Screen(Protocol):
    """A screen on which progress is drawn, and then one line is left."""

    def draw(self, work: WorkProgress) -> None:
        """Draw how far work is."""

    def end(self, line: str) -> None:
        """Leave one line in place of what was drawn."""


class NotebookScreen:
    """A display in a cell's output, replaced in place."""

    def __init__(self) -> None:
        self._display: Any = None

    def draw(self, work: WorkProgress) -> None:
        """Draw how far work is."""
        now = datetime.now(UTC)
        self.show(format_headline(work, now), render_progress(work, now))

    def end(self, line: str) -> None:
        """Leave one line in place of what was drawn."""
        self.show(line, render_line(line))

    def show(self, text: str, html: str) -> None:
        """Show something instead, as text and as HTML."""
        from IPython.display import display

        shown = {"text/plain": text, "text/html": html}
        if self._display is None:
            self._display = display(shown, raw=True, display_id=True)  # type: ignore[no-untyped-call]
        else:
            self._display.update(shown, raw=True)


class TerminalScreen:
    """Rows in a terminal, written over; what draws them is loaded for the first drawing.

    Args:
        stream: of the terminal.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._rows: TerminalRows | None = None

    def draw(self, work: WorkProgress) -> None:
        """Draw how far work is."""
        if self._rows is None:
            from toolkit.display.progress.terminal import TerminalRows

            self._rows = TerminalRows(self._stream)
        self._rows.draw(work)

    def end(self, line: str) -> None:
        """Leave one line in place of what was drawn."""
        if self._rows is not None:
            self._rows.remove()
        print(escape_line(line), file=self._stream, flush=True)


class BatchScreen:
    """The output of a cell that nobody looks at while it runs: its last line alone."""

    def draw(self, work: WorkProgress) -> None:
        """Draw nothing."""

    def end(self, line: str) -> None:
        """Show the line, which Voilà has in its page's own font."""
        NotebookScreen().end(line)


def find_place() -> Place:
    """Find where progress is shown."""
    marimo = sys.modules.get("marimo")
    if marimo is not None and marimo.running_in_notebook():
        return "notebook"  # IPython's displays are shown there, though no shell of it runs
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if type(shell).__name__ == "ZMQInteractiveShell":
        return "notebook" if _is_watched(shell) else "batch"
    return "terminal" if sys.stderr.isatty() else "log"


def open_screen(place: Place) -> Screen | None:
    """Open the screen of a place; a log has none, and is written in lines."""
    match place:
        case "notebook":
            return NotebookScreen()
        case "batch":
            return BatchScreen()
        case "terminal":
            return TerminalScreen(sys.stderr)
        case "log":
            return None


def _is_watched(shell: Any) -> bool:
    """Tell whether a person can answer the cell that runs: papermill, nbval and Voilà cannot."""
    parent = shell.kernel.get_parent("shell") if hasattr(shell, "kernel") else {}
    return bool((parent or {}).get("content", {}).get("allow_stdin", True))
