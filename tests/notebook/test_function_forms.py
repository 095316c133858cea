"""Functions of the notebook as nodes in the editor of workflows."""

from typing import Any

import pytest

from tests.support.timing import PATIENCE_S
from toolkit import Client, Workflow
from toolkit.notebook import WorkflowEditor


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
