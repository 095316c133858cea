"""Transfer to a worker process: plain values and named functions, and nothing else."""

import functools
import json
import math
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.worker_functions import double
from toolkit.plugins import run_in_process
from toolkit.workers.serialization import NotSerializableError, copy_value, get_function_name

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.binary()
PLAIN = st.recursive(
    SCALARS | st.text(st.characters()),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text(st.characters(), max_size=5), inner, max_size=3)
    ),
    max_leaves=10,
)


@settings(max_examples=60)
@example(["\ud800", math.inf, 10**4000])
@given(value=PLAIN)
def test_plain_values_arrive_unchanged(value: Any) -> None:
    """Given any plain value, then it arrives equal, and each part keeps its type."""
    arrived = copy_value(value, "argument")
    assert arrived == value
    assert repr(arrived) == repr(value)


NESTED: list[Any] = functools.reduce(lambda inner, _: [inner], range(5000), [])


class Text(str):
    """A subclass, whose type would be lost."""


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (object(), "contains a object"),
        ([{"a": {1}}], "contains a set"),
        ({1: "a"}, "a key of type int"),
        (Text("a"), "contains a Text"),
        (bytearray(b"a"), "contains a bytearray"),
        pytest.param(10**5000, "cannot be sent", id="long"),
        pytest.param(NESTED, "nested too deeply", id="deep"),
    ],
)
def test_names_a_value_that_is_not_plain(value: object, message: str) -> None:
    """Given any other value, then the error names its type in one line."""
    with pytest.raises(NotSerializableError, match=message) as caught:
        copy_value(value, "argument")
    assert "\n" not in str(caught.value)


def create_function(module: str, name: str) -> Any:
    """Create a function that claims to be another function of a module."""

    def work() -> None: ...

    work.__module__, work.__qualname__ = module, name
    return work


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda: 3, "it has no name in"),
        (create_function("__main__", "work"), "of a script or notebook"),
        (create_function(double.__module__, "double"), "refers to another object"),
        (functools.partial(double, 3), "A partial cannot run"),
        ([].append, "refers to another object|cannot run"),
        (json.JSONDecoder().decode, "A method cannot run"),
        (dict, "A type cannot run"),
    ],
)
def test_rejects_functions_without_a_name(function: Any, message: str) -> None:
    """Given a function that another process cannot find, then the error says so in one line."""
    with pytest.raises(NotSerializableError, match=message) as caught:
        next(run_in_process(function))
    assert "\n" not in str(caught.value)


def test_functions_of_modules_have_names() -> None:
    """Given a function of a module, also a built-in function, then it is found by both names."""
    assert get_function_name(double) == ("tests.support.worker_functions", "double")
    assert get_function_name(math.sqrt) == ("math", "sqrt")


def test_a_step_runs_without_an_engine() -> None:
    """Given a step without an engine, then it runs in place, with the same checks of its values."""
    step: Any = next(run_in_process(divmod, 7, 2))
    assert step.run() == (3, 1)
