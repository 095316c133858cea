"""The live graph without a browser: its updates, its messages and its texts."""

import base64
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.timing import PATIENCE_S, wait_until
from toolkit import Client, Workflow
from toolkit.display.workflow.groups import MAX_SIBLING_BOXES, group_nodes
from toolkit.notebook import WorkflowGraph
from toolkit.notebook.graph_widget import MAX_CHANGED_STATES, GraphWidget
from toolkit.sandbox import Faults

Show = Callable[[Any], WorkflowGraph]


@pytest.fixture
def show(faults: Faults) -> Iterator[Show]:
    """Return a function that shows work as a graph; the graphs are closed after the test."""
    graphs: list[WorkflowGraph] = []

    def keep(work: Any) -> WorkflowGraph:
        graphs.append(WorkflowGraph(work))
        return graphs[-1]

    yield keep
    faults.clear()
    for graph in graphs:
        graph.close()


def make_text(name: str = "words", **options: Any) -> Workflow:
    """A workflow of one text by a fixed vendor."""
    workflow = Workflow(name)
    workflow.add(
        "words", "llm.generate@1", objective=f"On {name}", options={"provider": "openai"} | options
    )
    return workflow


def test_follows_a_retry_from_elsewhere(client: Client, faults: Faults, show: Show) -> None:
    """Given a graph of a failed workflow, when it is retried elsewhere, then the graph follows."""
    faults.fail("openai", status=400, times=1)
    graph = show(client.workflows.submit(make_text("tides")))
    assert graph.settle(PATIENCE_S)
    assert graph.status == "failed"
    client.workflows.retry(graph.workflow.id).wait(progress=False)
    wait_until(lambda: graph.status == "completed")
    wait_until(lambda: graph.view.states["words"]["status"] == "completed")
    assert graph.cancel.disabled
    assert graph.settle(PATIENCE_S)


def test_shows_a_text_while_its_node_writes_it(client: Client, faults: Faults, show: Show) -> None:
    """Given a selected node that streams, then its text grows until its output is complete.

    Its box shows the end of the text instead of the state.
    """
    faults.pace("openai", 120)
    graph = show(client.workflows.submit(make_text("a slow river"), stream=True))
    graph.view.selected = "words"
    seen: list[str] = []
    graph.writing.observe(lambda change: seen.append(change["new"]), "value")
    lines: list[str] = []
    graph.view.observe(lambda change: lines.append(change["new"]["words"]["line"]), "states")
    assert graph.settle(PATIENCE_S)
    texts = [text for text in seen if "Being written" in text]
    assert len(texts) >= 2
    assert len(texts[-1]) > len(texts[0])
    assert any(line.startswith("✎ …") for line in lines)
    assert graph.writing.value == ""
    assert "Output" in graph.details.value


def make_chains(count: int) -> dict[str, list[str]]:
    """Chains of two nodes side by side, by their dependencies."""
    return {
        name: upstream
        for i in range(count)
        for name, upstream in ((f"a{i}", []), (f"b{i}", [f"a{i}"]))
    }


def test_sends_only_changed_states() -> None:
    """Given a graph of 200 nodes, when some change, then only their states are sent.

    After a fixed number of changes all states are sent again; both parts add up to all states.
    """
    view = GraphWidget()
    graph = make_chains(100)
    view.draw(dict.fromkeys(graph, "x@1"), graph)
    sent: list[tuple[str, int]] = []
    for name in ("drawn_states", "changed_states"):
        view.observe(lambda change: sent.append((change["name"], len(change["new"]))), name)
    view.states = {node: {"status": "pending", "line": "·"} for node in graph}
    assert sent == [("drawn_states", 200)]
    sent.clear()
    for i, node in enumerate(graph):
        view.states = {**view.states, node: {"status": "running", "line": f"{i}"}}
        states = {node: [state["status"], state["line"]] for node, state in view.states.items()}
        assert states == {**view.drawn_states, **view.changed_states}
    assert sum(name == "drawn_states" for name, _ in sent) == 200 // MAX_CHANGED_STATES
    assert max(count for name, count in sent if name == "changed_states") == MAX_CHANGED_STATES
    view.close()


def test_draws_groups_with_all_their_nodes() -> None:
    """Given chains side by side, then each step is a group, in the order of the chains."""
    view = GraphWidget()
    graph = make_chains(100)
    view.draw(dict.fromkeys(graph, "x@1"), graph)
    nodes, groups = view.graph["nodes"], view.graph["groups"]
    assert [node["id"] for node in nodes] == list(graph)
    assert not any("at" in node for node in nodes)
    members = [[nodes[i]["id"] for i in group["members"]] for group in groups]
    assert members == [[f"a{i}" for i in range(100)], [f"b{i}" for i in range(100)]]
    assert [edge["route"][0][0] for edge in view.graph["edges"]] == [0]
    assert len(view.graph["links"]) == 100
    few = make_chains(20)
    assert group_nodes(dict.fromkeys(few, "x@1"), few) == []
    many = {f"n{i}": [f"n{i - 1}"] if i else [] for i in range(MAX_SIBLING_BOXES + 1)}
    assert group_nodes(dict.fromkeys(many, "x@1"), many) == []
    view.close()


def test_displays_a_picture_with_the_widget(
    client: Client, show: Show, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a graph that is displayed, then a second output has the picture, also as PNG."""
    bundles: list[dict[str, Any]] = []
    monkeypatch.setattr("IPython.display.display", lambda bundle, **_: bundles.append(bundle))
    graph = show(client.workflows.submit(make_text("dunes")).wait(progress=False))
    graph._ipython_display_()
    widget, picture = bundles
    assert set(widget) == {"text/plain", "application/vnd.jupyter.widget-view+json"}
    assert "✓ completed" in picture["text/html"]
    assert base64.b64decode(picture["image/png"]).startswith(b"\x89PNG")
    assert graph.workflow.id in picture["text/html"]
