"""Properties of the picture of any workflow: complete, stable, and safe to show."""

import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkit.contract.workflows import Node, WorkflowRecord
from toolkit.display.plots import draw_timeline_figure, draw_workflow_figure
from toolkit.display.workflow.boxes import (
    MARGIN,
    MAX_ROOMY_BOXES,
    ROOMY_SIZE,
    EdgeLine,
    NodeBox,
    Point,
    lay_out_workflow,
)
from toolkit.display.workflow.layers import lay_out_graph
from toolkit.display.workflow.svg import draw_workflow_svg, format_workflow_mermaid
from toolkit.display.workflow.timeline import draw_timeline_svg

STATES = ("pending", "queued", "running", "completed", "failed", "cancelled")
NASTY = "<script>$x</script>\"'&$id"


@st.composite
def graphs(draw: st.DrawFn, max_nodes: int = 50) -> list[Node]:
    """A workflow of some nodes, in any states."""
    nodes: list[Node] = []
    for i in range(draw(st.integers(1, max_nodes))):
        ups = draw(st.sets(st.integers(0, i - 1), max_size=3)) if i else set()
        status = draw(st.sampled_from(STATES))
        depends_on = [f"n{up}" for up in sorted(ups)]
        node = {"id": f"n{i}", "capability": "x@1", "depends_on": depends_on, "status": status}
        nodes.append(Node.model_validate(node))
    return nodes


@settings(max_examples=25)
@given(graphs(24))
def test_edges_do_not_pass_nodes_in_a_layout(nodes: list[Node]) -> None:
    """Given any graph, then each place on an edge's way is free, and edges lead to the right."""
    edges = {node.id: node.depends_on for node in nodes}
    layout = lay_out_graph(edges)
    places = set(layout.places.values())
    assert len(places) == len(edges)
    for (upstream, node), route in layout.routes.items():
        assert (route[0], route[-1]) == (layout.places[upstream], layout.places[node])
        assert [x for x, _ in route] == list(range(route[0][0], route[-1][0] + 1))
        assert not places & set(route[1:-1])
    assert lay_out_graph(edges) == layout


@settings(max_examples=25)
@given(graphs(24))
def test_svg_is_stable_and_names_each_state(nodes: list[Node]) -> None:
    """Given a workflow, then its SVG parses, is the same twice, and names each node's state."""
    svg = draw_workflow_svg("w", nodes)
    assert svg == draw_workflow_svg("w", nodes)
    root = ElementTree.fromstring(svg)
    assert root.get("role") == "img"
    for node in nodes:
        assert f"{node.id} {node.status}" in (root.get("aria-label") or "")
    width, height = float(root.get("width", 0)), float(root.get("height", 0))
    page, *boxes = [element for element in root.iter() if element.tag.endswith("rect")]
    assert (page.get("width"), page.get("height")) == (root.get("width"), root.get("height"))
    assert len(boxes) == len(nodes)
    for box in boxes:
        x, y = float(box.get("x", -1)), float(box.get("y", -1))
        assert MARGIN <= x <= width - MARGIN - ROOMY_SIZE.width
        assert MARGIN <= y <= height - MARGIN - ROOMY_SIZE.height + 0.5  # because y is rounded


