"""Cached functions: a change of any value that a function reads is noticed.

After each change, the workflow must return the same value as a plain call.
"""

import colorsys
import importlib
import json
import os
import subprocess
import sys
import tomllib
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from toolkit import Client, Workflow

PREAMBLE = """
import abc, array, gc, collections, dataclasses, datetime, decimal, enum, functools, operator, types
import typing
import numpy as np
import pandas as pd
from pydantic import BaseModel, Field, computed_field, field_validator
"""

CELLS = tomllib.loads(Path(__file__).with_name("cells.toml").read_text("utf-8"))
# A cell that defines `call`, and a cell that changes something that `call` reads.
CHANGES: dict[str, dict[str, str]] = CELLS["changes"]
# Cells that define `call`, which reads values of frequent kinds that do not change.
UNCHANGED: dict[str, str] = CELLS["unchanged"]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A client with its own engine."""
    with Client.local(tmp_path_factory.mktemp("data"), sandbox=True) as client:
        yield client


def run_cell(space: dict[str, Any], source: str) -> None:
    """Run a cell."""
    exec(compile(source, "<cell>", "exec"), space)


def define(source: str) -> dict[str, Any]:
    """Run a cell in a new namespace, as a new kernel does."""
    space: dict[str, Any] = {"__name__": "__main__"}
    run_cell(space, PREAMBLE + source)
    return space


def define_all() -> dict[str, Callable[..., object]]:
    """Define the functions that do not change, each in its own namespace."""
    return {name: define(source)["call"] for name, source in UNCHANGED.items()}


def run_all(client: Client, functions: Mapping[str, Callable[..., object]]) -> Any:
    """Run a workflow of cached nodes, and return it."""
    wf = Workflow("changes")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, function in functions.items():
            wf.add(name, function, cache=True)
    return client.workflows.submit(wf).wait(progress=False, check=False)


def run(client: Client, function: Callable[..., object]) -> Any:
    """Run a workflow of one cached node, and return the node."""
    return run_all(client, {"call": function})["call"]


States = list[tuple[Any, dict[str, object]]]


@pytest.fixture(scope="module")
def states(client: Client) -> Iterator[States]:
    """The workflow before and after all changes, and the values of plain calls at that time."""
    spaces = {name: define(cells["cell"]) for name, cells in CHANGES.items()}
    original = colorsys.rgb_to_hsv

    def call_all() -> tuple[Any, dict[str, object]]:
        workflow = run_all(client, {name: space["call"] for name, space in spaces.items()})
        values = {name: space["call"]() for name, space in spaces.items()}
        return workflow, json.loads(json.dumps(values))

    before = call_all()
    for name, cells in CHANGES.items():
        run_cell(spaces[name], cells["change"])
    yield [before, call_all()]
    colorsys.rgb_to_hsv = original


@pytest.mark.parametrize("name", CHANGES)
def test_notices_a_change(states: States, name: str) -> None:
    """Given a change of a value that a cached function reads, then its node notices."""
    (before, values_before), (after, values_after) = states
    assert values_before[name] != values_after[name], "nothing changed"
    assert (before[name].error, after[name].error) == (None, None)
    assert before[name].value == values_before[name]
    assert after[name].value == values_after[name]


@pytest.fixture(scope="module")
def repeats(client: Client) -> list[Any]:
    """The workflows of the unchanged cells, which run twice in each of two namespaces."""
    return [
        run_all(client, functions) for functions in (define_all(), define_all()) for _ in range(2)
    ]


@pytest.mark.parametrize("name", UNCHANGED)
def test_reuses_the_result_of_an_unchanged_function(repeats: list[Any], name: str) -> None:
    """Given cells that run again, also in a new namespace, then the first result is reused."""
    assert [workflow[name].error for workflow in repeats] == [None] * 4
    assert [bool(workflow[name].cached_from) for workflow in repeats[1:]] == [True] * 3
    assert repeats[3][name].value == define(UNCHANGED[name])["call"]()


# A later process runs the unchanged cells, and prints the names of those without a cached result.
LATER = """
import sys
from tests.functions.test_noticed_changes import UNCHANGED, define_all, run_all
from toolkit import Client
with Client.local(sys.argv[1], sandbox=True) as client:
    workflow = run_all(client, define_all())
    print([name for name in UNCHANGED if not workflow[name].cached_from])
