"""The live graph without a browser: who changes it, what is sent of it, and what it writes."""

import base64
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.timing import PATIENCE_S, wait_until
from toolkit import Client, Workflow
from toolkit.display.workflow.groups import MAX_SIBLING_BOXES, group_nodes
from toolkit.notebook import WorkflowGraph
from toolkit.notebook.graph_widget import MAX_CHANGED_STATES, GraphWidget, load_script
from toolkit.sandbox import Faults


@pytest.fixture
def show(faults: Faults) -> Iterator[Callable[[Any], WorkflowGraph]]:
    """Shows work as a graph, and closes it after the test."""
    graphs: list[WorkflowGraph] = []

    def keep(work: Any) -> WorkflowGraph:
        graphs.append(WorkflowGraph(work))
        return graphs[-1]

    yield keep
    faults.clear()
    for graph in graphs:
        graph.close()


def make_text(name: str = "words", **options: Any) -> Workflow:
    """A workflow of one text, written by a vendor of its own."""
    workflow = Workflow(name)
    workflow.add(
        "words", "llm.generate@1", objective=f"On {name}", options={"provider": "openai"} | options
    )
    return workflow


def test_a_retry_from_elsewhere_is_followed(
    client: Client, faults: Faults, show: Callable[[Any], WorkflowGraph]
) -> None:
    """Given a graph of what failed, when somebody else retries that, then the graph shows it."""
    faults.fail("openai", status=400, times=1)
    graph = show(client.workflows.submit(make_text("tides")))
    assert graph.settle(PATIENCE_S)
    assert graph.status == "failed"
    client.workflows.retry(graph.workflow.id).wait(progress=False)
    wait_until(lambda: graph.status == "completed")
    wait_until(lambda: graph.view.states["words"]["status"] == "completed")
    assert graph.cancel.disabled
    assert graph.settle(PATIENCE_S)


def test_a_graph_and_those_who_wait_see_the_same_end(
    client: Client, show: Callable[[Any], WorkflowGraph]
) -> None:
    """Given a graph beside `wait()`, then both come to the end, and one does not rob the other."""
    run = client.workflows.submit(make_text("salt"))
    graph = show(run)
    assert run.wait(progress=False).status == "completed"
    assert graph.settle(PATIENCE_S)
    assert graph.view.states["words"]["status"] == "completed"


def test_a_text_is_seen_while_its_node_writes_it(
    client: Client, faults: Faults, show: Callable[[Any], WorkflowGraph]
) -> None:
    """Given a node that streams, when it is chosen, then its text grows until its output is there.

    In its box the end of the text stands for its state.
    """
    faults.pace("openai", 120)
    graph = show(client.workflows.submit(make_text("a slow river"), stream=True))
    graph.view.selected = "words"
    seen: list[str] = []
    graph.writing.observe(lambda change: seen.append(change["new"]), "value")
    lines: list[str] = []
    graph.view.observe(lambda change: lines.append(change["new"]["words"]["line"]), "states")
    assert graph.settle(PATIENCE_S)
    texts = [one for one in seen if "Being written" in one]
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


def test_what_changes_is_sent_and_not_the_rest() -> None:
    """Given a graph of 200 nodes, when some change, then those are sent; many are sent at once.

    At any time the states as they were last sent whole, and what changed since, are all there is.
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
        shown = {**view.drawn_states, **view.changed_states}
        assert shown == {
            node: [state["status"], state["line"]] for node, state in view.states.items()
        }
    assert sum(name == "drawn_states" for name, _ in sent) == 200 // MAX_CHANGED_STATES
    assert max(count for name, count in sent if name == "changed_states") == MAX_CHANGED_STATES
    view.close()


def test_groups_are_drawn_as_boxes_with_all_their_nodes() -> None:
    """Given chains side by side, then each step is a group, in the order of the chains."""
    view = GraphWidget()
    graph = make_chains(100)
    view.draw(dict.fromkeys(graph, "x@1"), graph)
    nodes, groups = view.graph["nodes"], view.graph["groups"]
    assert [node["id"] for node in nodes] == list(graph)
    assert not any("at" in node for node in nodes)
    named = [[nodes[i]["id"] for i in group["members"]] for group in groups]
    assert named == [[f"a{i}" for i in range(100)], [f"b{i}" for i in range(100)]]
    assert [edge["route"][0][0] for edge in view.graph["edges"]] == [0]
    assert len(view.graph["links"]) == 100
    few = make_chains(20)
    assert group_nodes(dict.fromkeys(few, "x@1"), few) == []
    many = {f"n{i}": [f"n{i - 1}"] if i else [] for i in range(MAX_SIBLING_BOXES + 1)}
    assert group_nodes(dict.fromkeys(many, "x@1"), many) == []
    view.close()


def test_a_picture_lies_beside_the_widget(
    client: Client, show: Callable[[Any], WorkflowGraph], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a graph that is displayed, then an output of its own has the picture, as PNG too."""
    shown: list[dict[str, Any]] = []
    monkeypatch.setattr("IPython.display.display", lambda bundle, **_: shown.append(bundle))
    graph = show(client.workflows.submit(make_text("dunes")).wait(progress=False))
    graph._ipython_display_()
    widget, picture = shown
    assert set(widget) == {"text/plain", "application/vnd.jupyter.widget-view+json"}
    assert "✓ completed" in picture["text/html"]
    assert base64.b64decode(picture["image/png"]).startswith(b"\x89PNG")
    assert graph.workflow.id in picture["text/html"]


def test_the_script_is_whole() -> None:
    """Given the parts of the script, then each of them is loaded, and nothing from elsewhere."""
    script = load_script()
    folder = Path(__file__).parents[2] / "toolkit" / "notebook" / "static" / "graph"
    for part in folder.glob("*.js"):
        assert part.read_text(encoding="utf-8") in script
    assert "import " not in script.replace("important ", "")
