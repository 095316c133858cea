"""Digests of nested values: they depend on every leaf, and equal values have equal digests."""

import collections
import dataclasses
import datetime
import functools
import operator
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from toolkit.functions.fingerprints import fingerprint_function

FEW = settings(max_examples=50, suppress_health_check=[HealthCheck.too_slow], database=None)


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


def _attach(base: type, *arguments: object) -> Callable[[object], object]:
    """Return a function that makes an instance of a subclass with its value as an attribute."""
    kind: Any = type("Own", (base,), {})

    def make(value: object) -> object:
        holder = kind(*arguments)
        holder.extra = value
        return holder

    return make


HOLDERS: list[Callable[[Any], object]] = [
    lambda value: [value], lambda value: (value, 1), lambda value: {"key": value},
    lambda value: collections.OrderedDict(key=value), lambda value: collections.deque([value]),
    lambda value: collections.defaultdict(list, key=value), lambda value: slice(value),
    lambda value: types.SimpleNamespace(value=value),
    lambda value: types.MappingProxyType({1: value}),
    Plain, Slotted, Data, lambda value: Model(value=value), lambda value: _attach(list, [value])(0),
    lambda value: Plain(value).get, lambda value: {"key": value}.get,
    lambda value: functools.partial(print, value),
    lambda value: functools.partial(print, end=value),
    *map(_attach, (list, int, str, dict, tuple)), _attach(datetime.date, 2026, 1, 1),
    lambda value: type("Class", (), {"value": value, "__module__": __name__}),
    lambda value: lambda: value, lambda value: lambda default=value: default,
    lambda value: pd.DataFrame({"a": pd.Series([value], dtype=object)}),
    lambda value: pd.Series([value], dtype=object).to_numpy(),
    property, staticmethod, classmethod, operator.itemgetter,
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
    """Return the digest of a function that closes over a value."""
    fingerprint = fingerprint_function(lambda: value)
    assert fingerprint.unseen == ()
    return fingerprint.digest


def is_same(first: object, second: object) -> bool:
    """Return whether two leaves have the same type and text."""
    return type(first) is type(second) and repr(first) == repr(second)


def nest(holders: list[Callable[[Any], object]], leaf: object) -> object:
    """Put a leaf into nested holders."""
    for hold in holders:
        leaf = hold(leaf)
    return leaf


@pytest.mark.parametrize("hold", HOLDERS)
def test_digest_depends_on_the_content_of_a_holder(hold: Callable[[Any], object]) -> None:
    """Given a holder of a value, a list or an object, then another content changes the digest."""
    for inner in (lambda value: value, lambda value: [value], Plain):
        first = digest(hold(inner(1)))
        assert digest(hold(inner(1))) == first
        assert digest(hold(inner(2))) != first


@FEW
@given(st.lists(HOLDER, max_size=6), LEAVES, LEAVES)
def test_digest_depends_on_every_leaf(
    holders: list[Callable[[Any], object]], leaf: object, new_leaf: object
) -> None:
    """Given a leaf at any depth, then the digest differs only if the leaf differs."""
    assume(not is_same(leaf, new_leaf))
    first = digest(nest(holders, leaf))
    assert digest(nest(holders, leaf)) == first
    assert digest(nest(holders, new_leaf)) != first


@FEW
@given(st.lists(LEAVES, min_size=1, max_size=40), st.data())
def test_digest_depends_on_every_item(items: list[object], data: st.DataObject) -> None:
    """Given many items, when an item changes, then the digest of their list differs."""
    place = data.draw(st.integers(0, len(items) - 1))
    leaf = data.draw(LEAVES.filter(lambda leaf: not is_same(leaf, items[place])))
    new_items = [*items[:place], leaf, *items[place + 1 :]]
    for hold in (list, tuple, lambda values: np.array([*values, None], dtype=object)):
        assert digest(hold(items)) == digest(hold(list(items)))
        assert digest(hold(items)) != digest(hold(new_items))


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
    """Draw the columns of a frame: the dtype and the cells of each."""
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
def test_digest_depends_on_every_cell(
    columns: dict[str, tuple[str, list[object]]], data: st.DataObject
) -> None:
    """Given a frame, when a cell, a name or a label changes, then the digest differs."""
    name = data.draw(st.sampled_from(sorted(columns)))
    dtype, cells = columns[name]
    place = data.draw(st.integers(0, len(cells) - 1))
    new_cell = data.draw(CELLS[dtype].filter(lambda cell: not is_same(cell, cells[place])))
    new_columns = {**columns, name: (dtype, [*cells[:place], new_cell, *cells[place + 1 :]])}
    before = digest(build(columns))
    assert digest(build(columns)) == before
    assert digest(build(new_columns)) != before
    for change in (
        lambda frame: frame.rename(columns={name: name + "x"}),
        lambda frame: frame.rename_axis("x"),
        lambda frame: frame.rename_axis(columns="x"),
        lambda frame: frame.set_axis(range(1, len(frame) + 1)),
        lambda frame: frame.set_flags(allows_duplicate_labels=False),
        lambda frame: frame.assign(**{"a new one": 1}),
    ):
        assert digest(change(build(columns))) != before
