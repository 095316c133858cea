"""The imports at the top of a notebook, found so that they can be done once for all runs."""

import ast
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any


def parse_cells(notebook: Mapping[str, Any], tag: str | None = None) -> Iterator[ast.Module]:
    """Parse the code cells that are Python; if a tag is given, only the cells that have it."""
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        if tag is not None and tag not in cell["metadata"].get("tags", ()):
            continue
        lines = cell["source"].splitlines()
        plain = "\n".join("" if line.lstrip().startswith(("%", "!")) else line for line in lines)
        try:
            yield ast.parse(plain)
        except SyntaxError:
            continue


def find_preloads(notebook: Mapping[str, Any]) -> tuple[str, ...]:
    """List the notebook's imports from installed packages as `module` and `module:name`, in order.

    The author's own modules are left to each run, because their side effects at import may differ.
    A call of `Client.local`, which imports the embedded engine, adds that engine at its place.
    """
    modules: dict[str, None] = {}
    for tree in parse_cells(notebook):
        for node in tree.body:
            if isinstance(node, ast.Import):
                modules |= dict.fromkeys(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [f":{alias.name}" if alias.name != "*" else "" for alias in node.names]
                modules |= dict.fromkeys(f"{node.module}{name}" for name in names)
        if _opens_engine(tree):
            modules["toolkit.local"] = None
    return tuple(
        name for name in modules if _is_installed(name.partition(":")[0].partition(".")[0])
    )


def _opens_engine(tree: ast.Module) -> bool:
    """Check whether code calls `Client.local` or `AsyncClient.local`."""
    return any(
        isinstance(node, ast.Attribute)
        and node.attr == "local"
        and ast.unparse(node.value).rpartition(".")[2] in ("AsyncClient", "Client")
        for node in ast.walk(tree)
    )


def _is_installed(package: str) -> bool:
    if package in sys.stdlib_module_names or package == __name__.partition(".")[0]:
        return True
    try:
        spec = find_spec(package)
    except (ImportError, ValueError):
        return False
    if spec is None or spec.origin is None:
        return False
    homes = {Path(sysconfig.get_path(name)) for name in ("purelib", "platlib")}
    return any(Path(spec.origin).is_relative_to(home) for home in homes)
