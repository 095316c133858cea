"""The places for progress: a notebook with a reader, a batch, a terminal, a log."""

import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, TextIO, TypeAlias

from toolkit.display.progress.html import render_line, render_progress
from toolkit.display.progress.words import escape_line, format_headline
from toolkit.display.progress.work_progress import WorkProgress

if TYPE_CHECKING:
    from rich.live import Live

Place: TypeAlias = Literal["notebook", "batch", "terminal", "log"]


class NotebookScreen:
    """A display in a cell's output, replaced in place."""

    def __init__(self) -> None:
        self._display: Any = None

    def draw(self, work: WorkProgress) -> None:
        """Draw the progress of work."""
        now = datetime.now(UTC)
        self.show(format_headline(work, now), render_progress(work, now))

    def end(self, line: str) -> None:
        """Replace the drawing with one line."""
        self.show(line, render_line(line))

    def show(self, text: str, html: str) -> None:
        """Replace the display with a new text and HTML."""
        from IPython.display import display

        bundle = {"text/plain": text, "text/html": html}
        if self._display is None:
            self._display = display(bundle, raw=True, display_id=True)  # type: ignore[no-untyped-call]
        else:
            self._display.update(bundle, raw=True)


class TerminalScreen:
    """Rows in a terminal, drawn in place; the first drawing loads the drawing library."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._live: Live | None = None

    def draw(self, work: WorkProgress) -> None:
        """Draw the progress of work."""
        from toolkit.display.progress.terminal import open_live, render_work

        if self._live is None:
            self._live = open_live(self._stream)
        self._live.update(render_work(work, datetime.now(UTC)), refresh=True)

    def end(self, line: str) -> None:
        """Replace the drawing with one line."""
        if self._live is not None:
            self._live.stop()
        print(escape_line(line), file=self._stream, flush=True)


def find_place() -> Place:
    """Find the place for progress."""
    marimo = sys.modules.get("marimo")
    if marimo is not None and marimo.running_in_notebook():
        return "notebook"  # marimo shows IPython's displays without an IPython shell
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if type(shell).__name__ == "ZMQInteractiveShell":
        return "notebook" if _is_watched(shell) else "batch"
    return "terminal" if sys.stderr.isatty() else "log"


def open_screen(place: Place) -> NotebookScreen | TerminalScreen | None:
    """Open the screen of a place; a log has no screen, because it is written as lines."""
    if place == "log":
        return None
    # Voilà shows printed lines in another font, so that a batch also uses a display.
    return TerminalScreen(sys.stderr) if place == "terminal" else NotebookScreen()


def _is_watched(shell: Any) -> bool:
    """Check whether a person can answer the running cell: papermill, nbval and Voilà cannot."""
    parent = shell.kernel.get_parent("shell") if hasattr(shell, "kernel") else {}
    return bool((parent or {}).get("content", {}).get("allow_stdin", True))
