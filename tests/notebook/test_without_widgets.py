"""Notebooks without the widget libraries, and the cost of imports."""

import subprocess
import sys

import pytest

MISSING = """
import sys
sys.modules["anywidget"] = None
import toolkit.notebook
from toolkit import Workflow
wf = Workflow("w"); wf.add("a", "llm.generate@1", objective="x")
graph = toolkit.notebook.WorkflowGraph(wf)
assert "pip install" in repr(graph), graph
assert graph._repr_mimebundle_()["text/html"].startswith("<svg")
assert toolkit.notebook.RunTable.__mro__[1].__name__ == "Panel"
graph.close()
"""
LAZY = (
    "import toolkit, toolkit.notebook, sys; assert not {'ipywidgets', 'httpx'} & set(sys.modules)"
)


@pytest.mark.parametrize("script", [MISSING, LAZY], ids=["missing", "lazy"])
def test_works_without_widget_libraries(script: str) -> None:
    """Given no anywidget, then a graph is a picture with a hint; imports load no library."""
    process = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
