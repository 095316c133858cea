"""Values that pass between functions and other nodes as artifacts: text, JSON, bytes, tables."""

import io
import json
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic_core import PydanticSerializationError, to_json

from toolkit.contract.artifacts import ARROW_MEDIA_TYPE, TABLE_MEDIA_TYPE
from toolkit.media.signatures import match_signature
from toolkit.plugins import Blob

if TYPE_CHECKING:
    import pandas as pd


FRAME_MEDIA_TYPES = frozenset({ARROW_MEDIA_TYPE, TABLE_MEDIA_TYPE})
BYTES_MEDIA_TYPE = "application/octet-stream"
MAX_SHOWN_BYTES = 64 * 1024  # of a text or JSON that a record contains next to its artifact


class FrameError(ValueError):
    """Raised for a table that cannot be written unchanged, or read with the installed libraries."""


def is_frame(value: object) -> bool:
    """Check whether a value is a table of pandas, or exports an Arrow stream."""
    return _is_pandas(value) or hasattr(value, "__arrow_c_stream__")


def write_frame(frame: Any) -> Blob:
    """Convert a table to the bytes of an artifact, with its dtypes.

    Raises:
        FrameError: if the table would not come back unchanged.
    """
    if _is_pandas(frame):
        return _write_pandas(frame)
    if type(frame).__module__.partition(".")[0] == "polars":
        buffer = io.BytesIO()
        frame.write_ipc_stream(buffer)
        return _make_blob(buffer.getvalue(), frame.columns, len(frame), "polars")
    try:
        import pyarrow as pa
    except ImportError:
        raise FrameError("a table that needs pyarrow (pip install pyarrow)") from None
    table = pa.table(frame)
    return _make_blob(_write_arrow(table), table.column_names, table.num_rows, "pyarrow")


def _write_pandas(frame: "pd.DataFrame") -> Blob:
    """Convert a table of pandas to the first form that restores it unchanged; reject others."""
    import pandas as pd

    reason = ""
    for write in (_write_pandas_arrow, _write_json):
        try:
            blob = write(frame)
            restored_frame: Any = read_frame(blob.data, blob.media_type, blob.metadata)
            pd.testing.assert_frame_equal(frame, restored_frame, check_exact=True, check_freq=False)
        except ImportError:
            continue
        except FrameError as error:
            reason = str(error)
        except (TypeError, ValueError, AssertionError) as error:  # Arrow's errors derive from these
            reason = f"a table that cannot be restored unchanged ({str(error).splitlines()[0]})"
        else:
            return blob
    raise FrameError(reason)


def read_frame(data: bytes, media_type: str, metadata: Mapping[str, object]) -> object:
    """Read a table with the library that wrote it, otherwise with pandas.

    Raises:
        FrameError: if the necessary library is not installed.
    """
    if media_type == TABLE_MEDIA_TYPE:
        return _read_json(data)
    source = metadata.get("frame")
    if source == "polars":
        try:
            import polars as pl
        except ImportError:
            pass
        else:
            return pl.read_ipc_stream(io.BytesIO(data))
    try:
        import pyarrow as pa
    except ImportError:
        raise FrameError("the table is an Arrow stream: pip install pyarrow to read it") from None
    table = pa.ipc.open_stream(io.BytesIO(data)).read_all()
    return table if source == "pyarrow" else table.to_pandas()


def _is_pandas(value: object) -> bool:
    pd = sys.modules.get("pandas")
    return pd is not None and isinstance(value, pd.DataFrame)


def _make_blob(data: bytes, columns: list[str], rows: int, source: str) -> Blob:
    metadata: dict[str, object] = {"frame": source, "rows": rows, "columns": list(columns)}
    media_type = TABLE_MEDIA_TYPE if data[:1] == b"{" else ARROW_MEDIA_TYPE
    return Blob(data, media_type, metadata)


def _write_pandas_arrow(frame: "pd.DataFrame") -> Blob:
    import pyarrow as pa

    table = pa.Table.from_pandas(frame)
    return _make_blob(_write_arrow(table), list(map(str, frame.columns)), len(frame), "pandas")


def _write_arrow(table: Any) -> bytes:
    import pyarrow as pa

    buffer = io.BytesIO()
    with pa.ipc.new_stream(buffer, table.schema) as writer:
        writer.write_table(table)
    return buffer.getvalue()


def _write_json(frame: "pd.DataFrame") -> Blob:
    """Convert a table of pandas to JSON: its rows, and a schema with its dtypes; reject others."""
    import pandas as pd

    names: list[Any] = list(frame.columns)
    plain = isinstance(frame.index, pd.RangeIndex) and frame.index.equals(pd.RangeIndex(len(frame)))
    if not names:
        raise FrameError("a table without columns")
    if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise FrameError("a table whose column names are not unique texts")
    index_name: Any = frame.index.name or "index"
    if frame.index.nlevels > 1 or (not plain and index_name in names):
        raise FrameError("a table whose index cannot be a column (call reset_index() first)")
    columns = {name: frame[name] for name in names}
    if not plain:
        columns = {index_name: frame.index.to_series(), **columns}
    fields = [_describe_column(name, column) for name, column in columns.items()]
    values = [_list_cells(column) for column in columns.values()]
    document = {
        "schema": {
            "fields": fields,
            "index": None if plain else {"name": frame.index.name},
            "pandas_version": pd.__version__,
        },
        "data": [
            dict(zip([field["name"] for field in fields], row, strict=True))
            for row in zip(*values, strict=True)
        ],
    }
    data = json.dumps(document, ensure_ascii=False, allow_nan=False).encode()
    return _make_blob(data, names, len(frame), "pandas")


