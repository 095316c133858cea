"""Properties of pictures of any workflow: nothing hidden, nothing unstable, nothing raw."""

import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkit.contract.workflows import Node, WorkflowRecord
from toolkit.display.plots.workflow import draw_timeline_figure, draw_workflow_figure
from toolkit.display.workflow.arrangement import MARGIN, EdgeLine, Point
from toolkit.display.workflow.boxes import MAX_ROOMY_BOXES, ROOMY_SIZE, NodeBox, lay_out_workflow
from toolkit.display.workflow.groups import MIN_GROUP_SIZE
from toolkit.display.workflow.layers import lay_out_graph
from toolkit.display.workflow.mermaid import format_workflow_mermaid
from toolkit.display.workflow.svg import draw_workflow_svg
from toolkit.display.workflow.timeline import draw_timeline_svg

AT = "2026-11-20T08:00:00.000Z"
STATES = ("pending", "queued", "running", "completed", "failed", "cancelled")
NASTY = "<script>$x</script>\"'&$id"
# What a process with another seed of hashes must draw alike.
STABLE = """
import hashlib
from toolkit.contract.workflows import Node, WorkflowRecord
from toolkit.display.workflow.svg import draw_workflow_svg
from toolkit.display.workflow.timeline import draw_timeline_svg
nodes = [
    Node(id=f"n{i}", capability="x@1", status="completed", cost_usd=i / 7,
         depends_on=[f"n{j}" for j in {i // 2, i // 3, i - 7} if 0 <= j < i])
    for i in range(90)
]
flow = WorkflowRecord(id="wfl_1", name="w", nodes=nodes, created_at="2026-11-20T08:00:00.000Z")
drawn = draw_workflow_svg("w", nodes) + draw_timeline_svg(flow)
print(hashlib.sha256(drawn.encode()).hexdigest())
"""


@st.composite
def graphs(draw: st.DrawFn, most: int = 50) -> list[Node]:
    """A workflow of some nodes, in any states."""
    nodes: list[Node] = []
    for i in range(draw(st.integers(1, most))):
        ups = draw(st.sets(st.integers(0, i - 1), max_size=3)) if i else set()
        status = draw(st.sampled_from(STATES))
        depends_on = [f"n{up}" for up in sorted(ups)]
        nodes.append(
            Node.model_validate(
                {"id": f"n{i}", "capability": "x@1", "depends_on": depends_on, "status": status}
            )
        )
    return nodes


@settings(max_examples=25)
@given(graphs(24))
def test_no_edge_hides_behind_a_node(nodes: list[Node]) -> None:
    """Given any graph, then every place on an edge's way is its own, and edges lead rightwards."""
    edges = {node.id: node.depends_on for node in nodes}
    layout = lay_out_graph(edges)
    taken = set(layout.places.values())
    assert len(taken) == len(edges)
    for (upstream, node), route in layout.routes.items():
        assert (route[0], route[-1]) == (layout.places[upstream], layout.places[node])
        assert [x for x, _ in route] == list(range(route[0][0], route[-1][0] + 1))
        assert not taken & set(route[1:-1])
    assert lay_out_graph(edges) == layout


@settings(max_examples=25)
@given(graphs(24))
def test_the_picture_is_stable_well_formed_and_told_in_words(nodes: list[Node]) -> None:
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
        left, top = float(box.get("x", -1)), float(box.get("y", -1))
        assert MARGIN <= left <= width - MARGIN - ROOMY_SIZE.width
        assert MARGIN <= top <= height - MARGIN - ROOMY_SIZE.height + 0.5  # which is rounded


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
def test_no_edge_passes_a_foreign_box(nodes: list[Node]) -> None:
    """Given any workflow, then no point of an edge lies in a box that is not an end of it."""
    drawn = lay_out_workflow("w", nodes)
    size = drawn.size
    columns: dict[float, list[NodeBox]] = defaultdict(list)
    for box in drawn.boxes:
        columns[box.left].append(box)
    for line in drawn.lines:
        for x, y in points(line):
            assert 0 <= x <= drawn.width
            assert 0 <= y <= drawn.height
            for left, boxes in columns.items():
                if left < x < left + size.width:
                    behind = [box.id for box in boxes if box.top < y < box.top + size.height]
                    assert set(behind) <= {line.upstream, line.node}


