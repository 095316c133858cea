"""Displays without a live widget, and forms of functions."""

import ast
from typing import Any

import anywidget
import pytest

from tests.support.timing import PATIENCE_S
from toolkit import Client, Workflow
from toolkit.engine import Registry
from toolkit.notebook import RunTable, WorkflowEditor, WorkflowGraph
from toolkit.notebook.code_export import find_faults, render_python
from toolkit.settings import Settings


@pytest.fixture
def editor(client: Client) -> Any:
    """An editor whose client knows functions."""

    @client.functions.register
    def join_lines(texts: list[str], sign: str, upper: bool = False) -> str:
        joined = sign.join(texts)
        return joined.upper() if upper else joined

    @client.functions.register
    def list_lines() -> list[str]:
        return ["tides", "salt"]

    editor = WorkflowEditor(client)
    yield editor
    editor.close()


def _add(editor: WorkflowEditor, node_id: str, called: str) -> None:
    editor.new_id.value, editor.capability.value = node_id, called
    editor.add.click()


def test_builds_and_runs_a_workflow_of_functions(client: Client, editor: Any) -> None:
    """Given functions, then the editor offers, connects, exports and runs them."""
    labels = [label for label, _ in editor.capability.options]
    assert {"join_lines (function)", "list_lines (function)", "llm.generate@1"} <= set(labels)
    _add(editor, "lines", "list_lines()")
    _add(editor, "joined", "join_lines()")

    assert list(editor.form.fields) == ["texts", "sign", "upper"]
    assert [fault.path for fault in editor.faults] == ["nodes.1.input.sign"]
    assert "no node provides it" in editor.form.fields["sign"].fault.value
    assert editor.submit.disabled
    editor.form.fields["sign"].control.value = ", "
    editor.form.fields["upper"].control.value = True
    assert editor.faults == []
    assert editor.nodes[1]["input"]["arguments"] == {"sign": ", ", "upper": True}
    assert editor.nodes[1]["input"]["nodes"] == {"texts": "lines"}
    assert "joined = wf.add('joined', join_lines" in editor.to_python()
    assert "sign=', '" in editor.to_python()

    editor.submit.click()
    assert editor.settle(PATIENCE_S)
    assert editor.graph.settle(PATIENCE_S)
    assert editor.graph.workflow["joined"].value == "TIDES, SALT"


def test_a_value_replaces_the_node_of_a_parameter(editor: Any) -> None:
    """Given a parameter of a node, when it gets and loses a value, then the node follows."""
    _add(editor, "lines", "list_lines()")
    _add(editor, "joined", "join_lines()")
    texts = editor.form.fields["texts"].control
    texts.value = '["tea"]'
    called = editor.nodes[1]["input"]
    assert called["arguments"]["texts"] == ["tea"]
    assert called["nodes"] == {"sign": "lines"}
    texts.value = ""
    assert editor.nodes[1]["input"]["nodes"] == {"texts": "lines"}
    editor.depends_on.value = []
    assert "nodes" not in editor.nodes[1]["input"]
    faults = {fault.path for fault in editor.faults}
    assert faults == {"nodes.1.input.texts", "nodes.1.input.sign"}


def test_offers_functions_that_are_registered_later(client: Client, editor: Any) -> None:
    """Given an open editor, when a function is registered, then the editor offers it."""

    @client.functions.register
    def come_later() -> int:
        return 1

    _add(editor, "lines", "list_lines()")
    assert "come_later()" in [value for _, value in editor.capability.options]
    assert editor.capability.value == "list_lines()"


def test_edits_a_workflow_with_unregistered_functions(client: Client) -> None:
    """Given a workflow with a function, when it is edited and submitted, then its function runs."""
    wf = Workflow("counted")
    words = wf.add("words", "llm.generate", objective="A line on tides")
    wf.add("length", lambda words: len(words), depends_on=[words])
    editor = WorkflowEditor(client, wf)
    assert editor.faults == []
    editor.submit.click()
    assert editor.settle(PATIENCE_S)
    assert editor.graph.settle(PATIENCE_S)
    assert editor.graph.workflow["length"].value > 0
    editor.close()


def _scale(table: object, factor: int) -> object:
    return table, factor


def test_exports_functions_by_their_names() -> None:
    """Given a workflow with functions, then it has no faults, and its code builds it again."""
    wf = Workflow("mixed")
    raw = wf.add("raw-rows", "llm.generate", objective="Tides")
    many = wf.add("scaled", _scale, table=raw, factor=3)
    wf.add("spoken", "speech.generate", depends_on=[many])

    assert find_faults(wf.to_dict(), Registry.load(), Settings()) == []

    lines = render_python(wf.to_dict()).splitlines()
    built: dict[str, object] = {"wf": Workflow("mixed"), "_scale": _scale}
    exec("\n".join(line for line in lines if "wf.add" in line), built)
    again = built["wf"]
    assert isinstance(again, Workflow)
    assert again.to_dict()["nodes"] == wf.to_dict()["nodes"]


def test_exported_code_runs_no_code_in_names() -> None:
    """Given a workflow whose names hold code, then the exported code runs none of it."""
    hit = "a=1); planted(); (b"
    nodes = [
        {
            "id": hit,
            "capability": "function.call@1",
            "input": {"function": "clean", "arguments": {hit: hit}, "nodes": {}},
        }
    ]
    code = render_python({"name": f"'{hit}\n", "nodes": nodes, "max_retries": f"1, {hit}"})
    called = {
        call.func.id
        for call in ast.walk(ast.parse(code))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
    }
    assert called == {"Workflow"}


def test_a_graph_is_an_anywidget_and_other_displays_are_html(client: Client) -> None:
    """Given widgets, then marimo's protocol gets the graph as a widget, and the rest as HTML."""
    wf = Workflow("tides")
    wf.add("copy", "llm.generate", objective="A line on tides")
    assert wf._mime_()[0] == "text/html"
    workflow = client.workflows.submit(wf).wait(progress=False)

    graph = WorkflowGraph(workflow)
    widget = graph._display_()
    assert isinstance(widget, anywidget.AnyWidget)
    assert [node["id"] for node in widget.graph["nodes"]] == ["copy"]
    graph.close()
    for picture in (workflow, workflow.timeline()):
        assert picture._mime_() == ("text/html", picture.picture())
    table = RunTable([client.runs.create("composition.layout", {"title": "Tea"})])
    assert "composition.layout@1" in table._display_()._repr_html_()  # type: ignore[attr-defined]
    table.close()
