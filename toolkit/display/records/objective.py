"""An objective with its unknown words marked, for plans and tasks."""

import re
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from toolkit.display.records.html import IGNORED_BY_MATHJAX

if TYPE_CHECKING:
    from toolkit.contract.plans import PlanReading


def render_objective(objective: str, words: Sequence[str] = ()) -> str:
    """Render an objective, with the words marked that the planner did not understand.

    >>> render_objective("A <b> card on frobs", ["frobs"])
    'A &lt;b&gt; card on <mark title="not understood">frobs</mark>'
    """
    parts, end = [], 0
    for start, stop in _find_words(objective, words):
        mark = f'<mark title="not understood">{escape(objective[start:stop])}</mark>'
        parts += [escape(objective[end:start]), mark]
        end = stop
    return "".join([*parts, escape(objective[end:])])


def describe_reading(reading: "PlanReading") -> str:
    """Describe how much of an objective the planner understood, and which words it did not.

    >>> from toolkit.contract.plans import PlanReading
    >>> describe_reading(PlanReading())
    'understood: all of it'
    >>> describe_reading(PlanReading(understood=0.75, words=["frobs"]))
    'understood: 75 % of its words; not: “frobs”'
    """
    if not reading.words and reading.understood >= 1:
        return "understood: all of it"
    not_read = ", ".join(f"“{word}”" for word in reading.words)
    return f"understood: {reading.understood:.0%} of its words".replace("%", " %") + (
        f"; not: {not_read}" if not_read else ""
    )


def render_reading(objective: str, reading: "PlanReading", question: str | None = None) -> str:
    """Render an objective as the planner understood it, and the question to answer first."""
    paragraph = f"<p><b>Question:</b> {escape(question)}</p>" if question else ""
    return (
        f'<div class="{IGNORED_BY_MATHJAX}">'
        f"<p><b>{render_objective(objective, reading.words)}</b><br>"
        f"<small>{escape(describe_reading(reading))}</small></p>{paragraph}</div>"
    )


def _find_words(text: str, words: Sequence[str]) -> list[tuple[int, int]]:
    """Find the places of whole words, or of their letters in scripts without spaces."""
    spans: list[tuple[int, int]] = []
    for word in dict.fromkeys(filter(None, words)):
        spelled = re.escape(word)
        matches = list(re.finditer(rf"(?<!\w){spelled}(?!\w)", text))
        places = matches or ([] if word.isascii() else list(re.finditer(spelled, text)))
        spans += [place.span() for place in places]
    apart: list[tuple[int, int]] = []
    for start, stop in sorted(spans):
        if not apart or start >= apart[-1][1]:
            apart.append((start, stop))
    return apart
