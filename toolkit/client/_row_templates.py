"""Templates of a run's input, filled with the columns of a row."""

from collections.abc import Iterable, Mapping, Sequence
from string import Formatter
from typing import Any, cast

from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.contract.suggestions import explain_unknown

_FORMATTER = Formatter()


def read_rows(rows: Any) -> tuple[list[dict[str, object]], Any]:
    """Return the rows of a table or of any iterable of mappings, and the index they have.

    Args:
        rows: a DataFrame of pandas or polars, or mappings.

    Returns:
        the rows, and the index of a pandas frame, or none.

    Raises:
        TypeError: for rows that are no mappings.
    """
    if hasattr(rows, "columns") and hasattr(rows, "index"):
        return cast("list[dict[str, object]]", rows.to_dict("records")), rows.index
    found = rows.to_dicts() if hasattr(rows, "to_dicts") else list(cast("Iterable[Any]", rows))
    if not all(isinstance(row, Mapping) for row in found):
        raise TypeError("rows are a DataFrame or mappings, such as a list of dicts")
    return [dict(row) for row in found], None


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
        raise _make_template_error(template, "a column is named and not formatted")
    return [name for _, name, _, _ in parts if name is not None]


def _make_template_error(template: str, fault: str) -> RequestError:
    message = f"The template {template!r} cannot be read: {fault}; write {{{{ for a brace."
    return RequestError(ErrorCode.INVALID_REQUEST, message)


def check_columns(fields: Mapping[str, object], columns: Sequence[str]) -> None:
    """Refuse templates that name a column that there is not.

    Raises:
        RequestError: `INVALID_REQUEST`, with the column that may have been meant.
    """
    for template in fields.values():
        for name in list_placeholders(template) if isinstance(template, str) else ():
            if name in columns:
                continue
            told = explain_unknown("column", name, columns)
            raise RequestError(ErrorCode.INVALID_REQUEST, f"{told[:1].upper()}{told[1:]}.")


def make_map_tag(name: str, fields: Mapping[str, object], options: Mapping[str, object]) -> str:
    """Make the tag that the runs of one call share: the same for the same call, in any process.

    How much may be spent and how long it may take is no part of it.

    >>> make_map_tag("llm.generate", {"objective": "On {n}"}, {"cache": True})
    'map-33d94b590055f6d9'
    """
    import hashlib

    from toolkit.contract.base import to_canonical_json

    chosen = {
        option: value
        for option, value in options.items()
        if value is not None and option not in ("cache", "max_cost_usd", "deadline_s")
    }
    spelled = to_canonical_json([name, dict(fields), chosen])
    return f"map-{hashlib.sha256(spelled.encode()).hexdigest()[:16]}"


def make_row_key(body: Mapping[str, object], failures: int) -> str:
    """Make the idempotency key of a row's run: the same for the same request, in any process.

    Args:
        body: the body of the request.
        failures: the number of runs of this row that failed before.
    """
    import hashlib

    from toolkit.contract.base import to_canonical_json

    return hashlib.sha256(to_canonical_json([dict(body), failures]).encode()).hexdigest()


def fill_templates(
    fields: Mapping[str, object], row: Mapping[str, object]
) -> tuple[dict[str, object], str]:
    """Fill the templates among the fields of an input with a row.

    Returns:
        the input, and the first column it needs that is empty in this row; "" where none is.

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
                if value is None or value != value:  # as NaN is
                    return {}, name
                parts.append(str(value))
        filled[field] = "".join(parts)
    return filled, ""
