"""The Python code of a workflow, and the faults of a workflow under construction."""

import ast

from toolkit import Workflow
from toolkit.engine import Registry
from toolkit.notebook.code_export import find_faults, render_python
from toolkit.settings import Settings


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
