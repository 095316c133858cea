"""The picture next to a live graph, for readers of the notebook without its kernel."""

import base64
import re
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from toolkit.contract.workflows import Node, WorkflowRecord
from toolkit.display.records.html import IGNORED_BY_MATHJAX
from toolkit.display.workflow.boxes import format_workflow_cost
from toolkit.display.workflow.svg import draw_workflow_svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MIN_PAUSE_S, MAX_PAUSE_S = 5.0, 30.0  # seconds between two pictures of a running workflow
MAX_SHARE = 0.01  # share of a core that drawing the pictures may use
# Hides the picture next to a live widget, and JupyterLab's message if there is no widget.
STYLE = (
    "body:has(.{live}) .{twin}{{display:none}}"
    ".jp-OutputArea-child:has(+.jp-OutputArea-child .{twin})"
    " .jp-OutputArea-output:not(:has(*)){{display:none}}"
)


class GraphTwin:
    """A separate output below a live graph: the picture, as SVG and as PNG.

    The output is hidden while the graph is alive. It follows the graph, so that a saved notebook
    holds the current state of the workflow. The widget's own output never changes, because a
    change would draw the widget again.

    Args:
        read: function that returns the current workflow and its nodes, or None before they exist.
    """

    def __init__(
        self, id: str, read: Callable[[], tuple[WorkflowRecord, Sequence[Node]] | None]
    ) -> None:
        name = re.sub(r"[^\w-]", "-", id, flags=re.ASCII)  # the name is part of a style sheet
        self.live_class = f"toolkit-live-{name}"
        self._id = f"toolkit-twin-{name}"
        self._read = read
        self._is_shown = False
        self._is_stale = False
        self._due_at = 0.0

    def show(self, *, is_over: bool) -> None:
        """Display the picture; running work gets its PNG later, because that takes a moment."""
        from IPython.display import display

        display(self._draw(load_plot() if is_over else None), raw=True, display_id=self._id)
        self._is_shown, self._is_stale = True, not is_over

    def note_change(self) -> None:
        """Mark the picture as out of date."""
        self._is_stale = True

    def update(self, *, is_over: bool) -> None:
        """Draw an outdated picture again: at intervals while the work runs, at once at its end."""
        is_early = time.monotonic() < self._due_at and not is_over
        if not self._is_shown or not self._is_stale or is_early:
            return
        from IPython.display import update_display

        plot = load_plot()  # the first import is slow and must not count as drawing time
        self._is_stale = False
        began = time.thread_time()
        update_display(self._draw(plot), raw=True, display_id=self._id)
        pause_s = (time.thread_time() - began) / MAX_SHARE
        self._due_at = time.monotonic() + min(MAX_PAUSE_S, max(MIN_PAUSE_S, pause_s))

    def _draw(self, plot: "Callable[..., Figure] | None") -> dict[str, str]:
        """Draw the workflow as SVG, and as PNG if a plot function is given, in a MIME bundle."""
        snapshot = self._read()
        if snapshot is None:
            return {"text/html": f'<div class="{self._id}"></div>'}
        record, nodes = snapshot
        cost = format_workflow_cost(record)
        hides = STYLE.format(live=self.live_class, twin=self._id)
        picture = draw_workflow_svg(record.name, nodes, cost=cost)
        bundle = {
            "text/html": f'<style>{hides}</style><div class="{self._id} {IGNORED_BY_MATHJAX}" '
            f'style="overflow-x:auto">{picture}</div>'
        }
        if plot is not None:
            png: bytes = plot(record.name, nodes, cost=cost)._repr_png_()  # type: ignore[attr-defined]
            bundle["image/png"] = base64.b64encode(png).decode("ascii")
        return bundle


def load_plot() -> "Callable[..., Figure]":
    """Load the function that plots a workflow; importing matplotlib takes a while."""
    from toolkit.display.plots import draw_workflow_figure

    return draw_workflow_figure
