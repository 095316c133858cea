"""A workflow as SVG: byte-stable, states in words and colour, read by screen readers."""

from collections.abc import Sequence
from html import escape

from toolkit.contract.workflows import Node
from toolkit.display.graph import layered
from toolkit.display.text import SYMBOLS, short

WIDTH, HEIGHT, GAP_X, GAP_Y, MARGIN = 176, 50, 56, 20, 14
# Fill and stroke of each state; the text says it too, and keeps a contrast above 7.
COLOURS = {
    "pending": ("#f5f6f8", "#8a93a3"),
    "queued": ("#eef2fb", "#5a77b8"),
    "running": ("#fff4d6", "#b07d00"),
    "completed": ("#e3f5e7", "#2c7a3f"),
    "failed": ("#fde5e3", "#b3261e"),
    "cancelled": ("#ececec", "#6b6b6b"),
}
FONT = "system-ui, -apple-system, 'Segoe UI', sans-serif"


def workflow_svg(name: str, nodes: Sequence[Node]) -> str:
    """Draw a workflow from left to right.

    >>> workflow_svg("w", [Node(id="a", capability="x@1")]).startswith("<svg")
    True
    """
    layout = layered({node.id: node.depends_on for node in nodes})
    columns = max((x for x, _ in layout.places.values()), default=0) + 1
    places = [*layout.places.values(), *(p for route in layout.routes.values() for p in route)]
    rows = max((y for _, y in places), default=0) + 1
    width = round(2 * MARGIN + columns * WIDTH + (columns - 1) * GAP_X)
    height = round(2 * MARGIN + rows * HEIGHT + (rows - 1) * GAP_Y)
    edges = "".join(_edge(route) for route in layout.routes.values())
    boxes = "".join(_box(node, layout.places[node.id]) for node in nodes)
    label = escape(f"Workflow {name}: " + ", ".join(f"{n.id} {n.status}" for n in nodes))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" aria-label="{label}" '
        f'font-family="{escape(FONT)}"><title>{escape(name)}</title>'
        '<defs><marker id="toolkit-arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" fill="#6b7280"/></marker></defs>'
        f"{edges}{boxes}</svg>"
    )


def _corner(place: tuple[int, float]) -> tuple[float, float]:
    return MARGIN + place[0] * (WIDTH + GAP_X), MARGIN + place[1] * (HEIGHT + GAP_Y)


def _number(value: float) -> str:
    return f"{value:.1f}".rstrip("0").rstrip(".")


def _edge(route: Sequence[tuple[int, float]]) -> str:
    """Curves through the gaps, and straight lines past the nodes of the layers between."""
    corners = [_corner(place) for place in route]
    x, y = corners[0][0] + WIDTH, corners[0][1] + HEIGHT / 2
    path = f"M{_number(x)} {_number(y)}"
    for i, (left, top) in enumerate(corners[1:], start=1):
        middle, level = left - GAP_X / 2, top + HEIGHT / 2
        path += (
            f"C{_number(middle)} {_number(y)} {_number(middle)} {_number(level)} "
            f"{_number(left)} {_number(level)}"
        )
        y = level
        if i < len(corners) - 1:
            path += f"H{_number(left + WIDTH)}"
    return (
        f'<path d="{path}" fill="none" stroke="#6b7280" stroke-width="1.4" '
        'marker-end="url(#toolkit-arrow)"/>'
    )


def _box(node: Node, place: tuple[int, float]) -> str:
    left, top = _corner(place)
    fill, stroke = COLOURS.get(node.status, COLOURS["pending"])
    state = f"{SYMBOLS.get(node.status, '·')} {node.status}"
    if node.retry_count:
        state += f", {node.retry_count} retries"
    x, middle = _number(left + WIDTH / 2), top + HEIGHT / 2
    return (
        f'<g><rect x="{_number(left)}" y="{_number(top)}" width="{WIDTH}" height="{HEIGHT}" '
        f'rx="8" fill="{fill}" stroke="{stroke}" stroke-width="1.4"/>'
        f'<text x="{x}" y="{_number(middle - 9)}" text-anchor="middle" font-size="13" '
        f'font-weight="600" fill="#111827">{escape(short(node.id, 22))}</text>'
        f'<text x="{x}" y="{_number(middle + 5)}" text-anchor="middle" font-size="10.5" '
        f'fill="#374151">{escape(short(node.capability, 28))}</text>'
        f'<text x="{x}" y="{_number(middle + 18)}" text-anchor="middle" font-size="10.5" '
        f'fill="#374151">{escape(state)}</text></g>'
    )
