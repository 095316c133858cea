"""The promises of the security page: each has tests that exist and are about it."""

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache

from tests.support.source_trees import TESTS, parse_file

PAGE = TESTS.parent / "docs" / "security.md"
PROMISES = tomllib.loads((TESTS / "promises.toml").read_text(encoding="utf-8"))


@cache
def read_test_texts(file: str) -> dict[str, str]:
    """Return the docstring of each test of a file, after the docstring of the file."""
    tree = parse_file(TESTS / file)
    about = ast.get_docstring(tree) or ""
    texts = {
        node.name: f"{about} {node.name} {ast.get_docstring(node) or ''}".lower()
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    # hypothesis makes test cases of state machines, which are assigned to names.
    assigned = {target.id for node in tree.body if isinstance(node, ast.Assign)
             for target in node.targets if isinstance(target, ast.Name)}  # fmt: skip
    return texts | {name: f"{about} {name}".lower() for name in assigned}


def test_page_lists_every_promise() -> None:
    """Given the page, then it has each promise of the list once, each with at least one test."""
    rows = re.findall(r"^\| (P\d+) \| .+ \|$", PAGE.read_text(encoding="utf-8"), re.M)
    assert rows == list(PROMISES)
    assert len(rows) >= 53
    assert [name for name, promise in PROMISES.items() if not promise["tests"]] == []


def find_wrong_tests(promise: str) -> Iterator[str]:
    """Yield the tests of a promise that do not exist, or are not about it."""
    for test in PROMISES[promise]["tests"]:
        file, _, name = test.partition("::")
        about = read_test_texts(file).get(name) if name.lower().startswith("test") else None
        if about is None:
            yield f"{promise}: there is no {test}."
        elif not re.search(PROMISES[promise]["about"], about):
            yield f"{promise} is not the subject of {test}."


def test_each_promise_has_tests() -> None:
    """Given the promises, then the tests of each are listed once, exist, and are about it."""
    assert [name for name, promise in PROMISES.items()
            if len(promise["tests"]) != len(set(promise["tests"]))] == []  # fmt: skip
    assert [wrong for promise in PROMISES for wrong in find_wrong_tests(promise)] == []
