"""Records as `pandas.DataFrame`s."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pydantic import BaseModel

if TYPE_CHECKING:
    import pandas as pd


def to_data_frame(records: Sequence[BaseModel]) -> "pd.DataFrame":
    """Build a table of one row a record, one column a field; a capability's routing is laid flat.

    >>> from toolkit.contract.tasks import Criteria
    >>> c = Criteria(objective_alignment=1, technical_success=1, output_completeness=0)
    >>> list(to_data_frame([c])["output_completeness"])
    [0.0]
    """
    import pandas as pd

    return pd.DataFrame([flatten_record(record) for record in records])


def flatten_record(record: BaseModel) -> dict[str, object]:
    """Return a record's fields with times as times, and what a table needs of nested ones beside
    them.
    """
    row: dict[str, object] = {}
    for name, field in type(record).model_fields.items():
        value = getattr(record, name)
        label = field.alias or name
        row[label] = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
    source = row.get("source")
    if isinstance(source, Mapping) and "routing" in source:
        row["default_provider"] = source["routing"]["default_provider"] or ""
        row["allowed_connections"] = ", ".join(source["routing"]["allowed_connections"])
    return row
