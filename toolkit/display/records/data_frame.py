"""Records as `pandas.DataFrame`s."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pydantic import BaseModel

from toolkit.contract.base import ErrorInfo

if TYPE_CHECKING:
    import pandas as pd

NESTED_FIELDS = ("input", "options", "output")  # of a run, whose members are columns, too
ERROR_COLUMNS = ("error.code", "error.message")


def to_data_frame(
    records: Sequence[BaseModel], model: type[BaseModel] | None = None
) -> "pd.DataFrame":
    """Build a table of one row a record, one column a field; a capability's routing is laid flat.

    Args:
        records: the records.
        model: what they are, so that a table of none has columns, too.

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
    """List the columns that a table of such records has whatever is in it.

    >>> from toolkit.contract.tasks import Criteria
    >>> list_columns(Criteria)
    ['objective_alignment', 'technical_success', 'output_completeness']
    """
    columns: list[str] = []
    for name, field in model.model_fields.items():
        columns.append(field.alias or name)
        if name == "error":
            columns += ERROR_COLUMNS
    return columns


def list_rows(records: Sequence[BaseModel]) -> list[dict[str, object]]:
    """List the rows of a table, all with the same columns: the fields, and those of runs laid flat.

    Of runs and jobs, each member of an input, an output, and the options that were given is a
    column of its own, such as `input.objective`.

    >>> from toolkit.contract.tasks import Criteria
    >>> list_rows([Criteria(objective_alignment=1, technical_success=1, output_completeness=0)])[0]
    {'objective_alignment': 1.0, 'technical_success': 1.0, 'output_completeness': 0.0}
    """
    rows = [flatten_record(record) for record in records]
    members = [_list_members(row) for row in rows]
    names = sorted(
        dict.fromkeys(name for one in members for name in one),
        key=lambda name: NESTED_FIELDS.index(name.partition(".")[0]),
    )
    shown = [
        name
        for name in names
        if not name.startswith("options.") or any(one.get(name) for one in members)
    ]
    return [
        {**row, **{name: one.get(name) for name in shown}}
        for row, one in zip(rows, members, strict=True)
    ]


def _list_members(row: Mapping[str, object]) -> dict[str, object]:
    """List the members of what a run was given and made, by the names of their columns."""
    if "capability" not in row:
        return {}
    parts = {name: row.get(name) for name in NESTED_FIELDS}
    return {
        f"{name}.{member}": value
        for name, part in parts.items()
        if isinstance(part, Mapping)
        for member, value in part.items()
    }


def flatten_record(record: BaseModel) -> dict[str, object]:
    """Return a record's fields with times as times, and what a table needs of nested ones beside
    them.
    """
    row: dict[str, object] = {}
    for name, field in type(record).model_fields.items():
        value = getattr(record, name)
        label = field.alias or name
        row[label] = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
        if name == "error":  # always, so that a table of what went well has the columns, too
            told = value if isinstance(value, ErrorInfo) else None
            values = (None, None) if told is None else (told.code, told.message)
            row.update(zip(ERROR_COLUMNS, values, strict=True))
    source = row.get("source")
    if isinstance(source, Mapping) and "routing" in source:
        row["default_provider"] = source["routing"]["default_provider"] or ""
        row["allowed_connections"] = ", ".join(source["routing"]["allowed_connections"])
    return row
