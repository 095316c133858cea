"""A wait in a notebook that nobody looks at while it runs, as papermill and nbval run it."""

from pathlib import Path

import nbformat

from tests.notebooks.execution import execute

CELL = """
import tempfile
from toolkit import Client, Workflow

client = Client.local(tempfile.mkdtemp(), sandbox=True)
wf = Workflow("tides")
first = wf.add("first", "llm.generate", objective="One line on tides")
wf.add("second", "llm.generate", objective="Another", depends_on=[first])
done = client.workflows.submit(wf).wait()
table = client.map("llm.generate", [{"n": 1}, {"n": 2}], objective="On {n}")
"""


def test_only_the_last_line_is_kept(tmp_path: Path) -> None:
    """Given papermill, then a wait and a map leave a line each, which a page may show as HTML."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL)])
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3"}
    given = tmp_path / "given"
    given.mkdir()
    nbformat.write(notebook, given / "waits.ipynb")
    made = nbformat.read(execute(given / "waits.ipynb", tmp_path, {}), as_version=4)
    outputs = [one for cell in made.cells for one in cell.get("outputs", [])]
    assert [one.output_type for one in outputs] == ["display_data"] * 2
    first, second = (one.data["text/plain"] for one in outputs)
    assert first.startswith("✓ tides completed: 2 nodes in ")
    assert second.startswith("2 of 2 rows, $")
    assert all("toolkit-progress" in one.data["text/html"] for one in outputs)
