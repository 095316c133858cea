"""The layout of a live graph, and the widget that draws it."""

from collections.abc import Mapping, Sequence
from typing import Any

import anywidget
import traitlets

from toolkit.display.text import SYMBOLS, format_money, truncate_line
from toolkit.display.workflow.arrangement import MARGIN, BoxSize, arrange_graph
from toolkit.display.workflow.svg import format_path
from toolkit.notebook.widget_base import STATIC

NODE_SIZE = BoxSize(width=180, height=56, gap_x=56, gap_y=20, lines=3, font=13)


class GraphWidget(anywidget.AnyWidget):
    """A graph as SVG in the browser; states change in place.

    Attributes:
        graph: size, nodes with their corners, and edges as paths.
        states: the state of each node, by its id: a word, and a line of text.
        selected: the node that a person chose; empty for none.
        label: a description of the graph, for screen readers.
    """

    _esm = STATIC / "graph.js"
    _css = STATIC / "graph.css"
    graph = traitlets.Dict().tag(sync=True)
    states = traitlets.Dict().tag(sync=True)
    selected = traitlets.Unicode("").tag(sync=True)
    label = traitlets.Unicode("").tag(sync=True)

    def draw(self, titles: Mapping[str, str], depends_on: Mapping[str, Sequence[str]]) -> None:
        """Lay out a graph: the title of each node, shown below its id, and its dependencies."""
        self.graph = layout_graph(titles, depends_on)
        if self.selected not in titles:
            self.selected = ""


def layout_graph(
    titles: Mapping[str, str], depends_on: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    """Lay out a graph as the view draws it.

    >>> layout_graph({"a": "x@1"}, {"a": []})["nodes"]
    [{'id': 'a', 'title': 'a', 'below': 'x@1', 'x': 14, 'y': 14.0}]
    """
    arrangement = arrange_graph(depends_on, NODE_SIZE)
    return {
        "width": arrangement.right + MARGIN,
        "height": arrangement.bottom + MARGIN,
        "box": [NODE_SIZE.width, NODE_SIZE.height],
        "nodes": [
            {
                "id": node,
                "title": truncate_line(node, 22),
                "below": truncate_line(title, 28),
                "x": arrangement.corners[node][0],
                "y": arrangement.corners[node][1],
            }
            for node, title in titles.items()
        ],
        "edges": [
            {"from": line.upstream, "to": line.node, "path": format_path(line)}
            for line in arrangement.lines
        ],
    }


def describe_state(status: str, fields: Mapping[str, object]) -> dict[str, str]:
    """Return the state of a node as the view shows it, from a record's or an event's fields.

    >>> describe_state("completed", {"cost_usd": 0.5})
    {'status': 'completed', 'line': '✓ completed, $0.5'}
    """
    line = f"{SYMBOLS.get(status, '·')} {status}"
    if status in ("queued", "running") and fields.get("status_detail"):
        line += f", {str(fields['status_detail']).replace('_', ' ')}"
    elif status == "running" and fields.get("provider"):
        line += f", {fields['provider']}"
    elif status == "completed":
        cost = fields.get("cost_usd")
        cached = fields.get("cached_from")
        line += (
            ", cached" if cached else f", {format_money(cost)}" if isinstance(cost, float) else ""
        )
    elif status in ("failed", "cancelled"):
        error = fields.get("error")
        code = error.get("code") if isinstance(error, Mapping) else getattr(error, "code", None)
        line += f", {code}" if code and code != "CANCELLED" else ""
    return {"status": status, "line": truncate_line(line, 34)}
