"""Travel to a worker process: plain values and functions with a name, and nothing else."""

import functools
import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
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
@given(value=PLAIN)
def test_plain_values_arrive_as_they_were(value: Any) -> None:
    """Given any plain value, it arrives equal, and each part of the type that it had."""
    arrived = copy_value(value, "argument")
    assert arrived == value
    assert repr(arrived) == repr(value)


def test_odd_texts_and_numbers_arrive() -> None:
    """Given a lone surrogate, an infinity or a long number, it arrives."""
    assert copy_value(["\ud800", math.inf, 10**4000], "argument") == ["\ud800", math.inf, 10**4000]


NESTED: list[Any] = functools.reduce(lambda inner, _: [inner], range(5000), [])


class Text(str):
    """A text that is more than one."""


@pytest.mark.parametrize(
    ("value", "said"),
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
def test_what_is_not_plain_is_named(value: object, said: str) -> None:
    """Given anything else, one line says what it is and what can travel."""
    with pytest.raises(NotSerializableError, match=said) as caught:
        copy_value(value, "argument")
    assert "\n" not in str(caught.value)


def _closure() -> Any:
    held = 3

    def inner() -> int:
        return held

    return inner


def _main_function() -> Any:
    def work() -> None: ...

    work.__module__, work.__qualname__ = "__main__", "work"
    return work


def _get_shadowed_function() -> Any:
    def double() -> None: ...

    double.__module__, double.__qualname__ = "tests.support.worker_functions", "double"
    return double


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda: 3, "it has no name in"),
        (_closure(), "it has no name in"),
        (_main_function(), "of a script or notebook"),
        (_get_shadowed_function(), "refers to another object"),
        (functools.partial(double, 3), "A partial cannot run"),
        ([].append, "refers to another object|cannot run"),
        (json.JSONDecoder().decode, "A method cannot run"),
        (dict, "A type cannot run"),
    ],
)
def test_functions_without_a_name_are_refused(function: Any, said: str) -> None:
    """Given a function that no other process finds, the flow fails where it asks, in one line."""
    with pytest.raises(NotSerializableError, match=said) as caught:
        next(run_in_process(function))
    assert "\n" not in str(caught.value)


def test_functions_of_modules_have_names() -> None:
    """Given a function of a module, be it built in, it is found by module and name."""
    assert get_function_name(double) == ("tests.support.worker_functions", "double")
    assert get_function_name(math.sqrt) == ("math", "sqrt")


def test_a_step_runs_by_itself() -> None:
    """Given a step in a test without an engine, it is done there, held to what can travel."""
    step: Any = next(run_in_process(divmod, 7, 2))
    assert step.run() == (3, 1)