def _describe_column(name: str, column: "pd.Series[Any]") -> dict[str, object]:
    field: dict[str, object] = {"name": name, "type": "any", "dtype": str(column.dtype)}
    if str(column.dtype) == "category":
        categories = column.cat.categories
        field["ordered"] = bool(column.cat.ordered)
        field["categories"] = {"dtype": str(categories.dtype), "values": _list_cells(categories)}
    return field


def _list_cells(column: Any) -> list[object]:
    """List the cells of a column as JSON values; missing cells are null."""
    import pandas as pd

    cells = column.astype(object).tolist()
    return [
        None
        if cell is None or cell is pd.NA or cell is pd.NaT or cell != cell  # a NaN
        else cell.isoformat()
        if hasattr(cell, "isoformat")
        else cell
        for cell in cells
    ]


def _read_json(data: bytes) -> "pd.DataFrame":
    import pandas as pd

    document = json.loads(data)
    schema = document["schema"]
    columns = {}
    for field in schema["fields"]:
        cells = [row[field["name"]] for row in document["data"]]
        columns[field["name"]] = _make_column(cells, field)
    if schema["index"] is None:
        return pd.DataFrame(columns)
    name, *_ = columns
    index = pd.Index(columns.pop(name).array, name=schema["index"]["name"])
    return pd.DataFrame({key: column.array for key, column in columns.items()}, index=index)


def _make_column(cells: list[object], field: Mapping[str, Any]) -> "pd.Series[Any]":
    import pandas as pd

    kind = field["dtype"]
    if kind == "category":
        description = field["categories"]
        categories = pd.Index(_make_column(description["values"], description))
        dtype = pd.CategoricalDtype(categories, ordered=field["ordered"])
        return pd.Series(pd.Categorical(cells, dtype=dtype))
    if kind.startswith(("datetime64", "timedelta64")):
        series = pd.Series(cells, dtype=object)
        if kind.startswith("timedelta64"):
            return pd.to_timedelta(series).astype(kind)
        return pd.to_datetime(series, utc="," in kind, format="ISO8601").astype(kind)
    return pd.Series(cells, dtype=kind)


class UnwritableValueError(TypeError):
    """Raised for a value that cannot be written as an artifact."""


def write_value(value: object) -> Blob:
    """Convert a value to an artifact with its bytes; in JSON, NaN and infinity become null.

    Raises:
        UnwritableValueError: if nodes cannot pass on the value.

    >>> write_value("tea"), write_value([1, 2]).data
    (Blob(data=b'tea', media_type='text/plain', metadata={}), b'[1,2]')
    """
    if isinstance(value, Blob):
        return value
    if isinstance(value, (bytes, bytearray, memoryview)):
        data = bytes(value)
        return Blob(data, match_signature(data) or BYTES_MEDIA_TYPE)
    try:
        if isinstance(value, str):
            return Blob(value.encode(), "text/plain")
        if is_frame(value):
            return write_frame(value)
        return Blob(
            to_json(value, inf_nan_mode="null", fallback=_convert_number), "application/json"
        )
    except FrameError as error:
        raise UnwritableValueError(str(error)) from None
    except (PydanticSerializationError, RecursionError, UnicodeError, ValueError) as error:
        raise UnwritableValueError(f"a {type(value).__name__} ({_cut(error)})") from None


def read_value(data: bytes, media_type: str, metadata: Mapping[str, object]) -> object:
    """Read the value of an artifact: a text, a JSON value, a table, or otherwise its bytes.

    >>> read_value(b'{"n": 1}', "application/json", {})
    {'n': 1}
    """
    if media_type in FRAME_MEDIA_TYPES:
        return read_frame(data, media_type, metadata)
    if media_type == "application/json":
        return json.loads(data)
    if media_type.startswith("text/"):
        return data.decode("utf-8", "replace")
    return data


def describe_value(blob: Blob) -> dict[str, object]:
    """Describe a value for a record; short text or JSON is included in full.

    >>> describe_value(Blob(b'[1,2]', "application/json"))
    {'media_type': 'application/json', 'value': [1, 2]}
    """
    description: dict[str, object] = {"media_type": blob.media_type}
    if blob.media_type in FRAME_MEDIA_TYPES:
        description |= {
            name: blob.metadata[name] for name in ("rows", "columns") if name in blob.metadata
        }
    elif len(blob.data) > MAX_SHOWN_BYTES:
        return description
    elif blob.media_type == "application/json":
        description["value"] = json.loads(blob.data)
    elif blob.media_type.startswith("text/"):
        description["text"] = blob.data.decode("utf-8", "replace")
    return description


def _convert_number(value: Any) -> object:
    """Convert a number or an array of numpy to a JSON value; raise TypeError for other values."""
    convert = getattr(value, "tolist", None)
    if convert is None or not hasattr(value, "dtype"):
        raise TypeError(f"a {type(value).__name__} is not a JSON value")
    return convert()


def _cut(error: Exception) -> str:
    return str(error).splitlines()[0][:200] if str(error) else type(error).__name__
