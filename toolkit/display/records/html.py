"""Records as HTML; external text is escaped."""

import re
from collections.abc import Mapping, Sequence
from html import escape

from toolkit.display import text
from toolkit.display.records.outline import outline_record

MAX_ROWS = 100  # of a table below a card of facts
MIN_WRAPPED_CHARACTERS = 16  # shortest text that may wrap
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?Z")
MAX_ROOM_CHARACTERS = 28  # of the least room for a line of a wrapped text
# Classes of elements that MathJax 3 and 2 skip, because a formula could link and define.
IGNORED_BY_MATHJAX = "mathjax_ignore tex2jax_ignore"
CAPTION_STYLE = "text-align:left;white-space:nowrap"
CELL_STYLE = "text-align:left;padding:2px 10px 2px 0;vertical-align:top"


def render_table(
    rows: Sequence[Mapping[str, object]],
    columns: Sequence[str],
    caption: str = "",
    *,
    max_rows: int | None = None,
    remainder: str = "",
) -> str:
    """Render a plain table of some columns.

    Args:
        max_rows: highest number of rows; a last row shows the number of omitted rows.
        remainder: words for the number of further rows, if more rows exist than `rows` has.

    >>> "&lt;b&gt;" in render_table([{"name": "<b>"}], ["name"])
    True
    """
    head = "".join(f'<th scope="col" style="{CELL_STYLE}">{escape(c)}</th>' for c in columns)
    body = "".join(
        "<tr>"
        + "".join(f'<td style="{CELL_STYLE}">{render_cell(c, row.get(c))}</td>' for c in columns)
        + "</tr>"
        for row in rows[:max_rows]
    )
    surplus = len(rows) - len(rows[:max_rows])
    remainder = remainder or (f"{surplus} more" if surplus else "")
    if remainder:
        body += f'<tr><td colspan="{len(columns)}" style="{CELL_STYLE}">… and {remainder}</td></tr>'
    title = f"<caption style='{CAPTION_STYLE}'>{escape(caption)}</caption>" if caption else ""
    body = f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
    return f'<table class="{IGNORED_BY_MATHJAX}">{title}{body}</table>'


def fit_cell(table: str) -> str:
    """Let a table scroll within its cell, also by keyboard, instead of being cut off."""
    return f'<div style="overflow-x:auto;max-width:100%" tabindex="0">{table}</div>'


def render_facts(title: str, pairs: Mapping[str, object]) -> str:
    """Render a card of facts: names and values, and a table for each list or schema."""
    flat, sections = outline_record(pairs)
    rows = "".join(
        f'<tr><th scope="row" style="{CELL_STYLE};white-space:nowrap">{escape(name)}</th>'
        f'<td style="{CELL_STYLE}">{escape(value)}</td></tr>'
        for name, value in flat.items()
    )
    below = "".join(
        render_table(section.rows, section.columns, section.title, max_rows=MAX_ROWS)
        for section in sections
    )
    caption = f"<caption style='{CAPTION_STYLE}'><b>{escape(title)}</b></caption>"
    return f'<table class="{IGNORED_BY_MATHJAX}">{caption}{rows}</table>{below}'


def render_reasoning(reasoning: str, name: str = "") -> str:
    """Render reasoning as a fold that a reader opens, or nothing without reasoning.

    >>> render_reasoning(""), "<b>" in render_reasoning("<b>")
    ('', False)
    """
    if not reasoning:
        return ""
    title = f"Reasoning of {name}" if name else "Reasoning"
    return (
        f'<details class="{IGNORED_BY_MATHJAX}"><summary>{escape(title)}</summary>'
        f'<div style="white-space:pre-wrap;max-width:60em">{escape(reasoning)}</div></details>'
    )


def render_cell(column: str, value: object) -> str:
    """Render a value as a cell: short values and times stay on one line, long values may wrap.

    >>> render_cell("created_at", "2026-11-20T09:30:00.123Z")
    '<span style="white-space:nowrap">2026-11-20 09:30:00Z</span>'
    """
    content = text.format_cell(column, value)
    if isinstance(value, str) and _TIME.fullmatch(value):
        content = _TIME.sub(r"\1 \2Z", value)
    elif len(content) >= MIN_WRAPPED_CHARACTERS and " " in content:
        room = min(len(content), MAX_ROOM_CHARACTERS)
        return f'<div style="min-width:{room // 2}em">{escape(content)}</div>'
    return f'<span style="white-space:nowrap">{escape(content)}</span>' if content else ""


def render_bar(part: float) -> str:
    """Render a bar from 0 to 1, hidden from screen readers: the value is next to the bar.

    >>> "width:50%" in render_bar(0.5)
    True
    """
    return (
        '<span class="tk-bar" aria-hidden="true">'
        f'<span style="width:{100 * min(1.0, max(0.0, part)):.0f}%"></span></span>'
    )
