"""The layout of a live graph, and the widget that draws it."""

from collections.abc import Mapping, Sequence
from typing import Any

import anywidget
import traitlets

from toolkit.contract.money import format_usd
from toolkit.display.text import format_status, truncate_line
from toolkit.display.workflow.boxes import MARGIN, BoxSize
from toolkit.display.workflow.groups import fold_graph, group_nodes
from toolkit.display.workflow.layers import lay_out_graph
from toolkit.notebook.widget_base import STATIC

NODE_SIZE = BoxSize(width=180, height=56, gap_x=56, gap_y=20, lines=3, font=13)
# Parts of one script, because there is no build step and a front end takes a single text.
SCRIPTS = ("geometry", "viewport", "drawing", "graph")
MAX_CHANGED_STATES = 64  # changed states to send separately before all states are sent again


def load_script() -> str:
    """Load the script that draws graphs in a browser."""
    parts = (STATIC / "graph" / f"{name}.js" for name in SCRIPTS)
    return "\n".join(part.read_text(encoding="utf-8") for part in parts)


class GraphWidget(anywidget.AnyWidget):
    """A graph as SVG in the browser; states change in place.

    Attributes:
        graph: nodes and edges on a grid, and groups of nodes, each drawn as one box until opened.
        states: state of each node by id, as a word and a line of text. `changed_states` sends the
            differences; when there are many, `drawn_states` sends all states again.
        selected: id of the node that a person chose; empty without a choice.
        label: description of the graph for screen readers.
    """

    _esm = load_script()
    _css = STATIC / "graph" / "graph.css"
    graph = traitlets.Dict().tag(sync=True)
    states = traitlets.Dict()
    drawn_states = traitlets.Dict().tag(sync=True)
    changed_states = traitlets.Dict().tag(sync=True)
    selected = traitlets.Unicode("").tag(sync=True)
    label = traitlets.Unicode("").tag(sync=True)

    def draw(self, titles: Mapping[str, str], depends_on: Mapping[str, Sequence[str]]) -> None:
        """Lay out a graph from the title of each node, shown below its id, and its dependencies."""
        self.graph = layout_graph(titles, depends_on)
        if self.selected not in titles:
            self.selected = ""

    @traitlets.observe("states")
    def _send_states(self, _: object) -> None:
        """Send the states that differ from those at the last complete sending."""
        drawn = self.drawn_states
        changed = {}
        for node, state in self.states.items():
            pair = [state["status"], state["line"]]
            if drawn.get(node) != pair:
                changed[node] = pair
        if len(changed) <= MAX_CHANGED_STATES and len(drawn) == len(self.states):
            self.changed_states = changed
            return
        with self.hold_sync():
            self.drawn_states = {**drawn, **changed} if len(drawn) == len(self.states) else changed
            self.changed_states = {}


def layout_graph(
    titles: Mapping[str, str], depends_on: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    """Lay out a graph as the view draws it: places are a layer from the left, and a row.

    >>> layout_graph({"a": "x@1"}, {"a": []})["nodes"]
    [{'id': 'a', 'title': 'a', 'below': 'x@1', 'at': (0, 0.0)}]
    """
    groups = group_nodes(titles, depends_on)
    layout = lay_out_graph(fold_graph(depends_on, groups))
    number = {node: i for i, node in enumerate(titles)}
    keys = {node: f"n{i}" for node, i in number.items()}
    keys |= {group.members[0]: f"g{i}" for i, group in enumerate(groups)}
    grouped = {node for group in groups for node in group.members}
    nodes = [
        {"id": node, "title": truncate_line(node, 22), "below": truncate_line(title, 28)}
        | ({} if node in grouped else {"at": layout.places[node]})
        for node, title in titles.items()
    ]
    return {
        "box": [NODE_SIZE.width, NODE_SIZE.height],
        "gap": [NODE_SIZE.gap_x, NODE_SIZE.gap_y],
        "margin": MARGIN,
        "nodes": nodes,
        "groups": [
            {
                "id": group.members[0],
                "title": f"{truncate_line(group.members[0], 12)} and {len(group.members) - 1} more",
                "below": nodes[number[group.members[0]]]["below"],
                "at": layout.places[group.members[0]],
                "members": [number[node] for node in group.members],
                "siblings": group.are_siblings,
            }
            for group in groups
        ],
        "edges": [
            {"from": keys[upstream], "to": keys[node], "route": list(route)}
            for (upstream, node), route in layout.routes.items()
        ],
        "links": [
            [number[upstream], i]
            for node, i in number.items()
            for upstream in dict.fromkeys(depends_on[node])
            if groups
        ],
    }


def describe_state(status: str, fields: Mapping[str, object]) -> dict[str, str]:
    """Return the state of a node as the view shows it, from a record's or an event's fields.

    >>> describe_state("completed", {"cost_usd": 0.5})
    {'status': 'completed', 'line': '✓ completed, $0.5'}
    """
    line = format_status(status)
    if status in ("queued", "running") and fields.get("status_detail"):
        line += f", {str(fields['status_detail']).replace('_', ' ')}"
    elif status == "running" and fields.get("provider"):
        line += f", {fields['provider']}"
    elif status == "completed":
        cost = fields.get("cost_usd")
        cached = fields.get("cached_from")
        line += ", cached" if cached else f", {format_usd(cost)}" if isinstance(cost, float) else ""
    elif status in ("failed", "cancelled"):
        error = fields.get("error")
        code = error.get("code") if isinstance(error, Mapping) else getattr(error, "code", None)
        line += f", {code}" if code and code != "CANCELLED" else ""
    return {"status": status, "line": truncate_line(line, 34)}
