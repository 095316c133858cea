"""Records as `pandas.DataFrame`s."""

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, get_args, get_origin

from pydantic import BaseModel

from toolkit.contract.base import ErrorInfo

if TYPE_CHECKING:
    import pandas as pd

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
