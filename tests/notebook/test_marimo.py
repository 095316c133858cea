"""Displays in marimo, which draws anywidgets and HTML, and no ipywidgets."""

import anywidget

from toolkit import Client, Workflow
from toolkit.notebook import RunTable, WorkflowGraph


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
