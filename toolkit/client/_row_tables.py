"""Tables of pandas, polars and pyarrow: the rows that a caller gives, and their results."""

import types
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    Literal,
    NamedTuple,
    Union,
    cast,
    get_args,
    get_origin,
)

from pydantic_core import to_jsonable_python

from toolkit.client._row_results import RowResult
from toolkit.contract.base import to_canonical_json
from toolkit.contract.short_tracebacks import ArgumentError, MissingLibraryError

if TYPE_CHECKING:
    import pandas as pd
    from pydantic import BaseModel

Library = Literal["pandas", "polars", "pyarrow"]
TEXT_COLUMN: Final = "text"  # of rows that are texts
_LIBRARIES: Final[tuple[str, ...]] = get_args(Library)
_COLUMN_TYPES: dict[Any, str] = {
    int: "Int64", float: "Float64", bool: "boolean", str: "string", date: "datetime64[us]",
    datetime: "datetime64[us, UTC]",
}  # fmt: skip
_FACTS: Final[dict[str, str]] = {
    "status": "string", "cost_usd": "Float64", "latency_ms": "Int64", "job_id": "string",
    "cached": "boolean", "error": "string",
}  # fmt: skip


class Column(NamedTuple):
    """The values of a column, and its type in pandas; None infers it, `object` is any value."""

    values: list[Any]
    kind: str | None


class RowTable(NamedTuple):
    """The rows of a table.

    Attributes:
        columns: names of all columns.
        index: index of pandas, or None without pandas.
        library: the library of the table; pandas if it is of none.
    """

    rows: list[dict[str, object]]
    columns: list[str]
    index: Any = None
    library: Library = "pandas"


def read_rows(rows: Any) -> RowTable:
    """Return the rows of a table or of any iterable of mappings or texts.

    Texts have one column, `text`.

    Args:
        rows: a DataFrame or Series of pandas or polars, a Table of pyarrow, mappings, or texts.

    Raises:
        TypeError: for rows that are neither mappings nor texts.
        MissingLibraryError: for a table of another library than pandas, if narwhals, which reads
            it, is not installed.
    """
    if isinstance(rows, str | bytes | Mapping):
        raise _make_rows_error(rows)
    index, library, columns = None, "pandas", getattr(rows, "columns", None)
    if hasattr(rows, "to_dict") and hasattr(rows, "index"):
        index = rows.index
        records: Sequence[Any] = list(rows) if columns is None else rows.to_dict("records")
    elif hasattr(rows, "__arrow_c_stream__"):
        table = _open_table(rows)
        columns, library = getattr(table, "columns", None), table.implementation.value
        records = table.to_list() if columns is None else table.rows(named=True)
    else:
        try:
            records = list(cast("Iterable[Any]", rows))
        except TypeError:
            raise _make_rows_error(rows) from None
    shaped = [{TEXT_COLUMN: row} if isinstance(row, str) else row for row in records]
    for row in shaped:
        if not isinstance(row, Mapping):
            raise _make_rows_error(row)
    names = [key for row in shaped for key in row] if columns is None else list(columns)
    if library not in _LIBRARIES:
        library = "pandas"
    return RowTable(
        [dict(row) for row in shaped],
        list(dict.fromkeys(map(str, names))),
        index,
        cast("Library", library),
    )


def _open_table(rows: object) -> Any:
    """Open a table or column of any library by narwhals."""
    try:
        import narwhals
    except ModuleNotFoundError:
        raise MissingLibraryError("narwhals") from None
    try:
        return narwhals.from_native(cast("Any", rows), eager_only=True, allow_series=True)
    except TypeError:
        raise _make_rows_error(rows) from None


def _make_rows_error(value: object) -> ArgumentError:
    return ArgumentError(
        "rows are a DataFrame, a list of mappings, a list or Series of texts, or an artifact,"
        f" not a {type(value).__name__}"
    )


