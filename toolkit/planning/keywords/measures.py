"""The measures of a text in an objective: "about 150 words", "three sentences", "in French".

Only sure measures count, because the review holds a result to each of them.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from toolkit.contract.plans import Expect
from toolkit.planning.keywords.grammar import Run, compile_rule
from toolkit.planning.keywords.words import TEXT_UNITS, read_number

TOLERANCE = 0.2  # of a number of words or characters that is not exact
_MEASURE = compile_rule(
    "(?P<near>(?:<!number|numbers>){0,2}?)(?P<lower><number|numbers>)"
    "(?:<range|dash>(?P<upper><number|numbers>))?"
    "(?P<gap>(?:<dash|bound>|<!mark|thing|literal|number|and|with|not>){0,2}?)"
    f"(?P<unit><{'|'.join(f'unit:{unit}' for unit in TEXT_UNITS)}>)"
    "(?P<behind>(?:<!mark|number|numbers>|<comma>){0,2})"
)
_LANGUAGE = compile_rule(
    "(?P<onto><onto|into>)?(?P<language><languages>)(?!<thing|unknown>)(?P<into><into>)?"
)
_FORMAT = compile_rule("(?:^|<onto|as|make|article|act|mark|detail>)(?P<format><formats>)")


def read_expect(run: Run) -> Expect | None:
    """Read the measures, the language and the format of a text; None if it has no sure measure."""
    found: dict[str, list[Any]] = {}
    for name, value in _find_measures(run):
        found.setdefault(name, []).append(value)
    sure = {
        name: values[0] for name, values in found.items() if values.count(values[0]) == len(values)
    }
    return Expect(**sure) if sure else None


def _find_measures(run: Run) -> Iterator[tuple[str, object]]:
    for parts in run.find_all(_MEASURE):
        unit, lower = parts["unit"].first["unit"], read_number(parts["lower"].first)
        upper = read_number(parts["upper"].first) or lower
        if 0 < lower <= upper and not _is_part(parts, unit):
            yield unit, _make_amount(unit, lower, upper, _find_bound(parts))
    for parts in run.find_all(_LANGUAGE):
        language = parts["language"].first
        if parts["onto"] or parts["into"] or language.text.startswith(("بال", "لل")):
            yield "language", language["languages"]
    for parts in run.find_all(_FORMAT):
        yield "format", parts["format"].first["formats"]


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


def _find_bound(parts: Mapping[str, Run]) -> str:
    """Find the bound that stands at a number or behind its unit; empty if the number is exact."""
    behind = [term for term in parts["behind"].terms if "about" not in term.meanings]
    terms = [*parts["near"].terms[-1:], *parts["gap"].terms, *behind]
    return next((term["bound"] for term in terms if term["bound"]), "")


def _is_part(parts: Mapping[str, Run], unit: str) -> bool:
    """Return True if a measure belongs to a part: "with two examples", "two sentences each"."""
    near, count = parts["near"], parts["lower"].first
    last = Run(near.terms[-1:])
    if count["numbers"] == "1" and not last.has("onto", "only") and count.text.lower() != "one":
        return True  # an article
    if near.has("each") or parts["behind"].has("each"):
        return True
    if last.has("not", "definite") and not last.has("bound"):
        return True
    return unit not in {"words", "characters"} and near.has("with")
