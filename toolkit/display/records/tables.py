"""Records as tables of other libraries, which are used only if they are installed."""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pydantic import BaseModel

from toolkit.contract.short_tracebacks import MissingLibraryError
from toolkit.display.records.data_frame import list_columns, list_rows

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa


def list_flat_rows(records: Sequence[BaseModel]) -> list[dict[str, object]]:
    """List the rows of a table: numbers, texts and times unchanged, nested values as JSON.

    >>> from toolkit.contract.plans import PlanNode
    >>> row = list_flat_rows([PlanNode(id="a", capability="x@1", input={"sizes": [1, 2]})])[0]
    >>> row["id"], row["input.sizes"], row["depends_on"]
    ('a', '[1, 2]', '[]')
    """
    rows = [
        {name: _flatten_value(value) for name, value in row.items()} for row in list_rows(records)
    ]
    # A column has one type, so values of different types become text.
    for name in rows[0] if rows else ():
        kinds = {type(row[name]) for row in rows} - {type(None)}
        if len(kinds) > 1 and not kinds <= {int, float}:
            for row in rows:
                row[name] = None if row[name] is None else str(row[name])
    return rows


def _flatten_value(value: object) -> object:
    if isinstance(value, BaseModel):
        return value.model_dump_json()
    if isinstance(value, Mapping | list | tuple):
        return json.dumps(value, ensure_ascii=False, default=_dump)
    return value


def _dump(value: object) -> object:
    return value.model_dump(mode="json") if isinstance(value, BaseModel) else str(value)


def to_polars(records: Sequence[BaseModel], model: type[BaseModel] | None = None) -> "pl.DataFrame":
    """Build a polars table.

    Args:
        model: model of the records, so that an empty table has columns, too.

    Raises:
        MissingLibraryError: if polars is not installed.
    """
    try:
        import polars
    except ModuleNotFoundError:
        raise MissingLibraryError("polars") from None
    if not records and model is not None:
        return polars.DataFrame(schema=list_columns(model))
    return polars.DataFrame(list_flat_rows(records), infer_schema_length=None)


def to_arrow(records: Sequence[BaseModel], model: type[BaseModel] | None = None) -> "pa.Table":
    """Build an Arrow table.

    Args:
        model: model of the records, so that an empty table has columns, too.

    Raises:
        MissingLibraryError: if pyarrow is not installed.
    """
    try:
        import pyarrow as arrow
    except ModuleNotFoundError:
        raise MissingLibraryError("pyarrow") from None
    if not records and model is not None:
        return arrow.table({name: arrow.nulls(0) for name in list_columns(model)})
    return arrow.Table.from_pylist(list_flat_rows(records))


def export_arrow(
    records: Sequence[BaseModel],
    requested_schema: object = None,
    model: type[BaseModel] | None = None,
) -> object:
    """Export records as an Arrow stream in a PyCapsule, by pyarrow or else by polars.

    Args:
        requested_schema: schema that the reader prefers, as the interface defines it.
        model: model of the records, so that an empty table has columns, too.

    Raises:
        MissingLibraryError: if neither library is installed.
    """
    try:
        return to_arrow(records, model).__arrow_c_stream__(requested_schema)
    except MissingLibraryError as missing:
        try:
            return to_polars(records, model).__arrow_c_stream__(requested_schema)
        except MissingLibraryError:
            raise missing from None
