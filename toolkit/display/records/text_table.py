"""Tables of plain text, as wide as the terminal; they load faster than a library."""

from collections.abc import Iterator, Sequence
from unicodedata import combining, east_asian_width

COLUMN_GAP = "  "
MIN_COLUMN_WIDTH = 4  # cells that a column keeps in any terminal


def measure_width(text: str) -> int:
    """Count the cells that a text occupies in a terminal.

    >>> measure_width("tea"), measure_width("茶"), measure_width("e\\u0301")
    (3, 2, 1)
    """
    if text.isascii():
        return len(text)
    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def format_table(
    head: Sequence[str], rows: Sequence[Sequence[str]], room: int, uncut_column: str = ""
) -> Iterator[str]:
    """Lay out a table with a line for each row; long cells are cut.

    Args:
        rows: cells of each row, each without line breaks.
        room: number of cells in a line.
        uncut_column: name of the column that is never cut.

    >>> list(format_table(["id", "what"], [["run_1", "a long story"]], 14, "id"))
    ['id     what', 'run_1  a long…']
    """
    widths = [max(map(measure_width, column)) for column in zip(head, *rows, strict=True)]
    over = sum(widths) + len(COLUMN_GAP) * (len(head) - 1) - room
    cut = [i for i, name in enumerate(head) if name != uncut_column]
    while over > 0 and cut:
        widest = max(cut, key=lambda i: widths[i])
        if widths[widest] <= MIN_COLUMN_WIDTH:
            break
        widths[widest] -= 1
        over -= 1
    for row in (head, *rows):
        cells = (_pad_text(cell, width) for cell, width in zip(row, widths, strict=True))
        yield COLUMN_GAP.join(cells).rstrip()


def format_facts(facts: Sequence[tuple[str, str]], room: int) -> Iterator[str]:
    """Lay out names with their values; long values continue on the next lines.

    >>> list(format_facts([("id", "run_1"), ("what", "a long story")], 12))
    ['id    run_1', 'what  a long', '      story']
    """
    width = max((measure_width(name) for name, _ in facts), default=0)
    for name, value in facts:
        before = _pad_text(name, width) + COLUMN_GAP
        for line in _wrap_text(value, max(MIN_COLUMN_WIDTH, room - width - len(COLUMN_GAP))):
            yield (before + line).rstrip()
            before = " " * (width + len(COLUMN_GAP))


def _pad_text(text: str, width: int) -> str:
    """Cut or fill a text to this number of cells."""
    size = measure_width(text)
    if size <= width:
        return text + " " * (width - size)
    cut = text[: _count_fitting(text, width - 1)] + "…"
    return cut + " " * (width - measure_width(cut))


def _wrap_text(text: str, width: int) -> Iterator[str]:
    """Break a text into lines, between words if possible."""
    while measure_width(text) > width:
        count = _count_fitting(text, width)
        at = text.rfind(" ", 1, count + 1)
        line, text = (text[:at], text[at + 1 :]) if at > 0 else (text[:count], text[count:])
        yield line
    yield text


def _count_fitting(text: str, width: int) -> int:
    """Count the characters of a text, at least one, that fit into this number of cells."""
    total = 0
    for i, character in enumerate(text):
        total += measure_width(character)
        if total > width:
            return max(1, i)
    return len(text)