def points(line: EdgeLine) -> Iterator[Point]:
    """Places along an edge, close to each other."""
    x, y = line.start
    for step in line.steps:
        bends = ((x, y), *step) if len(step) == 3 else ((x, y), (x, y), step[0], step[0])
        for i in range(13):
            t = i / 12
            weights = (1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3
            yield (
                sum(weight * bend[0] for weight, bend in zip(weights, bends, strict=True)),
                sum(weight * bend[1] for weight, bend in zip(weights, bends, strict=True)),
            )
        x, y = step[-1]


@settings(max_examples=25)
@given(graphs())
def test_edges_do_not_cross_other_boxes(nodes: list[Node]) -> None:
    """Given any workflow, then no point of an edge lies in a box other than its ends."""
    drawn = lay_out_workflow("w", nodes)
    size = drawn.size
    columns: dict[float, list[NodeBox]] = defaultdict(list)
    for box in drawn.boxes:
        columns[box.left].append(box)
    for line in drawn.lines:
        for x, y in points(line):
            assert 0 <= x <= drawn.width
            assert 0 <= y <= drawn.height
            for column, boxes in columns.items():
                if column < x < column + size.width:
                    behind = [box.id for box in boxes if box.top < y < box.top + size.height]
                    assert set(behind) <= {line.upstream, line.node}


@settings(max_examples=25)
@given(graphs())
def test_each_node_has_one_box_and_boxes_do_not_touch(nodes: list[Node]) -> None:
    """Given any workflow, then each node is in one box, and no two boxes touch."""
    drawn = lay_out_workflow("w", nodes)
    assert sorted(m for box in drawn.boxes for m in box.members) == sorted(n.id for n in nodes)
    size = drawn.size
    for first, second in combinations(drawn.boxes, 2):
        across, down = abs(first.left - second.left), abs(first.top - second.top)
        assert across > size.width or down > size.height
    assert all(len(box.members) == 1 for box in drawn.boxes) or len(nodes) > MAX_ROOMY_BOXES


@pytest.mark.parametrize("count", [3, 130])
def test_pictures_escape_names(count: int) -> None:
    """Given names that are markup and formulas, then every picture has them as text."""
    nodes = [
        Node(id=f"{NASTY}{i}", capability=NASTY, depends_on=[f"{NASTY}{i // 5}"] if i else [])
        for i in range(count)
    ]
    flow = WorkflowRecord.model_validate(
        {"id": "wfl_1", "name": NASTY, "nodes": nodes, "created_at": "2026-11-20T08:00:00.000Z"}
    )
    for svg in (draw_workflow_svg(NASTY, nodes), draw_timeline_svg(flow)):
        root = ElementTree.fromstring(svg)
        assert {element.tag.partition("}")[2] for element in root.iter()} <= {
            "svg", "title", "style", "rect", "defs", "marker", "path", "text", "g"
        }  # fmt: skip
        assert any("<script>$x" in (element.text or "") for element in root.iter())
        assert root.get("id", "") not in "".join(
            element.text or "" for element in root.iter("text")
        )
    assert "<script" not in format_workflow_mermaid(nodes)
    if count == 3:
        assert draw_workflow_figure(NASTY, nodes)._repr_png_()  # type: ignore[attr-defined]
        assert draw_timeline_figure(flow)._repr_png_()  # type: ignore[attr-defined]


def test_pictures_in_one_page_do_not_share_ids() -> None:
    """Given two different pictures, then they have no id in common."""
    pictures = [draw_workflow_svg("w", [Node(id=name, capability="x@1")]) for name in "ab"]
    ids = [set(re.findall(r'\bid="([^"]+)"', svg)) for svg in pictures]
    assert all(ids)
    assert not ids[0] & ids[1]


def test_groups_each_step_of_many_chains() -> None:
    """Given 300 chains of three steps, then each step is one box, next to a node that failed."""
    nodes = [Node(id="src", capability="x@1")]
    for i in range(300):
        for step, before in (("read", "src"), ("sum", f"read{i}"), ("say", f"sum{i}")):
            node = Node(id=f"{step}{i}", capability=f"{step}@1", depends_on=[before])
            nodes.append(node.model_copy(update={"status": "completed", "cost_usd": 0.01}))
    nodes[5] = nodes[5].model_copy(update={"status": "failed"})
    drawn = lay_out_workflow("chains", nodes)
    (failed,) = [box for box in drawn.boxes if box.state == "failed"]
    assert failed.members == (nodes[5].id,)
    assert "$2.99" in " ".join(line for box in drawn.boxes for line in box.lines)
    assert {box.lines[0] for box in drawn.boxes} == {
        "src", "read0 and 299 more", "sum0 and 298 more", "say0 and 299 more", nodes[5].id,
    }  # fmt: skip
    assert {(line.upstream, line.node) for line in drawn.lines} == {
        ("src", "read0"), ("read0", "sum0"), ("sum0", "say0"), ("read0", nodes[5].id),
        (nodes[5].id, "say0"),
    }  # fmt: skip
