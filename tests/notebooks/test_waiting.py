"""Waits in a notebook that runs unattended, as by papermill and nbval."""

from pathlib import Path

import nbformat

from tests.notebooks.execution import execute, list_outputs

CELL = """
import tempfile
from toolkit import Client, Workflow

client = Client.local(tempfile.mkdtemp(), sandbox=True)
wf = Workflow("tides")
first = wf.add("first", "llm.generate", objective="One line on tides")
wf.add("second", "llm.generate", objective="Another", depends_on=[first])
flow = client.workflows.submit(wf).wait()
table = client.map("llm.generate", [{"n": 1}, {"n": 2}], objective="On {n}")
"""


def test_a_wait_leaves_one_line(tmp_path: Path) -> None:
    """Given papermill, then a wait and a map leave a line each, also as HTML."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL)])
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3"}
    source = tmp_path / "source.ipynb"
    nbformat.write(notebook, source)
    (tmp_path / "result").mkdir()
    first, second = list_outputs(execute(source, tmp_path / "result", {}))
    assert "".join(first["data"]["text/plain"]).startswith("✓ tides completed: 2 nodes in ")
    assert "".join(second["data"]["text/plain"]).startswith("2 of 2 rows, $")
    for output in (first, second):
        assert output["output_type"] == "display_data"
        assert "toolkit-progress" in "".join(output["data"]["text/html"])
