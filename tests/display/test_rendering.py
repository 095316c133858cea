"""Pictures, tables and texts of records."""

import io
import random
from xml.etree import ElementTree

import pytest

from toolkit.contract.events import Event
from toolkit.contract.workflows import Node
from toolkit.display.progress.event_lines import EventLines
from toolkit.display.records.html import render_facts, render_table
from toolkit.display.text import format_event
from toolkit.display.workflow.arrangement import MARGIN
from toolkit.display.workflow.boxes import ROOMY_SIZE
from toolkit.display.workflow.layers import lay_out_graph
from toolkit.display.workflow.svg import draw_workflow_svg

NASTY = '<script>alert("x")</script>'
AT = "2026-11-20T08:00:00.000Z"


def random_dag(seed: int) -> dict[str, list[str]]:
    """A graph of up to 24 nodes."""
    rng = random.Random(seed)
    names = [f"n{i}" for i in range(rng.randint(1, 24))]
    return {
        name: sorted(rng.sample(names[:i], min(i, rng.randint(0, 3))))
        for i, name in enumerate(names)
    }


@pytest.mark.parametrize("seed", range(25))
def test_no_edge_hides_behind_a_node(seed: int) -> None:
    """Given any graph, then every place on an edge's way is its own, and edges lead rightwards."""
    edges = random_dag(seed)
    layout = lay_out_graph(edges)
    taken = set(layout.places.values())
    assert len(taken) == len(edges)
    for (upstream, node), route in layout.routes.items():
        assert (route[0], route[-1]) == (layout.places[upstream], layout.places[node])
        assert [x for x, _ in route] == list(range(route[0][0], route[-1][0] + 1))
        assert not taken & set(route[1:-1])
    assert lay_out_graph(edges) == layout


def test_a_cycle_has_no_layout() -> None:
    """Given a cycle, then it is refused rather than drawn wrong."""
    with pytest.raises(ValueError, match="cycle"):
        lay_out_graph({"a": ["b"], "b": ["a"]})


@pytest.mark.parametrize("seed", range(5))
def test_the_picture_is_stable_well_formed_and_told_in_words(seed: int) -> None:
    """Given a workflow, then its SVG parses, is the same twice, and names each node's state."""
    edges = random_dag(seed)
    states = ["pending", "running", "completed", "failed", "cancelled"]
    nodes = [
        Node(id=name, capability="x@1", depends_on=ups, status=states[i % 5])  # type: ignore[arg-type]
        for i, (name, ups) in enumerate(edges.items())
    ]
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
        assert MARGIN <= float(box.get("x", -1)) <= width - MARGIN - ROOMY_SIZE.width
        assert MARGIN <= float(box.get("y", -1)) <= height - MARGIN - ROOMY_SIZE.height


def test_text_from_outside_is_never_markup() -> None:
    """Given a name that is markup, then no table has it raw."""
    assert "<script" not in render_table([{"name": NASTY, NASTY: 1}], ["name", NASTY], NASTY)
    assert "<script" not in render_facts(NASTY, {NASTY: NASTY})


def event(kind: str, **data: object) -> Event:
    """An event of a workflow."""
    return Event.model_validate(
        {"n": 1, "resource_id": "wfl_1", "type": kind, "at": AT, "data": data}
    )


def test_a_line_of_progress_says_what_happened() -> None:
    """Given an event, then its line has node, state, provider, time, cost and error."""
    line = format_event(
        event(
            "node.failed",
            node_id="card",
            provider="openai",
            latency_ms=1234,
            cost_usd=0.002,
            error={"code": "PROVIDER_TIMEOUT", "message": "late"},
        )
    )
    for part in ("✗ card", "failed", "by openai", "1.23 s", "$0.002", "PROVIDER_TIMEOUT: late"):
        assert part in line


def test_lines_are_printed_once_each() -> None:
    """Given the same state twice, then it is told once."""
    told = io.StringIO()
    lines = EventLines(told)
    for _ in range(2):
        lines.add(event("node.running", node_id="a"))
    lines.add(event("node.completed", node_id="a"))
    assert len(told.getvalue().splitlines()) == 2


def test_a_late_line_does_not_cut_a_text() -> None:
    """Given a run that is told to run while its text is shown, then that comes after the text."""
    told = io.StringIO()
    lines = EventLines(told)
    lines.add_text("One ", restarts=False)
    lines.add(event("run.running", provider="openai"))
    lines.add_text("piece.", restarts=False)
    lines.add(event("run.completed", provider="openai"))
    text, running, completed = told.getvalue().splitlines()
    assert text == "One piece."
    assert "running by openai" in running
    assert "completed" in completed


def test_a_new_attempt_is_told_before_its_text() -> None:
    """Given a text that another provider begins anew, then that provider is named before it."""
    told = io.StringIO()
    lines = EventLines(told)
    lines.add_text("One", restarts=False)
    lines.add(event("run.running", provider="google"))
    lines.add_text("Two", restarts=True)
    lines.end_line()
    assert [line[:3] for line in told.getvalue().splitlines()][::2] == ["One", "Two"]


def test_lines_have_no_characters_that_control_a_terminal() -> None:
    """Given a text and an error with such characters, then a terminal is not sent any."""
    stream = io.StringIO()
    lines = EventLines(stream)
    lines.add_text("a\tb\n\x1b]52;c;cGxhbnRlZA==\x07c\r\x9b2J", restarts=True)
    error = {"code": "PROVIDER_ERROR", "message": "d\x1b[2Je"}
    lines.add(event("node.failed", node_id="f\x1b[1m", error=error))
    assert [c for c in stream.getvalue() if not c.isprintable()] == ["\n", "\n", "\n"]
    for words in ("a    b", "]52;c;", "d", "[2Je"):
        assert words in stream.getvalue()
