"""A workflow as SVG (byte-stable, states in words and colour), and as mermaid text."""

from collections.abc import Sequence

from toolkit.contract.workflows import Node
from toolkit.display.text import fit_text
from toolkit.display.theme import (
    build_ink_attributes,
    build_state_attributes,
    escape_xml,
    format_coordinate,
    wrap_svg,
)
from toolkit.display.workflow.boxes import (
    MARGIN,
    EdgeLine,
    NodeBox,
    Point,
    WorkflowPicture,
    format_state_counts,
    lay_out_workflow,
)

MAX_LABELLED_NODES = 30  # nodes up to which the label states each node's status
PADDING = 7


def format_workflow_mermaid(nodes: Sequence[Node]) -> str:
    """Format a left-to-right flow chart, with quoted node names and generated ids.

    >>> print(format_workflow_mermaid([Node(id="a", capability="x@1")]))
    flowchart LR
        n0["a<br/>x@1"]
    """
    names = {node.id: f"n{i}" for i, node in enumerate(nodes)}
    lines = [
        f'    {names[node.id]}["{_quote(node.id)}<br/>{_quote(node.label)}"]' for node in nodes
    ]
    lines += [
        f"    {names[upstream]} --> {names[node.id]}"
        for node in nodes
        for upstream in node.depends_on
    ]
    return "\n".join(["flowchart LR", *lines])


def _quote(text: str) -> str:
    """Quote a text with `#…;` entities, because mermaid would interpret quotes and brackets."""
    return "".join(c if c.isalnum() or c in " .@_-" else f"#{ord(c)};" for c in text)


def draw_workflow_svg(
    name: str, nodes: Sequence[Node], *, planned: bool = False, cost: str = ""
) -> str:
    """Draw a workflow from left to right as SVG.

    >>> draw_workflow_svg("w", [Node(id="a", capability="x@1")]).startswith("<svg")
    True
    """
    drawn = lay_out_workflow(name, nodes, planned=planned, cost=cost)
    states = (
        ", ".join(f"{n.id} {n.status}" for n in nodes)
        if len(nodes) <= MAX_LABELLED_NODES and not planned
        else f"{len(nodes)} nodes" + ("" if planned else f", {format_state_counts(nodes)}")
    )
    # The picture is widened to hold the caption.
    width = max(drawn.width, round(2 * MARGIN + 6.2 * len(drawn.caption)))
    head = (
        '<defs><marker id="$id-arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        f'markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" {build_ink_attributes("head")}/>'
        "</marker></defs>"
        f'<text x="{MARGIN}" y="{MARGIN + 6}" font-size="12" {build_ink_attributes("note")}>'
        f"{escape_xml(drawn.caption)}</text>"
    )
    edges = "".join(_draw_edge(line) for line in drawn.lines)
    boxes = "".join(_draw_box(box, drawn) for box in drawn.boxes)
    return wrap_svg(width, drawn.height, f"Workflow {name}: {states}", name, head + edges + boxes)


def _format_point(point: Point) -> str:
    return f"{format_coordinate(point[0])} {format_coordinate(point[1])}"


def _draw_edge(line: EdgeLine) -> str:
    path = f"M{_format_point(line.start)}" + "".join(
        f"{'C' if len(step) == 3 else 'L'}{' '.join(map(_format_point, step))}"
        for step in line.steps
    )
    return (
        f'<path d="{path}" fill="none" {build_ink_attributes("edge")} stroke-width="1.3" '
        'marker-end="url(#$id-arrow)"/>'
    )


def _draw_box(box: NodeBox, drawn: WorkflowPicture) -> str:
    """Draw a box with its lines; a stack has two more edges behind it."""
    size = drawn.size
    frame = f'width="{size.width}" height="{size.height}" rx="{6 if size.lines > 1 else 4}"'
    colour = build_state_attributes(box.state)
    behind = ""
    if len(box.members) > 1:
        behind = "".join(
            f'<rect x="{format_coordinate(box.left + by)}" '
            f'y="{format_coordinate(box.top + by)}" {frame} {colour}/>'
            for by in (4, 2)
        )
    x, room = format_coordinate(box.left + size.width / 2), size.width - PADDING
    small = size.font * 0.81
    pitch = size.height / (size.lines + 0.6)
    first = box.top + size.height / 2 - pitch * (len(box.lines) - 1) / 2 + size.font * 0.34
    texts = ""
    for i, line in enumerate(box.lines):
        font = size.font if i == 0 else small
        look = (
            f'font-weight="600" {build_ink_attributes("name")}'
            if i == 0
            else build_ink_attributes("note")
        )
        texts += (
            f'<text x="{x}" y="{format_coordinate(first + i * pitch)}" text-anchor="middle" '
            f'font-size="{format_coordinate(font)}" {look}>'
            f"{escape_xml(fit_text(line, room, font))}</text>"
        )
    return (
        f"<g><title>{escape_xml(box.description)}</title>{behind}"
        f'<rect x="{format_coordinate(box.left)}" y="{format_coordinate(box.top)}" '
        f"{frame} {colour} "
        f'stroke-width="1.4"/>{texts}</g>'
    )
