"""Templates of a run's input, filled with the columns of a row."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from string import Formatter
from typing import Any, cast

from toolkit.contract.base import to_canonical_json
from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.contract.short_tracebacks import ArgumentError
from toolkit.contract.suggestions import explain_unknown

TEXT_COLUMN = "text"  # of rows that are texts
_FORMATTER = Formatter()


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


def list_placeholders(template: str) -> list[str]:
    """List the columns that a template names.

    Raises:
        RequestError: `INVALID_REQUEST` for braces that do not match, or hold more than a name.

    >>> list_placeholders("Translate {text} into {language}; not {{this}}")
    ['text', 'language']
    """
    try:
        parts = list(_FORMATTER.parse(template))
    except ValueError as error:
        raise _make_template_error(template, str(error)) from None
    if any(spec or conversion for _, _, spec, conversion in parts):
        raise _make_template_error(
            template, "a placeholder is only the name of a column, without a format"
        )
    return [name for _, name, _, _ in parts if name is not None]


def _make_template_error(template: str, fault: str) -> RequestError:
    message = f"The template {template!r} cannot be read: {fault}; write {{{{ for a brace."
    return RequestError(ErrorCode.INVALID_REQUEST, message)


def check_columns(fields: Mapping[str, object], columns: Sequence[str]) -> None:
    """Reject templates that name an unknown column.

    Raises:
        RequestError: `INVALID_REQUEST`, with the column that may have been meant.
    """
    for template in fields.values():
        for name in list_placeholders(template) if isinstance(template, str) else ():
            if name in columns:
                continue
            fault = explain_unknown("column", name, columns)
            raise RequestError(ErrorCode.INVALID_REQUEST, f"{fault[:1].upper()}{fault[1:]}.")


def make_map_tag(name: str, fields: Mapping[str, object], options: Mapping[str, object]) -> str:
    """Make the tag that the runs of one call share: the same for the same call, in any process.

    The limits of cost and time are no part of the tag.

    >>> make_map_tag("llm.generate", {"objective": "On {n}"}, {"cache": True})
    'map-33d94b590055f6d9'
    """
    run_options = {
        option: value
        for option, value in options.items()
        if value is not None and option not in ("cache", "max_cost_usd", "deadline_s")
    }
    text = to_canonical_json([name, dict(fields), run_options])
    return f"map-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def make_row_key(body: Mapping[str, object], failures: int) -> str:
    """Make the idempotency key of a row's run: the same for the same request, in any process.

    Args:
        body: the body of the request.
        failures: the number of runs of this row that failed before.
    """
    return hashlib.sha256(to_canonical_json([dict(body), failures]).encode()).hexdigest()


def fill_templates(
    fields: Mapping[str, object], row: Mapping[str, object]
) -> tuple[dict[str, object], str]:
    """Fill the templates among the fields of an input with a row.

    Returns:
        the input, and the first column it needs that is empty in this row, or "" if none is empty.

    >>> fill_templates({"objective": "Classify: {text}", "max_tokens": 9}, {"text": "tea"})
    ({'objective': 'Classify: tea', 'max_tokens': 9}, '')
    """
    filled: dict[str, object] = {}
    for field, template in fields.items():
        if not isinstance(template, str):
            filled[field] = template
            continue
        parts = []
        for literal, name, _, _ in _FORMATTER.parse(template):
            parts.append(literal)
            if name is not None:
                value = row.get(name)
                if value is None or value != value:  # which is true of NaN
                    return {}, name
                parts.append(str(value))
        filled[field] = "".join(parts)
    return filled, ""
