"""Tables between nodes: an Arrow stream if pyarrow or polars is installed, otherwise JSON.

The JSON is frictionless data (`application/vnd.dataresource+json`), which JupyterLab shows as a
table, with the pandas dtype of each field. A table that would not come back unchanged is rejected
instead of silently changed.
"""

import io
import json
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from toolkit.contract.artifacts import ARROW_MEDIA_TYPE, TABLE_MEDIA_TYPE
from toolkit.plugins import Blob

if TYPE_CHECKING:
    import pandas as pd

FRAME_MEDIA_TYPES = frozenset({ARROW_MEDIA_TYPE, TABLE_MEDIA_TYPE})


class FrameError(ValueError):
    """A table that cannot be written without a change."""


def is_frame(value: object) -> bool:
    """Check whether a value is a table of pandas, or exports an Arrow stream."""
    return _is_pandas(value) or hasattr(value, "__arrow_c_stream__")


def write_frame(frame: Any) -> Blob:
    """Write a table, with its dtypes.

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
    """Write a table of pandas in the first form that restores it unchanged."""
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
    """Write a table of pandas as JSON: its rows, and a schema with its dtypes."""
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
