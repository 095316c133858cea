"""A workflow as SVG: byte-stable, states in words and colour, read by screen readers."""

from collections.abc import Sequence

from toolkit.contract.workflows import Node
from toolkit.display.arrangement import MARGIN, Line, Point
from toolkit.display.boxes import Box, Picture, counted, picture
from toolkit.display.text import fitted
from toolkit.display.theme import escape_xml, framed, ink, number, state_ink

MOST_TOLD = 30  # nodes whose states the label tells one by one
PADDING = 7


def workflow_svg(name: str, nodes: Sequence[Node], *, planned: bool = False, cost: str = "") -> str:
    """Draw a workflow from left to right.

    Args:
        name: what it is called.
        nodes: its nodes as they stand.
        planned: it was not submitted; nodes say what they are given.
        cost: what it cost, in words, for the caption.

    >>> workflow_svg("w", [Node(id="a", capability="x@1")]).startswith("<svg")
    True
    """
    drawn = picture(name, nodes, planned=planned, cost=cost)
    states = (
        ", ".join(f"{n.id} {n.status}" for n in nodes)
        if len(nodes) <= MOST_TOLD and not planned
        else f"{len(nodes)} nodes" + ("" if planned else f", {counted(nodes)}")
    )
    # A caption is as wide as it is; the picture is made to hold it.
    width = max(drawn.width, round(2 * MARGIN + 6.2 * len(drawn.caption)))
    head = (
        '<defs><marker id="$id-arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        f'markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" {ink("head")}/></marker></defs>'
        f'<text x="{MARGIN}" y="{MARGIN + 6}" font-size="12" {ink("note")}>'
        f"{escape_xml(drawn.caption)}</text>"
    )
    edges = "".join(_edge(line) for line in drawn.lines)
    boxes = "".join(_box(box, drawn) for box in drawn.boxes)
    return framed(width, drawn.height, f"Workflow {name}: {states}", name, head + edges + boxes)


def _point(point: Point) -> str:
    return f"{number(point[0])} {number(point[1])}"


def path_of(line: Line) -> str:
    """Write a line as the `d` of a path."""
    return f"M{_point(line.start)}" + "".join(
        f"{'C' if len(step) == 3 else 'L'}{' '.join(map(_point, step))}" for step in line.steps
    )


def _edge(line: Line) -> str:
    return (
        f'<path d="{path_of(line)}" fill="none" {ink("edge")} stroke-width="1.3" '
        'marker-end="url(#$id-arrow)"/>'
    )


def _box(box: Box, drawn: Picture) -> str:
    """Draw a box with its lines; a stack has two more edges behind it."""
    size = drawn.size
    frame = f'width="{size.width}" height="{size.height}" rx="{6 if size.lines > 1 else 4}"'
    colour = state_ink(box.state)
    behind = ""
    if len(box.members) > 1:
        behind = "".join(
            f'<rect x="{number(box.left + by)}" y="{number(box.top + by)}" {frame} {colour}/>'
            for by in (4, 2)
        )
    x, room = number(box.left + size.width / 2), size.width - PADDING
    small = size.font * 0.81
    pitch = size.height / (size.lines + 0.6)
    first = box.top + size.height / 2 - pitch * (len(box.lines) - 1) / 2 + size.font * 0.34
    texts = ""
    for i, line in enumerate(box.lines):
        font = size.font if i == 0 else small
        look = f'font-weight="600" {ink("name")}' if i == 0 else ink("note")
        texts += (
            f'<text x="{x}" y="{number(first + i * pitch)}" text-anchor="middle" '
            f'font-size="{number(font)}" {look}>{escape_xml(fitted(line, room, font))}</text>'
        )
    return (
        f"<g><title>{escape_xml(box.told)}</title>{behind}"
        f'<rect x="{number(box.left)}" y="{number(box.top)}" {frame} {colour} '
        f'stroke-width="1.4"/>{texts}</g>'
    )
