"""Names in docstrings are those of the code: parameters under `Args:`, errors under `Raises:`."""

import ast
import builtins
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import toolkit

ROOT = Path(toolkit.__file__).parent
FILES = sorted(path for path in ROOT.rglob("*.py") if "migrations" not in path.parts)
TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in FILES}
Function = ast.FunctionDef | ast.AsyncFunctionDef
ENTRY = re.compile(r"^    \*{0,2}([A-Za-z_][\w.]*)(?:,.*|:.*)$", re.M)


def find_known_names() -> set[str]:
    """The names of all classes that the toolkit defines or imports, and the built-in ones."""
    names = set(dir(builtins))
    for node in (node for tree in TREES.values() for node in ast.walk(tree)):
        if isinstance(node, ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names.update((alias.asname or alias.name).rpartition(".")[2] for alias in node.names)
    return names


KNOWN_NAMES = find_known_names()


def is_known(name: str) -> bool:
    """Whether an error is one of ours, or of the module that it is named with."""
    module, _, short = name.rpartition(".")
    return hasattr(import_module(module), short) if module else short in KNOWN_NAMES


def iterate_functions(path: Path) -> Iterator[tuple[Function, str]]:
    """The functions of a file, with their docstrings."""
    for node in ast.walk(TREES[path]):
        if isinstance(node, Function):
            yield node, ast.get_docstring(node) or ""


def list_entries(docstring: str, heading: str) -> list[str]:
    """The names that a section of a docstring explains."""
    section = re.search(rf"^{heading}:\n((?: {{4}}.*\n?|\n)+)", docstring, re.M)
    return ENTRY.findall(section.group(1)) if section else []


def list_parameters(function: Function) -> set[str]:
    """The names of a function's parameters."""
    given = function.args
    every = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    return {one.arg for one in every if one is not None}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_the_names_in_docstrings_exist(path: Path) -> None:
    """Given a file, then its docstrings explain parameters and errors that there are."""
    wrong = []
    for function, docstring in iterate_functions(path):
        parameters = list_parameters(function)
        if function.args.kwarg is None:  # what `**options` takes is explained by name, too
            wrong += [name for name in list_entries(docstring, "Args") if name not in parameters]
        wrong += [name for name in list_entries(docstring, "Raises") if not is_known(name)]
    assert wrong == []
