"""Files and variables that are named after nodes with unusual ids."""

import ast
import json
from pathlib import Path

from tests.contract.execution.test_node_ids import IDS
from tests.support.commands import say
from toolkit.notebook.code_export import render_python

BODY = {
    "name": "files",
    "nodes": [
        {"id": node_id, "capability": "research.gather@1", "input": {"topic": "Tea"}}
        for node_id in (*IDS.values(), "a/b", "a_b", "A_B", "x²", "ﬁ", "fi", "import", "wf")
    ],
}


def test_saves_a_file_for_each_node(tmp_path: Path) -> None:
    """Given nodes of any ids, when a run is saved, then each node has a file in the folder."""
    body, out = tmp_path / "body.json", tmp_path / "deep" / "out"
    body.write_text(json.dumps(BODY))
    command = ["workflows", "run", str(body), "--out", str(out), "--quiet", "--json"]
    say(*command, "--sandbox", "--data-dir", tmp_path / "data")
    files = sorted(out.iterdir())
    assert len({path.name.lower() for path in files}) == len(BODY["nodes"])
    assert all(path.is_file() and path.stat().st_size > 100 for path in files)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["body.json", "data", "deep"]
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["out"]


def test_exports_a_variable_for_each_node() -> None:
    """Given nodes of any ids, when exported as Python, then each node has a variable."""
    tree = ast.parse(render_python(BODY))
    names = [
        target.id
        for line in tree.body
        if isinstance(line, ast.Assign)
        for target in line.targets
        if isinstance(target, ast.Name)
    ]
    assert len(set(names)) == len(names) == len(BODY["nodes"]) + 3  # and `client`, `wf`, `run`
