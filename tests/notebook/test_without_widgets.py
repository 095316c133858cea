"""Notebooks without the libraries of widgets, and what importing costs."""

import subprocess
import sys

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


def test_a_missing_library_leaves_a_picture_and_a_hint() -> None:
    """Given no anywidget, when a graph is asked for, then there is its picture, and what to do.

    The widgets that do without it are there, and importing any of it imports none of it.
    """
    for script in (MISSING, LAZY):
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
