"""What marimo is given to show: it draws anywidgets and HTML, and no ipywidgets."""

import subprocess
import sys
from pathlib import Path

import anywidget
import pytest

from toolkit import Client, Workflow
from toolkit.notebook import RunTable, WorkflowGraph

NOTEBOOK = """
import marimo

app = marimo.App()


@app.cell
def _():
    from toolkit import Client, Workflow
    from toolkit.notebook import RunTable, WorkflowGraph

    client = Client.local("data", sandbox=True)
    wf = Workflow("tides")
    wf.add("copy", "llm.generate", objective="A line on tides")
    done = client.workflows.submit(wf).wait()
    return RunTable, WorkflowGraph, client, done


@app.cell
def _(WorkflowGraph, done):
    WorkflowGraph(done)
    return


@app.cell
def _(done):
    done
    return


@app.cell
def _(RunTable, client, done):
    done
    RunTable([client.runs.create("llm.generate", {"objective": "Salt"}).wait(progress=False)])
    return
"""


def test_a_graph_is_an_anywidget_and_the_rest_is_html(client: Client) -> None:
    """Given widgets, then marimo's protocol has the graph itself, and of others their content."""
    wf = Workflow("tides")
    wf.add("copy", "llm.generate", objective="A line on tides")
    assert wf._mime_()[0] == "text/html"
    done = client.workflows.submit(wf).wait(progress=False)

    graph = WorkflowGraph(done)
    shown = graph._display_()
    assert isinstance(shown, anywidget.AnyWidget)
    assert [node["id"] for node in shown.graph["nodes"]] == ["copy"]
    graph.close()
    for picture in (done, done.timeline()):
        kind, told = picture._mime_()
        assert (kind, told) == ("text/html", picture.picture())
    table = RunTable([client.runs.create("composition.layout", {"title": "Tea"})])
    assert "composition.layout@1" in table._display_()._repr_html_()  # type: ignore[attr-defined]
    table.close()


def test_a_notebook_of_marimo(tmp_path: Path) -> None:
    """Given a notebook, when marimo runs it, then its page has progress, graph and table."""
    pytest.importorskip("marimo")
    (tmp_path / "tides.py").write_text(NOTEBOOK)
    command = [sys.executable, "-m", "marimo", "-q", "export", "html", "tides.py", "-o", "page"]
    made = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    page = (tmp_path / "page").read_text()
    assert "tides completed: 1 node in" in page
    assert "marimo-anywidget" in page
    assert "aria-label" in page
    assert "llm.generate@1" in page
    assert "widget-view+json" not in page
