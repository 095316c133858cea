"""The contents of arrays and tables, for their digests: NumPy, pandas, Polars and PyArrow.

This module imports none of these libraries: their values exist only if the caller imported them.
"""

import io
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any

from toolkit.functions.value_contents import (
    Attribute,
    Content,
    Key,
    Part,
    UnknownContentError,
    is_array_type,
    list_parts,
    pack_items,
)

# Dates with these frequencies follow a rule that the frequency's name does not show.
_CUSTOM_FREQUENCY = "Custom"


def _read_array(value: Any) -> Iterator[Part]:
    np = sys.modules["numpy"]
    yield from _read_array_items(value)
    if type(value.base) is np.ndarray:  # a change of a view changes its base, and the reverse
        yield Attribute("base"), value.base


def read_subclassed_array(value: Any) -> Iterator[Part]:
    """Yield the content of an instance of a class derived from NumPy's array."""
    np = sys.modules["numpy"]
    yield from _read_array_items(np.ndarray.view(value, np.ndarray))


def _read_array_items(value: Any) -> Iterator[Part]:
    flags = value.flags
    yield "", (value.shape, flags.c_contiguous, flags.f_contiguous)
    yield "", value.dtype
    if value.dtype.hasobject:
        if value.dtype.names is not None:
            raise UnknownContentError
        yield from _read_objects(value.ravel().tolist())
    else:
        yield "", value.tobytes()


def _read_objects(items: list[object]) -> Iterator[Part]:
    packed = pack_items(items)
    if packed is not None:
        yield "", packed
        return
    for position, item in enumerate(items):
        yield Key(position), item


def _read_dtype(value: Any) -> list[Part]:
    return list_parts(repr(value), None if value.metadata is None else dict(value.metadata))


def _read_scalar(value: Any) -> Iterator[Part]:
    if value.dtype.hasobject:
        raise UnknownContentError
    yield "", value.dtype
    yield "", value.tobytes()


