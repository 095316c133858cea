"""The text of a magic: its variables are filled in, and an error names its line."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from toolkit.contract.errors import ErrorCode, RequestError, ToolkitError
from toolkit.contract.short_tracebacks import format_code_line
from toolkit.contract.suggestions import ask_meant
from toolkit.input_parsing import find_document_line

_BRACES = re.compile(r"\{\{|\}\}|\{([^\W\d]\w*)\}")
_WHOLE_NAME = re.compile(r"\{([^\W\d]\w*)\}")
_QUOTED_NAME = re.compile(r"`([^`]+)`")


def fill_text(text: str, variables: Mapping[str, Any]) -> str:
    """Replace `{name}` in a text by the variable's value; `{{` and `}}` are braces.

    Braces around other text, as in JSON, stay unchanged.

    >>> fill_text('On {topic}: {{topic}}, {"a": 1}', {"topic": "tea"})
    'On tea: {topic}, {"a": 1}'

    Raises:
        RequestError: `INVALID_REQUEST` if a name has no variable.
    """

    def replace_match(match: "re.Match[str]") -> str:
        if match[1] is None:
            return match[0][0]
        return str(_look_up_variable(match[1], variables))

    return _BRACES.sub(replace_match, text)


def fill_values(value: Any, variables: Mapping[str, Any]) -> Any:
    """Fill in every text of a JSON value; a text that is `{name}` becomes the value itself.

    >>> fill_values({"steps": "{n}", "prompt": "{n} boats"}, {"n": 4})
    {'steps': 4, 'prompt': '4 boats'}

    Raises:
        RequestError: `INVALID_REQUEST` if a name has no variable.
    """
    if isinstance(value, str):
        match = _WHOLE_NAME.fullmatch(value)
        return _look_up_variable(match[1], variables) if match else fill_text(value, variables)
    if isinstance(value, dict):
        return {name: fill_values(member, variables) for name, member in value.items()}
    if isinstance(value, list):
        return [fill_values(member, variables) for member in value]
    return value


def _look_up_variable(name: str, variables: Mapping[str, Any]) -> Any:
    if name not in variables:
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            f"There is no variable `{name}`; define it, or write {{{{{name}}}}} for the braces."
            f" {ask_meant(name, (word for word in variables if word[0] != '_'))}".rstrip(),
        )
    return variables[name]


@contextmanager
def point_at_cell(magic: str, line: str, cell: str, *, is_document: bool = False) -> Iterator[None]:
    """Add to an error raised inside the block the line of the cell that caused it.

    Args:
        is_document: whether the cell is YAML or JSON, in which errors name paths.
    """
    try:
        yield
    except ToolkitError as error:
        lines = [f"%%{magic} {line}", *cell.splitlines()]
        number = _find_place(error, cell) if is_document else None
        if number is None:
            number = _find_name(error, lines)
        if number is not None:
            place = f"line {number + 1} of the cell"
            error.add_note(format_code_line(place, lines[number]))
        raise


def _find_place(error: ToolkitError, cell: str) -> int | None:
    """Find the line of the first wrong place in a document, from the magic's line; None if unknown.

    A place that exists comes before a place whose last part the document lacks.
    """
    paths = [detail.path for detail in error.details if detail.path]
    for path in paths:
        if path.startswith("line "):  # of an unparsable document, counted from the magic's line
            return min(int(path[5:]) - 1, len(cell.splitlines()))
    places = [find_document_line(cell, path) for path in paths]
    exact = [line for line, is_whole in places if line is not None and is_whole]
    around = [line for line, _ in places if line is not None]
    return next(iter(exact or around), None)


def _find_name(error: ToolkitError, lines: list[str]) -> int | None:
    """Find the first line with a name that the error quotes, otherwise the magic's line.

    Returns None if no line matches and the error is not one of a request.
    """
    message = " ".join([error.message, *(detail.message for detail in error.details)])
    for name in _QUOTED_NAME.findall(message):
        for number, text in enumerate(lines):
            if name in text:
                return number
    return 0 if error.code.http_status is not None else None