"""


@pytest.mark.usefixtures("fork_programs")
def test_reuses_unchanged_results_in_a_new_process(tmp_path: Path) -> None:
    """Given results of the unchanged cells, then another process calls none of them."""
    with Client.local(tmp_path, sandbox=True) as client:
        run_all(client, define_all())
    command = [sys.executable, "-c", LATER, str(tmp_path)]
    assert subprocess.check_output(command, text=True) == "[]\n"


def test_notices_edited_code_once_it_is_loaded(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a module that is edited, then its new code counts after a reload, not before."""
    file = tmp_path / "own_rates.py"
    file.write_text("RATE = 1\ndef scale(n): return n * RATE\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.delitem(sys.modules, "own_rates", raising=False)
    space = define("import own_rates\ndef call(): return own_rates.scale(3)")
    assert run(client, space["call"]).value == 3
    file.write_text("RATE = 20\ndef scale(n): return n * RATE\n")
    assert run(client, space["call"]).value == space["call"]() == 3
    importlib.reload(space["own_rates"])
    node = run(client, space["call"])
    assert (node.value, node.cached_from) == (60, None)
    space["own_rates"].RATE = 5
    assert run(client, space["call"]).value == 15
    del sys.modules["own_rates"]


def test_notices_a_change_of_a_module_imported_in_a_function(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a function that imports the caller's own module, then a change of it is noticed."""
    file = tmp_path / "own_steps.py"
    file.write_text("STEPS = [1]\n")
    monkeypatch.syspath_prepend(tmp_path)
    space = define("def call():\n    from own_steps import STEPS\n    return len(STEPS)")
    assert [run(client, space["call"]).value for _ in range(2)] == [1, 1]
    sys.modules["own_steps"].STEPS.append(2)
    assert run(client, space["call"]).value == 2
    del sys.modules["own_steps"]


def test_does_not_cache_the_result_of_a_call_with_a_change(client: Client, tmp_path: Path) -> None:
    """Given a value that changes while a function runs, then the result is not cached."""
    space = define(
        "RATE = 1\ndef call(gate):\n    with open(gate) as file: file.read()\n    return RATE"
    )
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    wf = Workflow("changing")
    wf.add("call", space["call"], gate=str(gate), cache=True)
    handle = client.workflows.submit(wf)
    with gate.open("w"):
        space["RATE"] = 2
    assert handle.wait(progress=False)["call"].value == 2
    space["RATE"] = 1
    gate.unlink()
    gate.write_text("")
    node = client.workflows.submit(wf).wait(progress=False)["call"]
    assert (node.value, node.cached_from) == (1, None)


def test_ignores_a_cached_property_that_a_call_fills(tmp_path: Path) -> None:
    """Given a `cached_property` that a call fills, then a new kernel reuses the result."""
    source = (
        "class Rates:\n    @functools.cached_property\n    def n(self): return [1]\n"
        "RATES = Rates()\ndef call(): return RATES.n"
    )
    for is_cached in (False, True):
        with Client.local(tmp_path, sandbox=True) as client:
            node = run(client, define(source)["call"])
            assert (node.value, bool(node.cached_from)) == ([1], is_cached)


def test_warns_once_of_opaque_objects() -> None:
    """Given a function that reads several opaque objects, then one warning names all of them."""
    space = define("import threading\nA, B = threading.Lock(), iter([1])\ndef call(): A, B")
    with pytest.warns(UserWarning, match="cannot see into") as caught:
        Workflow("opaque").add("call", space["call"], cache=True)
    assert len(caught) == 1
    assert "`A` (lock)" in str(caught[0].message)
    assert "`B` (list_iterator)" in str(caught[0].message)
    assert caught[0].filename == __file__


def test_ignores_a_stale_functools_cache(client: Client) -> None:
    """Given a `functools.cache` filled before its function changed, then it hides no change."""
    space = define("RATE = 1\n@functools.cache\ndef rate(): return RATE\ndef call(): return rate()")
    assert run(client, space["call"]).value == 1
    space["RATE"] = 2
    assert run(client, space["call"]).value == 1  # from the kernel's `functools.cache`
    space["rate"].cache_clear()
    assert run(client, space["call"]).value == 2


def test_equal_functions_read_their_own_values(client: Client) -> None:
    """Given functions that close over equal lists, then each reads its own changed list."""

    def make(steps: list[int]) -> Callable[[], int]:
        return lambda: sum(steps)

    first, second = [1], [1]
    wf = Workflow("equal")
    wf.add("first", make(first), cache=True)
    wf.add("second", make(second), cache=True)
    second.append(5)
    workflow = client.workflows.submit(wf).wait(progress=False)
    assert (workflow["first"].value, workflow["second"].value) == (1, 6)
