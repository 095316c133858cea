"""Values of any nesting: another leaf makes another digest, and an equal value the same."""

import collections
import dataclasses
import datetime
import functools
import math
import operator
import types
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from toolkit.functions.fingerprints import fingerprint_function

FEW = settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None
)


class Plain:
    """An object with one attribute."""

    def __init__(self, value: object) -> None:
        self.value = value

    def get(self) -> object:
        """Return the attribute."""
        return self.value


class Slotted:
    """An object with one slot."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value


@dataclasses.dataclass(frozen=True)
class Data:
    """A dataclass with one field."""

    value: object


class Model(BaseModel):
    """A model with one field."""

    value: Any


class List(list[object]):
    """A list that may have attributes."""


def _attach(base: type, *given: object) -> Callable[[object], object]:
    """Make a holder that has its value as an attribute beside what its base holds."""
    kind: Any = type("Own", (base,), {})

    def make(value: object) -> object:
        made = kind(*given)
        made.extra = value
        return made

    return make


def _make_class(value: object) -> type:
    return type("Made", (), {"value": value, "__module__": __name__})


def _close_over(value: object) -> Callable[[], object]:
    return lambda: value


def _take_default(value: object) -> Callable[[], object]:
    return lambda chosen=value: chosen


def _make_frame(value: object) -> pd.DataFrame:
    column = np.empty(1, dtype=object)
    column[0] = value
    return pd.DataFrame({"a": column})


def _fill_array(value: object) -> Any:
    array = np.empty(1, dtype=object)
    array[0] = value
    return array


HOLDERS: list[Callable[[Any], object]] = [
    lambda value: [value], lambda value: (value, 1), lambda value: {"key": value},
    lambda value: collections.OrderedDict(key=value), lambda value: collections.deque([value]),
    lambda value: collections.defaultdict(list, key=value), lambda value: slice(value),
    lambda value: types.SimpleNamespace(value=value),
    lambda value: types.MappingProxyType({1: value}),
    Plain, Slotted, Data, lambda value: Model(value=value), lambda value: List([value]),
    lambda value: Plain(value).get, lambda value: {"key": value}.get,
    lambda value: functools.partial(print, value),
    lambda value: functools.partial(print, end=value),
    *map(_attach, (list, int, str, dict, tuple)), _attach(datetime.date, 2026, 1, 1),
    _make_class, _close_over, _take_default, _make_frame, _fill_array, property, staticmethod,
    classmethod, operator.itemgetter,
    lambda value: frozenset([Data((value,))]) if isinstance(value, (int, str)) else [value],
]  # fmt: skip
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.binary(max_size=5),
    st.decimals(),
    st.dates(),
    st.datetimes(timezones=st.none() | st.just(datetime.UTC)),
    st.complex_numbers(),
    st.uuids(),
)
HOLDER = st.sampled_from(HOLDERS)


def digest(value: object) -> str:
    """The digest of a function that closes over a value."""
    fingerprint = fingerprint_function(lambda: value)
    assert fingerprint.unseen == ()
    return fingerprint.digest


def is_same(one: object, other: object) -> bool:
    """Tell whether Python takes two leaves for the same, whatever it is asked about them."""
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    if isinstance(one, complex | Decimal):
        return repr(one) == repr(other)
    return type(one) is type(other) and repr(one) == repr(other)


def nest(holders: list[Callable[[Any], object]], leaf: object) -> object:
    """Put a leaf into holders, one in the other."""
    for hold in holders:
        leaf = hold(leaf)
    return leaf


@pytest.mark.parametrize("hold", HOLDERS)
def test_every_holder_counts(hold: Callable[[Any], object]) -> None:
    """Given a holder of a value, a list or an object, then what is in it makes another digest."""
    for inner in (lambda value: value, lambda value: [value], Plain):
        first = digest(hold(inner(1)))
        assert digest(hold(inner(1))) == first
        assert digest(hold(inner(2))) != first


@FEW
@given(st.lists(HOLDER, max_size=6), LEAVES, LEAVES)
def test_every_leaf_counts(
    holders: list[Callable[[Any], object]], one: object, other: object
) -> None:
    """Given a leaf that changes, at any depth, then the digest differs; else it is the same."""
    assume(not is_same(one, other))
    first = digest(nest(holders, one))
    assert digest(nest(holders, one)) == first
    assert digest(nest(holders, other)) != first


@FEW
@given(st.lists(LEAVES, min_size=1, max_size=40), st.data())
def test_every_item_counts(items: list[object], data: st.DataObject) -> None:
    """Given many items, one of which changes, then the digest of their list differs."""
    place = data.draw(st.integers(0, len(items) - 1))
    other = data.draw(LEAVES.filter(lambda leaf: not is_same(leaf, items[place])))
    changed = [*items[:place], other, *items[place + 1 :]]
    for hold in (list, tuple, lambda values: np.array([*values, None], dtype=object)):
        assert digest(hold(items)) == digest(hold(list(items)))
        assert digest(hold(items)) != digest(hold(changed))


CELLS: dict[str, st.SearchStrategy[Any]] = {
    "int64": st.integers(-100, 100),
    "float64": st.floats(allow_nan=False),
    "bool": st.booleans(),
    "object": st.one_of(st.integers(), st.text(max_size=3), st.none(), st.booleans()),
    "str": st.text(st.characters(codec="utf-8"), max_size=3),
    "Int64": st.none() | st.integers(-100, 100),
    "boolean": st.none() | st.booleans(),
    "datetime64[ns]": st.dates(datetime.date(2000, 1, 1), datetime.date(2030, 1, 1)).map(
        pd.Timestamp
    ),
    "category": st.sampled_from(["a", "b", "c"]),
}


@st.composite
def frames(draw: st.DrawFn) -> dict[str, tuple[str, list[object]]]:
    """The columns of a frame: the dtype and the cells of each."""
    rows = draw(st.integers(1, 4))
    names = draw(st.lists(st.text(min_size=1, max_size=3), min_size=1, max_size=4, unique=True))
    return {
        name: (dtype, draw(st.lists(CELLS[dtype], min_size=rows, max_size=rows)))
        for name in names
        for dtype in [draw(st.sampled_from(sorted(CELLS)))]
    }


def build(columns: dict[str, tuple[str, list[object]]]) -> pd.DataFrame:
    """Build the frame of some columns."""
    return pd.DataFrame(
        {name: pd.Series(cells, dtype=dtype) for name, (dtype, cells) in columns.items()}
    )


@FEW
@given(frames(), st.data())
def test_every_cell_counts(
    columns: dict[str, tuple[str, list[object]]], data: st.DataObject
) -> None:
    """Given a frame of any dtypes, then a cell, a name or a label that changes is noticed."""
    name = data.draw(st.sampled_from(sorted(columns)))
    dtype, cells = columns[name]
    place = data.draw(st.integers(0, len(cells) - 1))
    other = data.draw(CELLS[dtype].filter(lambda cell: not is_same(cell, cells[place])))
    changed = {**columns, name: (dtype, [*cells[:place], other, *cells[place + 1 :]])}
    before = digest(build(columns))
    assert digest(build(columns)) == before
    assert digest(build(changed)) != before
    for change in (
        lambda frame: frame.rename(columns={name: name + "x"}),
        lambda frame: frame.rename_axis("x"),
        lambda frame: frame.rename_axis(columns="x"),
        lambda frame: frame.set_axis(range(1, len(frame) + 1)),
        lambda frame: frame.set_flags(allows_duplicate_labels=False),
        lambda frame: frame.assign(**{"a new one": 1}),
    ):
        assert digest(change(build(columns))) != before