@settings(max_examples=25)
@given(graphs())
def test_each_node_has_one_box_and_boxes_stand_apart(nodes: list[Node]) -> None:
    """Given any workflow, then each node is in one box, and no two boxes touch."""
    drawn = lay_out_workflow("w", nodes)
    assert sorted(m for box in drawn.boxes for m in box.members) == sorted(n.id for n in nodes)
    size = drawn.size
    for i, one in enumerate(drawn.boxes):
        for other in drawn.boxes[:i]:
            across, down = abs(one.left - other.left), abs(one.top - other.top)
            assert across > size.width or down > size.height
    assert all(len(box.members) == 1 for box in drawn.boxes) or len(nodes) > MAX_ROOMY_BOXES


def test_pictures_are_the_same_to_the_byte_everywhere() -> None:
    """Given processes with other seeds of hashes, then they draw the same bytes."""
    told = {
        subprocess.run(
            [sys.executable, "-c", STABLE],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "77")
    }
    assert len(told) == 1
    assert len(told.pop()) == 65


@pytest.mark.parametrize("count", [3, 130])
def test_text_from_outside_is_only_text(count: int) -> None:
    """Given names that are markup and formulas, then every picture has them as text."""
    nodes = [
        Node(id=f"{NASTY}{i}", capability=NASTY, depends_on=[f"{NASTY}{i // 5}"] if i else [])
        for i in range(count)
    ]
    flow = WorkflowRecord.model_validate(
        {"id": "wfl_1", "name": NASTY, "nodes": nodes, "created_at": AT}
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
    one, other = (draw_workflow_svg("w", [Node(id=name, capability="x@1")]) for name in "ab")
    ids = [set(re.findall(r'\bid="([^"]+)"', svg)) for svg in (one, other)]
    assert all(ids)
    assert not ids[0] & ids[1]


def test_many_equal_siblings_are_one_stack_and_failures_stand_out() -> None:
    """Given a fan of 300, then its middle is one box, beside those that failed."""
    middle = [
        Node(id=f"w{i}", capability="x@1", depends_on=["src"], status="completed", cost_usd=0.01)
        for i in range(298)
    ]
    middle[7] = middle[7].model_copy(update={"status": "failed"})
    ends = Node(id="end", capability="x@1", depends_on=[node.id for node in middle])
    drawn = lay_out_workflow("fan", [Node(id="src", capability="x@1"), *middle, ends])
    stack, failed = (
        next(box for box in drawn.boxes if test(box))
        for test in (
            lambda box: len(box.members) >= MIN_GROUP_SIZE,
            lambda box: box.state == "failed",
        )
    )
    assert len(drawn.boxes) == 4
    assert stack.lines[0] == "w0 and 296 more"
    assert "$2.97" in " ".join(stack.lines)
    assert failed.members == ("w7",)


def test_many_chains_are_a_box_for_each_of_their_steps() -> None:
    """Given 300 chains of three steps, then each step is one box, beside a node that failed."""
    nodes = [Node(id="src", capability="x@1")]
    for i in range(300):
        for step, before in (("read", "src"), ("sum", f"read{i}"), ("say", f"sum{i}")):
            nodes.append(Node(id=f"{step}{i}", capability=f"{step}@1", depends_on=[before]))
    nodes[5] = nodes[5].model_copy(update={"status": "failed"})
    drawn = lay_out_workflow("chains", nodes)
    assert {box.lines[0] for box in drawn.boxes} == {
        "src", "read0 and 299 more", "sum0 and 298 more", "say0 and 299 more", nodes[5].id,
    }  # fmt: skip
    assert {(line.upstream, line.node) for line in drawn.lines} == {
        ("src", "read0"), ("read0", "sum0"), ("sum0", "say0"), ("read0", nodes[5].id),
        (nodes[5].id, "say0"),
    }  # fmt: skip
