"""Differences between two texts, word by word."""

import re
from difflib import SequenceMatcher
from html import escape
from typing import Literal, NamedTuple

from toolkit.display.records.html import IGNORED_BY_MATHJAX

# Comparing takes quadratic time, so longer texts are compared line by line.
MAX_WORDS = 4_000
SHOWN_EDGE = 120  # characters of equal text before and after a difference
WORDS = re.compile(r"\s+|\w+|[^\w\s]")
_LINES = re.compile(r"[^\n]*\n|[^\n]+")
_MARK = "text-decoration:none;border-radius:3px;padding:0 2px;background:"
# Translucent, so that the text keeps its colour by day and by night.
_STYLES = {
    "removed": ("del", f"{_MARK}rgba(224,72,60,.3)"),
    "added": ("ins", f"{_MARK}rgba(40,160,80,.32)"),
}


class TextPart(NamedTuple):
    """A part of two texts: the same in both, only in the first, or only in the second."""

    kind: Literal["same", "removed", "added"]
    text: str


def compare_texts(first: str, second: str) -> list[TextPart]:
    """Compare two texts, and list their parts in order.

    >>> [(part.kind, part.text) for part in compare_texts("a red lid", "a blue lid")]
    [('same', 'a '), ('removed', 'red'), ('added', 'blue'), ('same', ' lid')]
    """
    before, after = WORDS.findall(first), WORDS.findall(second)
    if max(len(before), len(after)) > MAX_WORDS:
        before, after = _LINES.findall(first), _LINES.findall(second)
    parts: list[TextPart] = []
    for _, a, b, c, d in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        old, new = "".join(before[a:b]), "".join(after[c:d])
        if old == new:
            parts.append(TextPart("same", old))
            continue
        parts += [TextPart("removed", old)] if old else []
        parts += [TextPart("added", new)] if new else []
    return parts


def shorten_parts(parts: list[TextPart]) -> list[TextPart]:
    """Shorten long equal parts to their edges.

    >>> len(shorten_parts([TextPart("same", "x" * 1000)])[0].text) < 300
    True
    """
    return [
        TextPart("same", f"{text[:SHOWN_EDGE]} … {text[-SHOWN_EDGE:]}")
        if kind == "same" and len(text) > 3 * SHOWN_EDGE
        else TextPart(kind, text)
        for kind, text in parts
    ]


def format_parts(parts: list[TextPart]) -> str:
    """Format parts as one text, with marks around the differences.

    >>> format_parts(compare_texts("a red lid", "a blue lid"))
    'a [-red-]{+blue+} lid'
    """
    marks = {"same": ("", ""), "removed": ("[-", "-]"), "added": ("{+", "+}")}
    return "".join(f"{marks[kind][0]}{text}{marks[kind][1]}" for kind, text in parts)


def render_parts(parts: list[TextPart]) -> str:
    """Render parts as HTML; `ins` and `del` mark differences by colour and for screen readers.

    >>> "&lt;b&gt;" in render_parts([TextPart("same", "<b>")])
    True
    """
    elements = [
        escape(text)
        if kind == "same"
        else f'<{_STYLES[kind][0]} style="{_STYLES[kind][1]}">{escape(text)}</{_STYLES[kind][0]}>'
        for kind, text in parts
    ]
    style = f'class="{IGNORED_BY_MATHJAX}" style="white-space:pre-wrap;max-width:60em"'
    return f"<div {style}>{''.join(elements)}</div>"
