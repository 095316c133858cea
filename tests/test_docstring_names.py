"""Names in docstrings and guides exist in the code: parameters, errors and attributes."""

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
    """List the classes that the toolkit defines, each with its file."""
    return [
        (path, node)
        for path, tree in SOURCES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    ]


@cache
def find_known_names() -> set[str]:
    """Return the names of all classes that the toolkit defines or imports, and of built-ins."""
    names = {*dir(builtins), *(node.name for _, node in list_classes())}
    for node in (node for tree in SOURCES.values() for node in ast.walk(tree)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names.update((alias.asname or alias.name).rpartition(".")[2] for alias in node.names)
    return names


def is_known(name: str) -> bool:
    """Return whether an error is one of ours, or exists in the module that it is named with."""
    module, _, short = name.rpartition(".")
    return hasattr(import_module(module), short) if module else short in find_known_names()


def iterate_functions(tree: ast.Module) -> Iterator[tuple[Function, str]]:
    """Yield the functions of a file, with their docstrings."""
    for node in ast.walk(tree):
        if isinstance(node, Function):
            yield node, ast.get_docstring(node) or ""


def list_entries(docstring: str, heading: str) -> list[str]:
    """List the names that a section of a docstring explains."""
    section = re.search(rf"^{heading}:\n((?: {{4}}.*\n?|\n)+)", docstring, re.M)
    return ENTRY.findall(section.group(1)) if section else []


def list_parameters(function: Function) -> set[str]:
    """Return the names of a function's parameters."""
    arguments = function.args
    every = [
        *arguments.posonlyargs,
        *arguments.args,
        *arguments.kwonlyargs,
        arguments.vararg,
        arguments.kwarg,
    ]
    return {parameter.arg for parameter in every if parameter is not None}


def find_wrong_names(tree: ast.Module) -> Iterator[str]:
    """Yield the parameters and errors that docstrings of a file explain and that do not exist."""
    for function, docstring in iterate_functions(tree):
        parameters = list_parameters(function)
        if function.args.kwarg is None:  # `**options` is explained by its names, too
            yield from (name for name in list_entries(docstring, "Args") if name not in parameters)
        yield from (name for name in list_entries(docstring, "Raises") if not is_known(name))


def test_names_in_docstrings_exist() -> None:
    """Given all files, then the parameters and errors in their docstrings exist."""
    wrong = [
        f"{path.relative_to(PACKAGE)}: {name}"
        for path, tree in SOURCES.items()
        for name in find_wrong_names(tree)
    ]
    assert wrong == []


@cache
def find_attributes(name: str) -> set[str]:
    """Return the names of fields, methods and `self` attributes of the classes of a name."""
    names: set[str] = set()
    for node in (node for _, node in list_classes() if node.name == name):
        for child in ast.walk(node):
            if isinstance(child, Function):
                names.add(child.name)
            elif isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
                names.add(child.id)
            elif isinstance(child, ast.Attribute) and isinstance(child.ctx, ast.Store):
                names.add(child.attr)
        for base in node.bases:
            plain = base.value if isinstance(base, ast.Subscript) else base
            if isinstance(plain, ast.Name) and plain.id != name:
                names |= find_attributes(plain.id)
    return names


def test_attributes_in_docstrings_exist() -> None:
    """Given a class, then the attributes under `Attributes:` in its docstring exist."""
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


def test_attributes_in_texts_exist() -> None:
    """Given docstrings, comments and guides, then each `Class.attribute` of ours exists."""
    class_names = {node.name for _, node in list_classes()}
    references = [
        (path, name, attribute)
        for path in [*SOURCES, *PAGES]
        for name, attribute in REFERENCE.findall(path.read_text(encoding="utf-8"))
        if name in class_names
    ]
    assert len(references) >= 20
    assert [
        reference for reference in references if reference[2] not in find_attributes(reference[1])
    ] == []
