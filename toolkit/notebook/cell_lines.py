"""Find the line of a magic's cell that caused an error."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from toolkit.contract.errors import ToolkitError
from toolkit.contract.short_tracebacks import format_code_line
from toolkit.input_parsing import find_document_line

_QUOTED_NAME = re.compile(r"`([^`]+)`")


@contextmanager
def point_at_cell(magic: str, line: str, cell: str, *, is_document: bool = False) -> Iterator[None]:
    """Add to an error raised inside the block the line of the cell that caused it.

    Args:
        magic: name of the cell's magic.
        line: text after the magic's name.
        cell: text below the magic's line.
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
    """Find the line of the first wrong place in a document, counted from the magic's line.

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
    """Find the first line with a name that the error quotes, otherwise the magic's line."""
    message = " ".join([error.message, *(detail.message for detail in error.details)])
    for name in _QUOTED_NAME.findall(message):
        for number, text in enumerate(lines):
            if name in text:
                return number
    return 0 if error.code.http_status is not None else None
