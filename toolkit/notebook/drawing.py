"""Where a live graph's nodes stand and how its edges run, and the view that draws them."""

from collections.abc import Mapping, Sequence
from typing import Any

import anywidget
import traitlets

from toolkit.display.graph import layered
from toolkit.display.text import SYMBOLS, money, short
from toolkit.notebook.panel import STATIC

WIDTH, HEIGHT, GAP_X, GAP_Y, MARGIN = 180, 56, 56, 20, 14


class GraphView(anywidget.AnyWidget):
    """A graph as SVG in the browser; states change in place.

    Attributes:
        graph: size, nodes with their corners, and edges as paths.
        states: state of each node, by its id: its word, and the line that tells it.
        selected: the node that a person chose; empty for none.
        label: what the graph is, for screen readers.
    """

    _esm = STATIC / "graph.js"
    _css = STATIC / "graph.css"
    graph = traitlets.Dict().tag(sync=True)
    states = traitlets.Dict().tag(sync=True)
    selected = traitlets.Unicode("").tag(sync=True)
    label = traitlets.Unicode("").tag(sync=True)

    def draw(self, titles: Mapping[str, str], depends_on: Mapping[str, Sequence[str]]) -> None:
        """Lay out a graph: what each node is called below its id, and what it depends on."""
        self.graph = shape(titles, depends_on)
        if self.selected not in titles:
            self.selected = ""


def shape(titles: Mapping[str, str], depends_on: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """A graph as the view draws it.

    >>> shape({"a": "x@1"}, {"a": []})["nodes"]
    [{'id': 'a', 'title': 'a', 'below': 'x@1', 'x': 14.0, 'y': 14.0}]
    """
    layout = layered(depends_on)
    corners = {node: _corner(place) for node, place in layout.places.items()}
    all_corners = [*corners.values(), *(_corner(p) for r in layout.routes.values() for p in r)]
    return {
        "width": max((x for x, _ in all_corners), default=0.0) + WIDTH + MARGIN,
        "height": max((y for _, y in all_corners), default=0.0) + HEIGHT + MARGIN,
        "box": [WIDTH, HEIGHT],
        "nodes": [
            {
                "id": node,
                "title": short(node, 22),
                "below": short(titles[node], 28),
                "x": corners[node][0],
                "y": corners[node][1],
            }
            for node in titles
        ],
        "edges": [
            {"from": edge[0], "to": edge[1], "path": _path([_corner(place) for place in route])}
            for edge, route in layout.routes.items()
        ],
    }


def _corner(place: tuple[int, float]) -> tuple[float, float]:
    return float(MARGIN + place[0] * (WIDTH + GAP_X)), MARGIN + place[1] * (HEIGHT + GAP_Y)


def _path(corners: Sequence[tuple[float, float]]) -> str:
    """Curves through the gaps, straight past the nodes of the layers between."""
    y = corners[0][1] + HEIGHT / 2
    path = f"M{corners[0][0] + WIDTH:g} {y:g}"
    for i, (left, top) in enumerate(corners[1:], start=1):
        bend, level = left - GAP_X / 2, top + HEIGHT / 2
        path += f"C{bend:g} {y:g} {bend:g} {level:g} {left:g} {level:g}"
        y = level
        if i < len(corners) - 1:
            path += f"H{left + WIDTH:g}"
    return path


def state(status: str, fields: Mapping[str, object]) -> dict[str, str]:
    """The state of a node as the view shows it, from a record's or an event's fields.

    >>> state("completed", {"cost_usd": 0.5})
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
        line += ", cached" if cached else f", {money(cost)}" if isinstance(cost, float) else ""
    elif status in ("failed", "cancelled"):
        error = fields.get("error")
        code = error.get("code") if isinstance(error, Mapping) else getattr(error, "code", None)
        line += f", {code}" if code and code != "CANCELLED" else ""
    return {"status": status, "line": short(line, 34)}
