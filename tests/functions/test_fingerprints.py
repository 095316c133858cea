"""What tells one function from another, and what the cache of results goes by."""

import textwrap
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
    """An object whose content is not known."""

    def __init__(self) -> None:
        self.lock, self.n = threading.Lock(), 1


def define(source: str, **names: object) -> Callable[..., object]:
    """Define the function `call` of a source, as a cell of a notebook does."""
    space: dict[str, Any] = {"__name__": "__main__", **names}
    exec(compile(textwrap.dedent(source), "<cell>", "exec"), space)
    found: Callable[..., object] = space["call"]
    return found


def read(source: str, **names: object) -> str:
    """The fingerprint of a source's function, with the globals that it reads."""
    return fingerprint_function(define(source, **names)).digest


def test_comments_and_lines_make_no_difference() -> None:
    """Given the same code with other comments, line breaks and places, then it is the same."""
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
def test_whatever_it_reads_makes_another_of_it(before: str, after: str) -> None:
    """Given a change in a function, class or value that it reads, then it is another one."""
    source = HELPERS + MAIN
    assert read(source) != read(source.replace(before, after))


def test_lambdas_of_one_line_differ() -> None:
    """Given two lambdas that `inspect` cannot tell apart, then their code does."""
    first, second = (lambda n: n + 1), (lambda n: n + 2)
    assert identify_function(first) != identify_function(second)


def test_names_an_unknown_object_and_counts_as_new() -> None:
    """Given a function that reads an unknown object, then it differs each time, and names it."""
    function = define("def call(): return MODELS['a'].lock", MODELS={"a": LockHolder()})
    first, second = fingerprint_function(function), fingerprint_function(function)
    assert first.unseen == second.unseen == ("`MODELS['a'].lock` (lock)",)
    assert first.digest != second.digest


def test_keeps_its_identity_while_an_object_changes() -> None:
    """Given a function that closes over an object, then its identity is that object's."""
    make = lambda model: lambda: model  # noqa: E731 - a closure
    model = LockHolder()
    function = make(model)
    before = identify_function(function)
    model.n = 2
    assert identify_function(function) == before
    assert identify_function(make(LockHolder())) != before


def test_reads_deep_and_wide_values() -> None:
    """Given values that are nested deeply or share much, then they are read to an end."""
    deep: list[object] = []
    for _ in range(20_000):
        deep = [deep]
    wide: object = "leaf"
    for _ in range(100):
        wide = [wide, wide]
    source = "def call(): return VALUE"
    assert read(source, VALUE=deep) == read(source, VALUE=deep) != read(source, VALUE=wide)


def test_what_refers_to_itself_is_read_once() -> None:
    """Given functions that call each other, then they are read to an end."""
    loop: list[object] = []
    loop.append(loop)
    source = "def call(n): return back(n) if LOOP else n\ndef back(n): return call(n - 1)"
    assert read(source, LOOP=loop) == read(source, LOOP=loop)
