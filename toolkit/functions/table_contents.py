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


def _read_pandas(value: Any) -> Iterator[Part]:
    """Yield all data with which pandas pickles a value, without properties that it has cached."""
    make, *parts = value.__reduce_ex__(4)
    yield "", make.__qualname__
    for part in parts:
        if isinstance(part, dict):
            part = {name: member for name, member in part.items() if name != "_cache"}
        yield "", part


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
        ("DataFrame", _read_pandas, True),
        ("Series", _read_pandas, True),
        ("Index", _read_pandas, True),
        ("api.extensions.ExtensionArray", _read_pandas, True),
        ("api.extensions.ExtensionDtype", _read_pandas, False),
        ("Timestamp", _read_pandas, False),
        ("Timedelta", _read_pandas, False),
        ("NaT.__class__", lambda _: (), False),
        ("Period", _read_pandas, False),
        ("Interval", _read_pandas, False),
        ("offsets.BaseOffset", _read_pandas, False),
        # Parts of a frame: its blocks of columns, and their places.
        ("core.internals.managers.BaseBlockManager", _read_pandas, False),
        ("_libs.internals.Block", _read_pandas, False),
        ("_libs.internals.BlockPlacement", _read_pandas, False),
        ("_libs.sparse.SparseIndex", _read_pandas, False),
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
