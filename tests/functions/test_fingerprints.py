"""Fingerprints, which distinguish functions and are keys of the result cache."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from toolkit.functions.fingerprints import fingerprint_function, identify_function

HELPERS = """
def scale(n):
    return n * 2

class Table:
    factor = 3
    def times(self, n):
        return n * self.factor

LIMIT = {"rows": [1, 2]}
"""
MAIN = """
def call(n):
    return scale(n) + Table().times(n) + len(LIMIT)
"""


class LockHolder:
    """An object with unknown content."""

    def __init__(self) -> None:
        self.lock, self.n = threading.Lock(), 1


def define(source: str, **names: object) -> Callable[..., object]:
    """Define the function `call` of a source, as a cell of a notebook does."""
    space: dict[str, Any] = {"__name__": "__main__", **names}
    exec(compile(source, "<cell>", "exec"), space)
    return space["call"]  # type: ignore[no-any-return]


def read(source: str, **names: object) -> str:
    """Return the fingerprint of a source's function, with the globals that it reads."""
    return fingerprint_function(define(source, **names)).digest


def test_ignores_comments_and_line_breaks() -> None:
    """Given the same code with other comments and line breaks, then the digest is the same."""
    moved = "# a comment\n\n\n" + MAIN.replace("return", "# why\n    return")
    assert read(HELPERS + MAIN) == read(HELPERS + moved)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("n * 2", "n * 4"),
        ("factor = 3", "factor = 4"),
        ("n * self.factor", "n + self.factor"),
        ("[1, 2]", "[1, 3]"),
        ("def call(n)", "def call(n=1)"),
        ("+ len", "- len"),
    ],
)
def test_depends_on_every_value_that_a_function_reads(before: str, after: str) -> None:
    """Given a change in a function, class or value that it reads, then the digest differs."""
    source = HELPERS + MAIN
    assert read(source) != read(source.replace(before, after))


def test_distinguishes_lambdas_on_a_line() -> None:
    """Given two lambdas on the same line, then their code distinguishes them."""
    first, second = (lambda n: n + 1), (lambda n: n + 2)
    assert identify_function(first) != identify_function(second)


def test_an_unknown_object_makes_a_function_new() -> None:
    """Given a function that reads an unknown object, then each digest differs, and names it."""
    function = define("def call(): return MODELS['a'].lock", MODELS={"a": LockHolder()})
    first, second = fingerprint_function(function), fingerprint_function(function)
    assert first.unseen == second.unseen == ("`MODELS['a'].lock` (lock)",)
    assert first.digest != second.digest


def test_identity_ignores_changes_of_an_object() -> None:
    """Given a function that closes over an object, then its identity is that object's."""
    make = lambda model: lambda: model  # noqa: E731 - a closure
    model = LockHolder()
    function = make(model)
    before = identify_function(function)
    model.n = 2
    assert identify_function(function) == before
    assert identify_function(make(LockHolder())) != before


def test_reads_deep_and_wide_values() -> None:
    """Given deeply nested values or values with shared parts, then reading them ends."""
    deep: list[object] = []
    for _ in range(20_000):
        deep = [deep]
    wide: object = "leaf"
    for _ in range(100):
        wide = [wide, wide]
    source = "def call(): return VALUE"
    assert read(source, VALUE=deep) == read(source, VALUE=deep) != read(source, VALUE=wide)


def test_reads_recursive_values_once() -> None:
    """Given functions that call each other, then reading them ends."""
    loop: list[object] = []
    loop.append(loop)
    source = "def call(n): return back(n) if LOOP else n\ndef back(n): return call(n - 1)"
    assert read(source, LOOP=loop) == read(source, LOOP=loop)
