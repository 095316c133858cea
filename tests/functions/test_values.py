"""Values that pass between nodes: they are restored unchanged, or rejected."""

import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pydantic import BaseModel

from toolkit.functions.values import UnwritableValueError, read_value, write_value

TIMES = pd.to_datetime(["2026-01-01T10:00:00.123456", None])
FRAMES = {
    "plain": pd.DataFrame({"a": [1, 2], "b": [0.1 + 0.2, np.nan], "c": [True, False]}),
    "texts": pd.DataFrame({"t": ["tea", None]}, dtype="string"),
    "nullable": pd.DataFrame({"n": pd.array([1, None], dtype="Int64")}),
    "times": pd.DataFrame({"at": TIMES, "utc": TIMES.tz_localize("UTC")}),
    "spans": pd.DataFrame({"took": pd.to_timedelta(["1s", "2 days"])}),
    "categories": pd.DataFrame({"kind": pd.Categorical(["b", None], ["a", "b"], ordered=True)}),
    "index": pd.DataFrame({"a": [1, 2]}, index=pd.Index(["x", "y"], name="key")),
    "rows": pd.DataFrame({"a": [1, 2, 3]})[1:],
    "empty": pd.DataFrame({"a": pd.Series([], dtype="float64")}),
    "lists": pd.DataFrame({"a": [[1], [2, 3]]}),
}


class Note(BaseModel):
    """A model of pydantic."""

    text: str


@dataclass
class Point:
    """A dataclass."""

    x: int


def pass_on(value: object) -> Any:
    """Write a value, and read it again."""
    blob = write_value(value)
    return read_value(blob.data, blob.media_type, blob.metadata)


@pytest.mark.parametrize("name", FRAMES)
def test_restores_a_table_with_its_types(name: str) -> None:
    """Given a table, then the restored table has the same cells and types."""
    pd.testing.assert_frame_equal(pass_on(FRAMES[name]), FRAMES[name], check_exact=True)


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pd.DataFrame({1: [1]}), "unique texts"),
        (pd.DataFrame(), "without columns"),
        (pd.DataFrame({"a": [1]}, index=pd.MultiIndex.from_tuples([(1, 2)])), "reset_index"),
        (pd.DataFrame({"a": [(1, 2)]}), "cannot be restored unchanged"),
        (pd.DataFrame({"a": [object()]}), "cannot be restored unchanged"),
    ],
)
def test_rejects_a_table_that_would_change(
    frame: pd.DataFrame, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a table that JSON would change, then it is rejected with a solution."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UnwritableValueError, match=message):
        write_value(frame)


@pytest.mark.parametrize(
    ("value", "media_type", "read"),
    [
        ("Tee & 日本", "text/plain", "Tee & 日本"),
        (b"\0\1", "application/octet-stream", b"\0\1"),
        (bytearray(b"\x89PNG\r\n\x1a\n"), "image/png", b"\x89PNG\r\n\x1a\n"),
        ({"a": [1, None, "x"]}, "application/json", {"a": [1, None, "x"]}),
        (None, "application/json", None),
        (Note(text="tea"), "application/json", {"text": "tea"}),
        ([Point(1)], "application/json", [{"x": 1}]),
        (datetime(2026, 1, 1, tzinfo=UTC), "application/json", "2026-01-01T00:00:00Z"),
        ({"n": np.int64(3), "m": np.array([1.5])}, "application/json", {"n": 3, "m": [1.5]}),
        (float("nan"), "application/json", None),
    ],
)
def test_restores_a_value_by_its_media_type(value: object, media_type: str, read: Any) -> None:
    """Given a text, bytes or JSON, then its media type says how it is read."""
    assert write_value(value).media_type == media_type
    assert pass_on(value) == read


def test_rejects_a_text_that_cannot_be_encoded() -> None:
    """Given half of a character, then it is rejected, because encoding would change it."""
    with pytest.raises(UnwritableValueError, match="a str"):
        write_value("\ud800")


@pytest.mark.parametrize("module", ["polars", "pyarrow"])
def test_passes_tables_of_other_libraries_by_arrow(module: str) -> None:
    """Given a table of polars or pyarrow, then the restored table is of the same library."""
    library: Any = pytest.importorskip(module)
    factory = {"polars": "DataFrame", "pyarrow": "table"}[module]
    table = getattr(library, factory)({"a": [1, 2], "b": ["x", None]})

    read = pass_on(table)

    assert type(read) is type(table)
    assert read.equals(table)
