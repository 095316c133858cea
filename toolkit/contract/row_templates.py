"""Templates over the columns of a row, such as `Classify: {text}`."""

import base64
import hashlib
import math
from collections.abc import Collection, Mapping
from string import Formatter

from toolkit.contract.base import JsonObject, to_canonical_json
from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.contract.suggestions import explain_unknown

_FORMATTER = Formatter()


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


def list_columns(fields: Mapping[str, object]) -> list[str]:
    """List the columns that the templates among the fields of an input name, each once.

    Raises:
        RequestError: `INVALID_REQUEST` for a template that cannot be read.
    """
    templates = [value for value in fields.values() if isinstance(value, str)]
    return list(dict.fromkeys(name for text in templates for name in list_placeholders(text)))


def check_columns(needed: Collection[str], columns: Collection[str]) -> None:
    """Reject templates that name an unknown column.

    Raises:
        RequestError: `INVALID_REQUEST`, with the column that may have been meant.
    """
    for name in needed:
        if name not in columns:
            fault = explain_unknown("column", name, columns)
            raise RequestError(ErrorCode.INVALID_REQUEST, f"{fault[:1].upper()}{fault[1:]}.")


def fill_templates(fields: Mapping[str, object], row: Mapping[str, object]) -> JsonObject:
    """Fill the templates among the fields of an input with the columns of a row.

    >>> fill_templates({"objective": "Classify: {text}", "max_tokens": 9}, {"text": "tea"})
    {'objective': 'Classify: tea', 'max_tokens': 9}
    """
    filled: JsonObject = {}
    for field, template in fields.items():
        if isinstance(template, str):
            parts = []
            for literal, name, _, _ in _FORMATTER.parse(template):
                parts.append(literal if name is None else f"{literal}{row[name]}")
            filled[field] = "".join(parts)
        else:
            filled[field] = template
    return filled


def find_empty(row: Mapping[str, object]) -> str:
    """Find the first column without a value; return "" if all have one.

    >>> find_empty({"n": 1, "text": None})
    'text'
    """
    return next((name for name, value in row.items() if value is None), "")


def to_cell(value: object) -> object:
    """Convert the value of a cell to a value of JSON; an empty cell becomes None.

    >>> from datetime import date
    >>> to_cell(float("nan")), to_cell(2), to_cell(date(2026, 11, 30))
    (None, 2, '2026-11-30')
    """
    if value is None or value != value:  # which is true of NaN
        return None
    if isinstance(value, float) and math.isinf(value):
        return str(value)
    if isinstance(value, str | bool | int | float):
        return value.item() if hasattr(value, "item") else value
    if type(value).__module__ == "numpy" and hasattr(value, "item"):
        return to_cell(value.item())
    return str(value)


def digest_row(row: Mapping[str, object]) -> str:
    """Compute the digest of a row: equal rows have the same, also in other processes.

    >>> digest_row({"text": "tea"})
    'hOSwqyIwvXkrnS707Db3Og'
    """
    digest = hashlib.sha256(to_canonical_json(row).encode()).digest()[:16]
    return base64.urlsafe_b64encode(digest)[:22].decode()
