"""The measures of a text in an objective: "about 150 words", "three sentences", "in French".

Only sure measures count, because the review holds a result to each of them.
"""

import math
from collections.abc import Sequence
from typing import Any

from toolkit.contract.plans import Expect
from toolkit.planning.keywords.words import TEXT_UNITS, Term, read_number

MAX_GAP = 2  # words between a number and its unit: "three short sentences"
NEAR = 3  # characters between a bound and its number
TOLERANCE = 0.2  # of a number of words or characters that is not exact
_DASHES = frozenset("-–—~〜～")


def read_expect(terms: Sequence[Term]) -> Expect | None:
    """Read the measures, the language and the format of a text; None if it has no sure measure."""
    measures: dict[str, Any] = {}
    conflicts = set[str]()
    place = 0
    while place < len(terms):
        measure = _read_measure(terms, place)
        if measure is None:
            place += 1
            continue
        unit, amount, place = measure
        if unit in measures:
            conflicts.add(unit)
        measures[unit] = amount
    measures = {unit: amount for unit, amount in measures.items() if unit not in conflicts}
    for name, meaning in (("language", "languages"), ("format", "formats")):
        values = {t[meaning] for i, t in enumerate(terms) if t.has(meaning) and _names(terms, i)}
        if len(values) == 1:
            measures[name] = values.pop()
    return Expect(**measures) if measures else None


def _names(terms: Sequence[Term], i: int) -> bool:
    """Return True if a language or a format is asked for, not only part of a topic."""
    before = terms[i - 1] if i else None
    after = terms[i + 1] if i + 1 < len(terms) else None
    is_end = after is None or (not after.has("thing") and not after.is_unknown)
    if terms[i].has("formats"):
        return before is None or before.has(
            "onto", "as", "make", "article", "act", "mark", "detail"
        )
    return is_end and (
        (before is not None and before.has("onto", "into"))
        or (after is not None and after.has("into"))
        or terms[i].text.startswith(("بال", "لل"))
    )


def _read_measure(terms: Sequence[Term], i: int) -> tuple[str, object, int] | None:
    """Read the measure that begins with a number: its unit, its amount, and the place behind it."""
    number = _read_count(terms, i)
    if number is None:
        return None
    upper, place = number, i + 1
    if place + 1 < len(terms) and _is_range(terms[place]) and _read_count(terms, place + 1):
        upper, place = _read_count(terms, place + 1) or number, place + 2
    end = next(
        (n for n in range(place, min(place + MAX_GAP + 2, len(terms))) if _is_unit(terms[n])), None
    )
    if end is None or any(_separates(t) for t in terms[place:end]) or upper < number:
        return None
    unit = terms[end]["unit"]
    if _is_part(terms, i, end, unit):
        return None
    return unit, _make_amount(unit, number, upper, _find_bound(terms, i, end)), end + 1


def _make_amount(unit: str, lower: int, upper: int, bound: str) -> object:
    if bound == "most":
        return [0, upper]
    if bound == "least":
        return [lower, None]
    if upper > lower:
        return [lower, upper]
    if bound == "about" or unit in {"words", "characters"}:
        margin = round(lower * TOLERANCE, 6)
        return [math.floor(lower - margin), math.ceil(lower + margin)]
    return lower if unit == "items" else [lower, lower]


def _read_count(terms: Sequence[Term], i: int) -> int | None:
    """Read a number; an article that also means "one" is none, unless "in" stands before it."""
    value = read_number(terms[i])
    if value == 1 and not terms[i]["number"]:
        is_alone = i > 0 and terms[i - 1].has("onto", "only")
        return 1 if is_alone or terms[i].text.casefold() == "one" else None
    return value or None


def _is_range(term: Term) -> bool:
    return term.has("range") or (term.has("mark") and term.text in _DASHES)


def _is_unit(term: Term) -> bool:
    return term["unit"] in TEXT_UNITS


def _separates(term: Term) -> bool:
    """Return True if a term between a number and a unit parts them."""
    if term.has("mark"):
        return term.text not in _DASHES
    return term.has("thing", "literal", "number", "and", "with", "not") and not term.has("bound")


def _find_bound(terms: Sequence[Term], i: int, end: int) -> str:
    """Find the bound that stands at a number or behind its unit; empty if the number is exact."""
    before = [t for t in terms[max(0, i - 2) : i] if t.has("bound")]
    behind = [t for t in terms[i + 1 : end] if t.has("bound")]
    for term in terms[end + 1 : end + 3]:
        if term.has("mark") and term.text not in ",，、":
            break
        if term.has("bound") and not term.has("about"):
            behind.append(term)
    near = before[-1:] if before and before[-1].end >= terms[i].start - NEAR else []
    return next((t["bound"] for t in (*near, *behind)), "")


def _is_part(terms: Sequence[Term], i: int, end: int, unit: str) -> bool:
    """Return True if a measure belongs to a part: "with two examples", "two sentences each"."""
    before, after = terms[max(0, i - 2) : i], terms[end + 1 : end + 3]
    behind = next((n for n, t in enumerate(after) if t.has("mark")), len(after))
    if any(t.has("each") for t in (*before, *after[:behind])):
        return True
    if before and before[-1].has("not", "definite") and not before[-1].has("bound"):
        return True
    return unit not in {"words", "characters"} and any(t.has("with") for t in before)
