"""Records as tables of pandas, and of polars and Arrow if they are installed."""

import json
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, get_args, get_origin

from pydantic import BaseModel

from toolkit.contract.base import ErrorInfo
from toolkit.contract.short_tracebacks import MissingLibraryError

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa


# Columns that come first in a table of records with an id, if the records have them.
LEADING_COLUMNS = (
    "id", "capability", "status", "provider", "model", "cost_usd", "latency_ms", "created_at",
)  # fmt: skip
WORK_FIELDS = ("input", "output", "options")  # fields of work that have a column for each member
OTHER_FIELDS = ("data", "prices_usd", "prices_per_hour_usd")  # the same, for any record
ERROR_COLUMNS = ("error.code", "error.message")


def to_data_frame(
    records: Sequence[BaseModel], model: type[BaseModel] | None = None
) -> "pd.DataFrame":
    """Build a table of one row a record with flat columns, as `list_rows` does.

    Args:
        model: the model of the records, so that an empty table has columns, too.

    >>> from toolkit.contract.tasks import Criteria
    >>> c = Criteria(objective_alignment=1, technical_success=1, output_completeness=0)
    >>> list(to_data_frame([c])["output_completeness"])
    [0.0]
    """
    import pandas as pd

    if not records and model is not None:
        return pd.DataFrame(columns=list_columns(model))
    return pd.DataFrame(list_rows(records))


def list_columns(model: type[BaseModel]) -> list[str]:
    """List the columns that a table of such records always has.

    >>> from toolkit.contract.connections import Connection
    >>> list_columns(Connection)[:4]
    ['id', 'provider', 'created_at', 'connection_type']
    """
    columns: list[str] = []
    for name, field in model.model_fields.items():
        if name not in _list_nested_fields(model):
            columns.append(field.alias or name)
        if name == "error":
            columns += ERROR_COLUMNS
    return list(dict.fromkeys([*_list_leading(columns), *columns]))


def list_rows(records: Sequence[BaseModel]) -> list[dict[str, object]]:
    """List the rows of a table, all with the same flat columns.

    The columns in `LEADING_COLUMNS` come first. Each member of the input, of the output and of the
    given options of work is a column, such as `input.objective`. The other plain fields follow.
    Other nested fields have no column: `to_dict` of a handle has them.

    >>> from toolkit.contract.tasks import Criteria
    >>> list_rows([Criteria(objective_alignment=1, technical_success=1, output_completeness=0)])[0]
    {'objective_alignment': 1.0, 'technical_success': 1.0, 'output_completeness': 0.0}
    """
    rows = [flatten_record(record) for record in records]
    members = [_list_members(row) for row in rows]
    fields = (*WORK_FIELDS, *OTHER_FIELDS)
    names = sorted(
        dict.fromkeys(name for row_members in members for name in row_members),
        key=lambda name: fields.index(name.partition(".")[0]),
    )
    columns = [
        name
        for name in names
        if not name.startswith("options.") or any(row_members.get(name) for row_members in members)
    ]
    result = []
    for record, row, row_members in zip(records, rows, members, strict=True):
        nested = _list_nested_fields(type(record))
        plain = {name: value for name, value in row.items() if name not in nested}
        leading = {name: plain.pop(name) for name in _list_leading(plain)}
        result.append({**leading, **{name: row_members.get(name) for name in columns}, **plain})
    return result


def _list_leading(columns: Collection[str]) -> list[str]:
    """List the leading columns, if the records have ids."""
    return [name for name in LEADING_COLUMNS if name in columns] if "id" in columns else []


@cache
def _list_nested_fields(model: type[BaseModel]) -> frozenset[str]:
    """List the fields of a model whose values are records or mappings, or lists of these."""
    return frozenset(
        field.alias or name
        for name, field in model.model_fields.items()
        if _is_nested(field.annotation)
    )


def _is_nested(annotation: object) -> bool:
    """Check whether values of a type are or contain records or mappings.

    >>> _is_nested(list[dict[str, object]]), _is_nested(list[str] | None)
    (True, False)
    """
    kind = get_origin(annotation) or annotation
    if isinstance(kind, type) and issubclass(kind, BaseModel | Mapping):
        return True
    return any(_is_nested(part) for part in get_args(annotation))


def _list_members(row: Mapping[str, object]) -> dict[str, object]:
    """List the members of nested fields that have their own columns, by column name."""
    fields = (*WORK_FIELDS, *OTHER_FIELDS) if "capability" in row else OTHER_FIELDS
    parts = {name: row.get(name) for name in fields}
    output = row.get("output")
    if "output" in fields and isinstance(output, Mapping):
        # The tokens of an answer have a column for each class.
        parts["output"] = {name: value for name, value in output.items() if name != "usage"}
        parts["output.usage"] = output.get("usage")
    return {
        f"{name}.{member}": value
        for name, part in parts.items()
        if isinstance(part, Mapping)
        for member, value in part.items()
    }


def flatten_record(record: BaseModel) -> dict[str, object]:
    """Return a record's fields, with times as `datetime`, and columns for its nested fields."""
    row: dict[str, object] = {}
    for name, field in type(record).model_fields.items():
        value = getattr(record, name)
        label = field.alias or name
        row[label] = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
        if name == "error":  # always, so that a table of successful records has the columns, too
            error = value if isinstance(value, ErrorInfo) else None
            values = (None, None) if error is None else (error.code, error.message)
            row.update(zip(ERROR_COLUMNS, values, strict=True))
    source = row.get("source")
    if isinstance(source, Mapping) and "routing" in source:
        row["default_provider"] = source["routing"]["default_provider"] or ""
        row["allowed_connections"] = ", ".join(source["routing"]["allowed_connections"])
    return row


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
    """Build a polars table from records.

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
    """Build an Arrow table from records.

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
