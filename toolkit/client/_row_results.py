"""The rows of `client.map`: the cells that are sent, and their results as a table."""

import hashlib
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Union, cast, get_args, get_origin

from toolkit.contract.base import to_canonical_json
from toolkit.contract.maps import MAX_PAGE_ROWS
from toolkit.contract.short_tracebacks import ArgumentError

if TYPE_CHECKING:
    import pandas as pd
    from pydantic import BaseModel


TEXT_COLUMN = "text"  # of rows that are texts
_COLUMN_TYPES: dict[Any, str] = {
    int: "Int64", float: "Float64", bool: "boolean", str: "string", date: "datetime64[us]",
    datetime: "datetime64[us, UTC]",
}  # fmt: skip
NOT_BEGUN: Final = "not begun"  # the status of a row without a job
EMPTY_CELL: Final = "empty cell"
STOPPED: Final = "stopped"  # the reason of a row that the end of its map left out
MAX_PAGE_CHARACTERS: Final = 400_000


def read_rows(rows: Any) -> tuple[list[dict[str, object]], list[str], Any]:
    """Return the rows of a table or of any iterable of mappings or texts.

    Texts have one column, `text`.

    Args:
        rows: a DataFrame or Series of pandas or polars, mappings, or texts.

    Returns:
        the rows, the columns, and the index of pandas, or None without pandas.

    Raises:
        TypeError: for rows that are neither mappings nor texts.
    """
    index = getattr(rows, "index", None) if hasattr(rows, "to_dict") else None
    if isinstance(rows, str | bytes | Mapping):
        raise _make_rows_error(rows)
    if hasattr(rows, "columns") and index is not None:
        records: Sequence[Any] = rows.to_dict("records")
    elif hasattr(rows, "to_dicts"):
        records = rows.to_dicts()
    else:
        try:
            records = list(cast("Iterable[Any]", rows))
        except TypeError:
            raise _make_rows_error(rows) from None
    shaped = [{TEXT_COLUMN: row} if isinstance(row, str) else row for row in records]
    for row in shaped:
        if not isinstance(row, Mapping):
            raise _make_rows_error(row)
    columns = getattr(rows, "columns", None)
    names = [key for row in shaped for key in row] if columns is None else list(columns)
    return [dict(row) for row in shaped], list(dict.fromkeys(map(str, names))), index


def _make_rows_error(value: object) -> ArgumentError:
    return ArgumentError(
        "rows are a DataFrame, a list of mappings, or a list or Series of texts,"
        f" not a {type(value).__name__}"
    )


def make_map_key(name: str, fields: Mapping[str, object], options: Mapping[str, object]) -> str:
    """Make the key of a map: the same for the same call, in any process.

    The options `cache`, `max_cost_usd` and `deadline_s` are no part of it.

    >>> make_map_key("llm.generate", {"objective": "On {n}"}, {"cache": True})
    '33d94b590055f6d9'
    """
    run_options = {
        option: value
        for option, value in options.items()
        if value is not None and option not in ("cache", "max_cost_usd", "deadline_s")
    }
    text = to_canonical_json([name, dict(fields), run_options])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def to_cell(value: object) -> object:
    """Convert the value of a cell to a value of JSON; an empty cell becomes None.

    >>> to_cell(float("nan")), to_cell(2), to_cell(date(2026, 11, 30))
    (None, 2, '2026-11-30')
    """
    if value is None or value != value:  # which is true of NaN
        return None
    if isinstance(value, str | bool | int | float):
        return value.item() if hasattr(value, "item") else value
    if type(value).__module__ == "numpy" and hasattr(value, "item"):
        return to_cell(value.item())
    return str(value)


def split_pages(rows: Sequence[Mapping[str, object]]) -> Iterator[list[Mapping[str, object]]]:
    """Split rows into pages that fit in one request, by their number and size."""
    page: list[Mapping[str, object]] = []
    size = 0
    for row in rows:
        row_size = len(to_canonical_json(dict(row)))
        if page and (len(page) == MAX_PAGE_ROWS or size + row_size > MAX_PAGE_CHARACTERS):
            yield page
            page, size = [], 0
        page.append(row)
        size += row_size
    if page:
        yield page


@dataclass(slots=True)
class RowResult:
    """The result of one row of `map`: an answer with its cost, or the reason why there is none.

    Attributes:
        status: status of its job, or `NOT_BEGUN`.
        value: the answer: an instance of the output model, or the output.
        cost_usd: cost of the result in US dollars, even if it was paid earlier; None if unknown.
        cached: whether the result existed before, so that nothing was paid for it now.
        error: why there is no value, in one sentence; None if there is one.
        reason: why there is no value, as the code of an error, `EMPTY_CELL` or `STOPPED`.
        confidence: probability of the answer by the model's own account; None if not reported.
    """

    status: str
    value: object = None
    cost_usd: float | None = None
    latency_ms: int | None = None
    job_id: str | None = None
    cached: bool = False
    error: str | None = None
    reason: str | None = None
    confidence: float | None = None


def build_frame(
    results: Sequence[RowResult], index: Any, model: "type[BaseModel] | None"
) -> "pd.DataFrame":
    """Build the table of the results: the answer's fields, then facts of the jobs.

    Args:
        index: index of the rows; None numbers them.
        model: the output model, whose fields are columns of their types.
    """
    import pandas as pd

    data: dict[str, Any] = {}
    if model is None:
        names = {
            name: None
            for result in results
            if isinstance(result.value, dict)
            for name in result.value
            if name != "confidence"  # a column of the facts
        }
        for name in names:
            column = [
                result.value.get(name) if isinstance(result.value, dict) else None
                for result in results
            ]
            data[name] = pd.Series(column, dtype=object).convert_dtypes()
    else:
        for name, field in model.model_fields.items():
            column = [getattr(result.value, name, None) for result in results]
            data[name] = pd.Series(column, dtype=_find_column_type(field.annotation))
    facts: dict[str, str] = {
        "status": "string", "cost_usd": "Float64", "latency_ms": "Int64", "job_id": "string",
        "cached": "boolean", "error": "string",
    }  # fmt: skip
    if any(result.confidence is not None for result in results):
        facts["confidence"] = "Float64"
    for name, kind in facts.items():
        column = [getattr(result, name) for result in results]
        data[f"job_{name}" if name in data else name] = pd.Series(column, dtype=kind)
    frame = pd.DataFrame(data)
    if index is not None:
        frame.index = index
    return frame


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
