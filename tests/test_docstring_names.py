"""Names in docstrings and guides are those of the code: parameters, errors and attributes."""

import ast
import builtins
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

from tests.support.source_trees import PACKAGE, parse_folder

SOURCES = {
    path: tree for path, tree in parse_folder(PACKAGE).items() if "migrations" not in path.parts
}
Function = ast.FunctionDef | ast.AsyncFunctionDef
ENTRY = re.compile(r"^    \*{0,2}([A-Za-z_][\w.]*)(?:,.*|:.*)$", re.M)

ATTRIBUTE_ENTRY = re.compile(r"^    ([a-z_][\w, ]*):", re.M)
REFERENCE = re.compile(r"`([A-Z][A-Za-z]+)\.([a-z_]\w*)[`(]")
PAGES = [PACKAGE.parent / "README.md", *sorted((PACKAGE.parent / "docs").rglob("*.md"))]


@cache
def list_classes() -> list[tuple[Path, ast.ClassDef]]:
    """The classes that the toolkit defines, each with its file."""
    return [
        (path, node)
        for path, tree in SOURCES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    ]


@cache
def find_known_names() -> set[str]:
    """The names of all classes that the toolkit defines or imports, and the built-in ones."""
    names = {*dir(builtins), *(node.name for _, node in list_classes())}
    for node in (node for tree in SOURCES.values() for node in ast.walk(tree)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names.update((alias.asname or alias.name).rpartition(".")[2] for alias in node.names)
    return names


def is_known(name: str) -> bool:
    """Tell whether an error is one of ours, or of the module that it is named with."""
    module, _, short = name.rpartition(".")
    return hasattr(import_module(module), short) if module else short in find_known_names()


def iterate_functions(tree: ast.Module) -> Iterator[tuple[Function, str]]:
    """The functions of a file, with their docstrings."""
    for node in ast.walk(tree):
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


def find_wrong_names(tree: ast.Module) -> Iterator[str]:
    """The parameters and errors that docstrings of a file explain and that there are not."""
    for function, docstring in iterate_functions(tree):
        parameters = list_parameters(function)
        if function.args.kwarg is None:  # what `**options` takes is explained by name, too
            yield from (name for name in list_entries(docstring, "Args") if name not in parameters)
        yield from (name for name in list_entries(docstring, "Raises") if not is_known(name))


def test_the_names_in_docstrings_exist() -> None:
    """Given all files, then their docstrings explain parameters and errors that there are."""
    wrong = [
        f"{path.relative_to(PACKAGE)}: {name}"
        for path, tree in SOURCES.items()
        for name in find_wrong_names(tree)
    ]
    assert wrong == []


@cache
def find_attributes(name: str) -> set[str]:
    """The names of what the classes of a name have: fields, methods, and what is set on `self`."""
    found: set[str] = set()
    for node in (node for _, node in list_classes() if node.name == name):
        for each in ast.walk(node):
            if isinstance(each, Function):
                found.add(each.name)
            elif isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
                found.add(each.id)
            elif isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store):
                found.add(each.attr)
        for base in node.bases:
            plain = base.value if isinstance(base, ast.Subscript) else base
            if isinstance(plain, ast.Name) and plain.id != name:
                found |= find_attributes(plain.id)
    return found


def test_the_attributes_in_docstrings_exist() -> None:
    """Given a class, then what its docstring explains under `Attributes:` is there."""
    wrong = []
    for path, node in list_classes():
        section = re.search(
            r"^Attributes:\n((?: {4}.*\n?|\n)+)", ast.get_docstring(node) or "", re.M
        )
        for entry in ATTRIBUTE_ENTRY.findall(section.group(1) if section else ""):
            for name in entry.split(", "):
                if name not in find_attributes(node.name):
                    wrong.append(f"{path.relative_to(PACKAGE)}: {node.name}.{name}")
    assert wrong == []


def test_the_attributes_that_texts_name_exist() -> None:
    """Given docstrings, comments and guides, then each `Class.attribute` of ours is there."""
    known = {node.name for _, node in list_classes()}
    named = [
        (path, name, attribute)
        for path in [*SOURCES, *PAGES]
        for name, attribute in REFERENCE.findall(path.read_text(encoding="utf-8"))
        if name in known
    ]
    assert len(named) >= 20
    assert [each for each in named if each[2] not in find_attributes(each[1])] == []
