"""No import cycles, because modules that import each other are not understood or tested alone.

Imports in functions and under `TYPE_CHECKING` count, too: they hide a cycle from the interpreter,
but not from the reader.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import networkx as nx

from tests.support.source_trees import PACKAGE, parse_file


def name_module(path: Path, root: Path) -> str:
    """Return the module name as imports write it: a package without its `__init__`."""
    parts = path.relative_to(root.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def list_imports(path: Path, module: str) -> Iterator[tuple[str, str]]:
    """List the imports of a module: each a module, and the name imported from it, if any."""
    parents = module.split(".") if path.stem == "__init__" else module.split(".")[:-1]
    for node in ast.walk(parse_file(path)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = parents[: len(parents) - node.level + 1] if node.level else []
            source = ".".join([*above, *([node.module] if node.module else [])])
            yield from ((source, alias.name) for alias in node.names)


def build_import_graph(root: Path) -> "nx.DiGraph[str]":
    """Build the graph of a package's modules, with an edge from each module to its imports."""
    modules = {name_module(path, root): path for path in sorted(root.rglob("*.py"))}
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(modules)
    for module, path in modules.items():
        for source, name in list_imports(path, module):
            # The name may be a module; otherwise it is an attribute of the source.
            target = f"{source}.{name}" if f"{source}.{name}" in modules else source
            if target in modules and target != module:
                graph.add_edge(module, target)
    return graph


def find_circles(graph: "nx.DiGraph[str]") -> list[str]:
    """Find a cycle in each group of modules that import each other, as text: `a → b → a`."""
    knots = [knot for knot in nx.strongly_connected_components(graph) if len(knot) > 1]
    circles = [nx.find_cycle(graph.subgraph(knot), min(knot)) for knot in knots]
    return sorted(" → ".join([*(edge[0] for edge in circle), circle[0][0]]) for circle in circles)


def test_finds_cycles_of_every_kind_of_import(tmp_path: Path) -> None:
    """Given cycles by all kinds of imports, when they are searched, then each is named."""
    root = tmp_path / "house"
    texts = {
        "__init__": "def open_door():\n    from house.door import Door\n",  # lazy, in no cycle
        "door": "from house import lock\n",
        "lock": "def turn_key():\n    import house.key\n",
        "key": "if TYPE_CHECKING:\n    from .door import Door\n",
        "roof": "from house.walls import Walls\n",
        "walls": "def carry_roof():\n    from . import roof\n",
        "garden": "import house.door\nimport ast\nfrom house.garden import tree\n",
    }
    root.mkdir()
    for name, text in texts.items():
        (root / f"{name}.py").write_text(text, encoding="utf-8")
    assert find_circles(build_import_graph(root)) == [
        "house.door → house.lock → house.key → house.door",
        "house.roof → house.walls → house.roof",
    ]


def test_package_has_no_import_cycles() -> None:
    """Given the whole package, when its imports are read, then they have no cycle."""
    graph = build_import_graph(PACKAGE)
    assert graph.number_of_edges() > graph.number_of_nodes()
    circles = find_circles(graph)
    assert not circles, "These modules form an import cycle:\n" + "\n".join(circles)