def _is_pandas(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == "pandas"


def _read_frame(frame: Any) -> Iterator[Part]:
    yield Attribute("columns"), ("", frame.shape)
    yield from _read_index(frame.columns)
    yield from _read_index(frame.index)
    for position in range(frame.shape[1]):
        for _, part in _read_values(frame.iloc[:, position].array):
            yield Key(frame.columns[position]), part
    yield from _read_labels(frame)


def _read_series(series: Any) -> Iterator[Part]:
    yield Attribute("name"), series.name
    yield from _read_index(series.index)
    yield from _read_values(series.array)
    yield from _read_labels(series)


def _read_labels(table: Any) -> Iterator[Part]:
    yield Attribute("attrs"), dict(table.attrs)
    yield "", table.flags.allows_duplicate_labels


def _read_index(index: Any) -> Iterator[Part]:
    pd = sys.modules["pandas"]
    kind = type(index)
    yield "", kind.__name__
    if kind is pd.RangeIndex:
        yield "", (index.start, index.stop, index.step, index.name)
    elif kind is pd.MultiIndex:
        yield "", len(index.levels)
        for name, level, codes in zip(index.names, index.levels, index.codes, strict=True):
            yield Attribute("names"), name
            yield from _read_index(level)
            yield from _read_array_items(sys.modules["numpy"].asarray(codes))
    elif _is_pandas(kind):
        yield Attribute("name"), index.name
        yield "", getattr(index, "freq", None)
        yield from _read_values(index.array)
    else:  # a class of another package
        raise UnknownContentError


def _read_values(values: Any) -> Iterator[Part]:
    """Yield the content of a column's array; the column itself handles the array's identity."""
    yield "", type(values).__name__
    yield from _read_extension_array(values)


def _read_extension_array(values: Any) -> Iterator[Part]:
    pd = sys.modules["pandas"]
    np = sys.modules["numpy"]
    arrays = pd.arrays
    kind = type(values)
    if not _is_pandas(kind):
        raise UnknownContentError
    yield "", values.dtype
    if kind is pd.Categorical:
        yield from _read_array_items(np.asarray(values.codes))
    elif kind in (arrays.DatetimeArray, arrays.TimedeltaArray, arrays.PeriodArray):
        yield "", getattr(values, "freq", None)
        yield from _read_array_items(values.asi8)
    elif kind is arrays.IntervalArray:
        yield from _read_index(values.left)
        yield from _read_index(values.right)
    elif kind in (arrays.IntegerArray, arrays.FloatingArray, arrays.BooleanArray):
        mask = values._mask  # isna() also reports NaN values
        hidden = values._data.copy()  # any data may be under the mask
        hidden[mask] = 0
        yield from _read_array_items(hidden)
        yield from _read_array_items(mask)
    elif kind is arrays.SparseArray:
        yield "", values.fill_value
        yield from _read_values_of_sparse(values)
    elif kind is arrays.NumpyExtensionArray:
        yield from _read_array_items(np.asarray(values))
    else:  # of texts, or of Arrow
        yield from _read_objects(values.astype(object).tolist())


def _read_values_of_sparse(values: Any) -> Iterator[Part]:
    np = sys.modules["numpy"]
    yield "", len(values)
    yield from _read_array_items(np.asarray(values.sp_index.to_int_index().indices))
    yield from _read_array_items(np.asarray(values.sp_values))


def _read_extension_dtype(dtype: Any) -> Iterator[Part]:
    pd = sys.modules["pandas"]
    if not _is_pandas(type(dtype)):
        raise UnknownContentError
    yield "", repr(dtype)
    if isinstance(dtype, pd.CategoricalDtype):
        yield "", dtype.ordered
        if dtype.categories is not None:
            yield from _read_index(dtype.categories)
    elif isinstance(dtype, pd.DatetimeTZDtype):
        yield "", dtype.tz
    elif isinstance(dtype, pd.PeriodDtype):
        yield "", dtype.freq


def _read_time(value: Any) -> list[Part]:
    zone = getattr(value, "tz", None), getattr(value, "fold", 0)
    return list_parts((value.unit, value.asm8.tobytes()), zone)


def _read_frequency(value: Any) -> Iterator[Part]:
    if _CUSTOM_FREQUENCY in type(value).__name__ or not _is_pandas(type(value)):
        raise UnknownContentError
    yield "", (value.n, value.normalize, value.freqstr)
    for name, argument in sorted(value.kwds.items()):
        yield Attribute(name), (name, argument)


def _read_polars_frame(frame: Any) -> Iterator[Part]:
    buffer = io.BytesIO()
    frame.rechunk().write_ipc_stream(buffer)
    yield "", (repr(frame.schema), buffer.getvalue())


def _read_polars_series(series: Any) -> Iterator[Part]:
    yield "", series.name
    yield from _read_polars_frame(series.to_frame())


def _read_arrow_table(table: Any) -> Iterator[Part]:
    pa = sys.modules["pyarrow"]
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    buffer = io.BytesIO()
    with pa.ipc.new_stream(buffer, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    yield "", buffer.getvalue()


def _read_arrow_array(values: Any) -> Iterator[Part]:
    yield from _read_arrow_table(sys.modules["pyarrow"].table({"": values}))


def _read_arrow_schema(value: Any) -> Iterator[Part]:
    pa = sys.modules["pyarrow"]
    if isinstance(value, pa.DataType):
        value = pa.field("", value)
    if isinstance(value, pa.Field):
        value = pa.schema([value])
    yield "", value.serialize().to_pybytes()


# By library, the types with their content functions, and whether the identity of a value matters.
_CONTENTS: Mapping[str, Sequence[tuple[str, Content, bool]]] = {
    "numpy": [
        ("ndarray", _read_array, True),
        ("dtype", _read_dtype, False),
        ("generic", _read_scalar, False),
    ],
    "pandas": [
        ("DataFrame", _read_frame, True),
        ("Series", _read_series, True),
        ("Index", _read_index, True),
        ("api.extensions.ExtensionArray", _read_extension_array, True),
        ("api.extensions.ExtensionDtype", _read_extension_dtype, False),
        ("Timestamp", _read_time, False),
        ("Timedelta", _read_time, False),
        ("NaT.__class__", lambda _: (), False),
        ("Period", lambda value: list_parts((value.ordinal, value.freq)), False),
        ("Interval", lambda value: list_parts((value.left, value.right, value.closed)), False),
        ("offsets.BaseOffset", _read_frequency, False),
    ],
    "polars": [
        ("DataFrame", _read_polars_frame, True),
        ("Series", _read_polars_series, True),
        ("DataType", lambda value: list_parts(repr(value)), False),
        ("DataType.__class__", lambda value: list_parts(repr(value)), False),
    ],
    "pyarrow": [
        ("Table", _read_arrow_table, True),
        ("RecordBatch", _read_arrow_table, True),
        ("Array", _read_arrow_array, True),
        ("ChunkedArray", _read_arrow_array, True),
        ("Schema", _read_arrow_schema, False),
        ("Field", _read_arrow_schema, False),
        ("DataType", _read_arrow_schema, False),
    ],
}


def find_table_content(kind: type) -> tuple[Content, bool] | None:
    """Find the function that reads the content of an array or table type, for a digest.

    Returns:
        The function, and whether the identity of a value matters. None for another type.
    """
    library = kind.__module__.partition(".")[0]
    return _find_library_content(library, kind) if library in _CONTENTS else None


@lru_cache(maxsize=256)
def _find_library_content(library: str, kind: type) -> tuple[Content, bool] | None:
    for name, read, has_identity in _CONTENTS[library]:
        base = attrgetter(name)(sys.modules[library])
        # NumPy's other arrays have attributes, which are read like any class's attributes.
        if issubclass(kind, base) and (kind is base or not is_array_type(base)):
            return read, has_identity
    return None
