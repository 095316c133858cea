"""The places for progress: a notebook with a reader, a batch, a terminal, a log."""

import sys
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, TextIO, TypeAlias

from toolkit.display.progress.html import render_line, render_progress, render_thoughts
from toolkit.display.progress.words import escape_line, format_headline
from toolkit.display.progress.work_progress import WorkProgress

if TYPE_CHECKING:
    from rich.live import Live

FOLD_REDRAW_S = 2.0  # shortest time between two drawings of reasoning that a reader may open
Place: TypeAlias = Literal["notebook", "batch", "terminal", "log"]


class NotebookScreen:
    """Displays in a cell's output, replaced in place: the work, and reasoning above it.

    Reasoning has a display of its own, because a browser closes a fold that is drawn again.
    """

    def __init__(self) -> None:
        self._display: Any = None
        self._reasoning: Any = None
        self._reasoning_html = ""
        self._reasoned_at = 0.0

    def draw(self, work: WorkProgress) -> None:
        """Draw the progress of work as HTML in the output of the cell."""
        self._draw_reasoning(work)
        now = datetime.now(UTC)
        self.show(format_headline(work, now), render_progress(work, now))

    def end(self, work: WorkProgress, line: str) -> None:
        """Replace the drawing with one line, below the reasoning."""
        self._reasoned_at = 0.0
        self._draw_reasoning(work)
        self.show(line, render_line(line))

    def _draw_reasoning(self, work: WorkProgress) -> None:
        html = render_thoughts(work)
        if html == self._reasoning_html or time.monotonic() - self._reasoned_at < FOLD_REDRAW_S:
            return
        if self._reasoning is None:  # the first display is the upper one
            self._reasoning, self._display = self._display, None
        text = "\n\n".join(filter(None, (node.reasoning for node in work.nodes.values())))
        self._reasoning = _display_bundle(self._reasoning, text, html)
        self._reasoning_html, self._reasoned_at = html, time.monotonic()

    def show(self, text: str, html: str) -> None:
        """Replace the display with a new text and HTML."""
        self._display = _display_bundle(self._display, text, html)


class TerminalScreen:
    """Rows in a terminal, drawn in place; the first drawing loads the drawing library."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._live: Live | None = None

    def draw(self, work: WorkProgress) -> None:
        """Draw the progress of work as rows on the terminal, over the earlier drawing."""
        from toolkit.display.progress.terminal import open_live, render_work

        if self._live is None:
            self._live = open_live(self._stream)
        self._live.update(render_work(work, datetime.now(UTC)), refresh=True)

    def end(self, _work: WorkProgress, line: str) -> None:
        """Replace the drawing with one line."""
        if self._live is not None:
            self._live.stop()
        print(escape_line(line), file=self._stream, flush=True)


def find_place() -> Place:
    """Find where progress is shown: a notebook, a batch (a notebook that nobody watches), a
    terminal or a log.
    """
    marimo = sys.modules.get("marimo")
    if marimo is not None and marimo.running_in_notebook():
        return "notebook"  # marimo shows IPython's displays without an IPython shell
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if type(shell).__name__ == "ZMQInteractiveShell":
        return "notebook" if _is_watched(shell) else "batch"
    return "terminal" if sys.stderr.isatty() else "log"


def open_screen(place: Place) -> NotebookScreen | TerminalScreen | None:
    """Open the screen of a place; return None for a log, which is written as lines."""
    if place == "log":
        return None
    # Voilà shows printed lines in another font, so that a batch also uses a display.
    return TerminalScreen(sys.stderr) if place == "terminal" else NotebookScreen()


def _display_bundle(earlier: Any, text: str, html: str) -> Any:
    """Replace an earlier display, or begin a new one; returns the display."""
    from IPython.display import display

    bundle = {"text/plain": text, "text/html": html}
    if earlier is None:
        return display(bundle, raw=True, display_id=True)  # type: ignore[no-untyped-call]
    earlier.update(bundle, raw=True)
    return earlier


def _is_watched(shell: Any) -> bool:
    """Check whether a person can answer the running cell: papermill, nbval and Voilà cannot."""
    parent = shell.kernel.get_parent("shell") if hasattr(shell, "kernel") else {}
    return bool((parent or {}).get("content", {}).get("allow_stdin", True))
