"""The places of a graph's boxes and of the lines between them, in pixels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from toolkit.display.workflow.layers import lay_out_graph

MARGIN = 14


@dataclass(frozen=True, slots=True)
class BoxSize:
    """The size of boxes, and the number of text lines in a box."""

    width: int
    height: int
    gap_x: int
    gap_y: int
    lines: int
    font: float


# A path in pixels: its start, then corners of a Bézier curve (3) or of a line (1).
Point = tuple[float, float]


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
