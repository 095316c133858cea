"""A workflow's nodes as boxes and lines in pixels, for SVG, matplotlib and widgets."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from toolkit.contract.base import to_canonical_json
from toolkit.contract.money import format_usd, sum_usd
from toolkit.contract.workflows import FUNCTION_CAPABILITY, Node, WorkflowRecord
from toolkit.display.text import (
    SYMBOLS,
    format_count,
    format_seconds,
    format_spending,
    format_status,
    format_total,
    truncate_line,
)
from toolkit.display.workflow.groups import group_nodes
from toolkit.display.workflow.layers import lay_out_graph

MARGIN = 14
# A path in pixels: its start, then corners of a Bézier curve (3) or of a line (1).
Point = tuple[float, float]
CAPTION_HEIGHT = 22
# The state of a stack is the first of these states among its nodes.
STATE_PRIORITY = ("failed", "running", "queued", "pending", "cancelled", "completed")
PLANNED_STATE = "planned"  # the state of nodes that were not submitted
MAX_ROOMY_BOXES, MAX_SMALL_BOXES = 40, 120  # boxes


@dataclass(frozen=True, slots=True)
class BoxSize:
    """The size of boxes, and the number of text lines in a box."""

    width: int
    height: int
    gap_x: int
    gap_y: int
    lines: int
    font: float


@dataclass(frozen=True, slots=True)
class EdgeLine:
    """An edge as drawn, from the right of one box to the left of another."""

    upstream: str
    node: str
    start: Point
    steps: tuple[tuple[Point, ...], ...]


@dataclass(frozen=True, slots=True)
class Arrangement:
    """Boxes and lines of one size, from left to right.

    Attributes:
        corners: the upper left corner of each node's box.
        right, bottom: outer limits in pixels; a line may be below all boxes.
    """

    corners: dict[str, Point]
    lines: tuple[EdgeLine, ...]
    right: float
    bottom: float


def arrange_graph(
    depends_on: Mapping[str, Sequence[str]], size: BoxSize, top: float = 0
) -> Arrangement:
    """Lay a graph out in layers, below `top`.

    >>> arrange_graph({"a": []}, BoxSize(10, 5, 4, 2, 1, 9)).corners
    {'a': (14, 14.0)}
    """
    layout = lay_out_graph(depends_on)

    def corner(place: tuple[int, float]) -> Point:
        across, down = size.width + size.gap_x, size.height + size.gap_y
        return MARGIN + place[0] * across, MARGIN + top + place[1] * down

    corners = {node: corner(place) for node, place in layout.places.items()}
    routes = {edge: [corner(p) for p in route] for edge, route in layout.routes.items()}
    levels = [level for route in routes.values() for _, level in route]
    lefts = (left for left, _ in corners.values())
    tops = [level for _, level in corners.values()] + levels
    return Arrangement(
        corners,
        tuple(_route_line(edge, route, size) for edge, route in routes.items()),
        max(lefts, default=0) + size.width,
        max(tops, default=0) + size.height,
    )


def _route_line(edge: tuple[str, str], corners: Sequence[Point], size: BoxSize) -> EdgeLine:
    """Route an edge: curves through the gaps, straight lines past nodes of intermediate layers."""
    half = size.height / 2
    start = (corners[0][0] + size.width, corners[0][1] + half)
    level = start[1]
    steps: list[tuple[Point, ...]] = []
    for i, (left, top) in enumerate(corners[1:], start=1):
        middle, next_level = left - size.gap_x / 2, top + half
        steps.append(((middle, level), (middle, next_level), (left, next_level)))
        level = next_level
        if i < len(corners) - 1:
            steps.append(((left + size.width, level),))
    return EdgeLine(edge[0], edge[1], start, tuple(steps))


ROOMY_SIZE = BoxSize(width=176, height=66, gap_x=56, gap_y=20, lines=4, font=13)
SMALL_SIZE = BoxSize(width=122, height=38, gap_x=40, gap_y=12, lines=2, font=11)
TINY_SIZE = BoxSize(width=92, height=20, gap_x=34, gap_y=8, lines=1, font=10)


@dataclass(frozen=True, slots=True)
class NodeBox:
    """A node, or a stack of similar nodes, as drawn.

    Attributes:
        lines: text lines of the box, the name first.
        description: all known details, for the tooltip.
        members: ids of the represented nodes; more than one in a stack.
    """

    id: str
    left: float
    top: float
    state: str
    lines: tuple[str, ...]
    description: str
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WorkflowPicture:
    """Boxes and lines, with the size of the picture."""

    size: BoxSize
    width: int
    height: int
    caption: str
    boxes: tuple[NodeBox, ...]
    lines: tuple[EdgeLine, ...]


def lay_out_workflow(
    name: str, nodes: Sequence[Node], *, planned: bool = False, cost: str = ""
) -> WorkflowPicture:
    """Lay a workflow out from left to right; more nodes get smaller boxes.

    Args:
        planned: whether the workflow was not submitted; boxes show inputs instead of states.
        cost: cost in words, from the workflow's record.
    """
    stacks = stack_nodes(nodes)
    size = (
        ROOMY_SIZE
        if len(stacks) <= MAX_ROOMY_BOXES
        else SMALL_SIZE
        if len(stacks) <= MAX_SMALL_BOXES
        else TINY_SIZE
    )
    box_of = {node.id: key for key, members in stacks.items() for node in members}
    arrangement = arrange_graph(
        {
            key: list(dict.fromkeys(box_of[up] for node in members for up in node.depends_on))
            for key, members in stacks.items()
        },
        size,
        CAPTION_HEIGHT,
    )
    return WorkflowPicture(
        size=size,
        width=round(arrangement.right + MARGIN),
        height=round(arrangement.bottom + MARGIN),
        caption=format_caption(name, nodes, planned=planned, cost=cost),
        boxes=tuple(
            _build_box(members, *arrangement.corners[key], size, planned=planned)
            for key, members in stacks.items()
        ),
        lines=arrangement.lines,
    )


def format_caption(
    name: str, nodes: Sequence[Node], *, planned: bool = False, cost: str = ""
) -> str:
    """Describe a workflow in one line: its node count, states, cost and retries."""
    many = format_count(len(nodes), "node")
    parts = [truncate_line(name, 80), many if planned else f"{many}: {format_state_counts(nodes)}"]
    if cost:
        parts.append(cost)
    retries = sum(node.retry_count for node in nodes)
    if retries:
        parts.append(format_total(retries, "retries"))
    return " · ".join(parts)


def format_workflow_cost(workflow: WorkflowRecord) -> str:
    """Format the cost of a workflow from its record; empty before a node completed."""
    if workflow.completed_at is None and not workflow.cost_usd:
        return ""
    return format_spending(workflow.cost_usd, workflow.cost_incurred_usd)


def format_state_counts(nodes: Sequence[Node]) -> str:
    """Format the number of nodes in each state."""
    count = Counter(node.status for node in nodes)
    return ", ".join(f"{count[s]} {s}" for s in STATE_PRIORITY if s in count)  # type: ignore[index]


def find_group_state(nodes: Sequence[Node]) -> str:
    """Find the state of nodes in one box: the state of the highest priority."""
    present = {node.status for node in nodes}
    return next(state for state in STATE_PRIORITY if state in present)


def describe_node(node: Node) -> str:
    """Describe all known details of a node in one line."""
    parts = [node.id, node.label, node.status, *_list_measures(node)]
    parts += ["optional"] if node.optional else []
    if node.error is not None:
        parts.append(f"{node.error.code}: {truncate_line(node.error.message, 200)}")
    return " · ".join(parts)


def measure_duration_s(node: Node) -> float | None:
    """Return the duration of a node in seconds, or None until it is over."""
    if node.started_at is None or node.completed_at is None:
        return None
    return (node.completed_at - node.started_at).total_seconds()


def _list_measures(node: Node) -> list[str]:
    """List provider, duration and cost, and whether the result was cached, if known."""
    took = measure_duration_s(node)
    parts = [node.provider or "", "" if took is None else format_seconds(took)]
    parts.append("" if node.cost_usd is None else format_usd(node.cost_usd))
    parts.append("cached" if node.cached_from else "")
    return [part for part in parts if part]


def stack_nodes(nodes: Sequence[Node]) -> dict[str, list[Node]]:
    """Stack the nodes that share a box; failed nodes stay alone, so that they are visible."""
    groups = group_nodes(
        {node.id: node.label for node in nodes},
        {node.id: node.depends_on for node in nodes},
        apart={node.id for node in nodes if node.status == "failed"},
    )
    box_of = {member: group.members[0] for group in groups for member in group.members}
    stacks: dict[str, list[Node]] = defaultdict(list)
    for node in nodes:
        stacks[box_of.get(node.id, node.id)].append(node)
    return dict(stacks)


def _build_box(
    members: Sequence[Node], left: float, top: float, size: BoxSize, *, planned: bool
) -> NodeBox:
    first = members[0]
    if len(members) == 1:
        lines = _build_planned_lines(first) if planned else _build_lines(first, size)
        state, description = PLANNED_STATE if planned else first.status, describe_node(first)
    else:
        state = PLANNED_STATE if planned else find_group_state(members)
        lines = [f"{first.id} and {len(members) - 1} more", first.label]
        costs = [
            node.cost_usd
            for node in members
            if node.status == "completed" and node.cost_usd is not None
        ]
        spent = f" · {format_usd(sum_usd(costs))}" if costs else ""
        if not planned:
            lines.append(format_state_counts(members) + spent)
        if size.lines <= len(lines) and not planned:
            del lines[1]
        description = (
            f"{first.id} to {members[-1].id} · {first.label} · {format_state_counts(members)}"
        )
    return NodeBox(
        id=first.id,
        left=left,
        top=top,
        state=state,
        lines=tuple(lines[: size.lines]),
        description=description,
        members=tuple(node.id for node in members),
    )


def _build_lines(node: Node, size: BoxSize) -> list[str]:
    """Build the lines of a node's box; smaller boxes have fewer lines."""
    state = format_status(node.status)
    if node.retry_count:
        state += f", {format_total(node.retry_count, 'retries')}"
    if size.lines == 1:
        return [f"{SYMBOLS.get(node.status, '·')} {node.id}"]
    if size.lines == 2:
        took = measure_duration_s(node)
        return [node.id, state if took is None else f"{state} · {format_seconds(took)}"]
    fault = [] if node.error is None else [node.error.code]
    return [node.id, node.label, state, " · ".join([*fault, *_list_measures(node)])]


def _build_planned_lines(node: Node) -> list[str]:
    fields = node.input
    if node.capability == FUNCTION_CAPABILITY:
        plain = node.input.get("arguments")
        fields = plain if isinstance(plain, dict) else {}
    values = ", ".join(
        f"{key}: {value if isinstance(value, str) else to_canonical_json(value)}"
        for key, value in fields.items()
    )
    return [node.id, node.label, *([values] if values else [])]