def build_frame(
    results: Sequence[RowResult],
    index: Any,
    model: "type[BaseModel] | None",
    library: Library = "pandas",
) -> Any:
    """Build the table of the results: the answer's fields, then facts of the jobs.

    Args:
        index: index of the rows; None numbers them. Only pandas has one: other tables get a column
            of an index that has a name.
        model: the output model, whose fields are columns of their types.

    Raises:
        ArgumentError: there is no such library.
        MissingLibraryError: the library, or narwhals, is not installed.
    """
    columns = _list_columns(results, model)
    if library != "pandas":
        name = getattr(index, "name", None)
        rows = {} if name is None else {str(name): Column(list(index), None)}
        return _build_other_frame({**rows, **columns}, library)
    import pandas as pd

    frame = pd.DataFrame({name: _build_series(column) for name, column in columns.items()})
    if index is not None:
        frame.index = index
    return frame


def _list_columns(
    results: Sequence[RowResult], model: "type[BaseModel] | None"
) -> dict[str, Column]:
    """List the columns of the results: those of the answers, then the facts."""
    columns: dict[str, Column] = {}
    if model is None:
        answers = [result.value if isinstance(result.value, dict) else {} for result in results]
        for name in dict.fromkeys(name for answer in answers for name in answer):
            if name != "confidence":  # it is one of the facts
                columns[name] = Column([answer.get(name) for answer in answers], None)
    else:
        for name, field in model.model_fields.items():
            values = [getattr(result.value, name, None) for result in results]
            columns[name] = Column(values, _find_column_type(field.annotation))
    has_confidence = any(result.confidence is not None for result in results)
    for name, kind in {**_FACTS, **({"confidence": "Float64"} if has_confidence else {})}.items():
        values = [getattr(result, name) for result in results]
        columns[f"job_{name}" if name in columns else name] = Column(values, kind)
    return columns


def _build_series(column: Column) -> "pd.Series[Any]":
    import pandas as pd

    if column.kind is None:
        return pd.Series(column.values, dtype=object).convert_dtypes()
    series: pd.Series[Any] = pd.Series(column.values, dtype=cast("Any", column.kind))
    return series


def _build_other_frame(columns: Mapping[str, Column], library: str) -> Any:
    """Build a table of polars or pyarrow."""
    if library not in _LIBRARIES:
        raise ArgumentError(f"library is {', '.join(_LIBRARIES)}, not {library!r}")
    try:
        import narwhals as nw

        types_by_kind: dict[str | None, Any] = {
            "Int64": nw.Int64, "Float64": nw.Float64, "boolean": nw.Boolean, "string": nw.String,
            "datetime64[us]": nw.Date, "datetime64[us, UTC]": nw.Datetime("us", "UTC"),
        }  # fmt: skip
        series, backend = {}, cast("Any", library)
        for name, column in columns.items():
            dtype, values = types_by_kind.get(column.kind), column.values
            if dtype is None:
                values = to_jsonable_python(values)
            try:
                series[name] = nw.new_series(name, values, dtype, backend=backend)
            except (TypeError, ValueError):  # values of several types: as JSON
                texts = [None if value is None else to_canonical_json(value) for value in values]
                series[name] = nw.new_series(name, texts, nw.String, backend=backend)
        return nw.from_dict(series, backend=backend).to_native()
    except ModuleNotFoundError as error:
        raise MissingLibraryError(str(error.name)) from None


def _find_column_type(annotation: Any) -> str:
    """Find the type of the column for a field; `object` if the field is no plain value."""
    if get_origin(annotation) is Annotated:
        return _find_column_type(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        inner = [member for member in get_args(annotation) if member is not type(None)]
        return _find_column_type(inner[0]) if len(inner) == 1 else "object"
    if get_origin(annotation) is Literal:
        kinds = {type(choice) for choice in get_args(annotation)}
        return _COLUMN_TYPES.get(kinds.pop(), "object") if len(kinds) == 1 else "object"
    return _COLUMN_TYPES.get(annotation, "object")
