"""The measures of a text in an objective: "about 150 words", "three sentences", "in French".

Only sure measures count, because the review holds a result to each of them.
"""

import math
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from toolkit.contract.plans import Expect
from toolkit.planning.keywords.grammar import Chunk, compile_rule
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


def read_expect(run: Chunk) -> Expect | None:
    """Read the measures, the language and the format of a text; None if it has no sure measure."""
    measures = defaultdict[str, list[Any]](list)
    for parts in run.find_all(_MEASURE):
        unit, lower = parts["unit"].first["unit"], read_number(parts["lower"].first)
        upper = read_number(parts["upper"].first) or lower
        if 0 < lower <= upper and not _is_part(parts, unit):
            measures[unit].append(_make_amount(unit, lower, upper, _find_bound(parts)))
    for parts in run.find_all(_LANGUAGE):
        language = parts["language"].first
        if parts["onto"] or parts["into"] or language.text.startswith(("بال", "لل")):
            measures["language"].append(language["languages"])
    for parts in run.find_all(_FORMAT):
        measures["format"].append(parts["format"].first["formats"])
    exact = {name: v[0] for name, v in measures.items() if v == v[:1] * len(v)}
    return Expect(**exact) if exact else None


def _make_amount(unit: str, lower: int, upper: int, bound: str) -> object:
    if bound == "most":
        return [0, upper]
    if bound == "least":
        return [lower, None]
    if lower == upper and (bound == "about" or unit in {"words", "characters"}):
        margin = round(lower * TOLERANCE, 6)
        return [math.floor(lower - margin), math.ceil(lower + margin)]
    return lower if lower == upper and unit == "items" else [lower, upper]


def _find_bound(parts: Mapping[str, Chunk]) -> str:
    """Find the bound that stands at a number or behind its unit; empty if the number is exact."""
    behind = [term for term in parts["behind"].terms if "about" not in term.meanings]
    terms = [*parts["near"].terms[-1:], *parts["gap"].terms, *behind]
    return next((term["bound"] for term in terms if term["bound"]), "")


def _is_part(parts: Mapping[str, Chunk], unit: str) -> bool:
    """Return True for an article, and for a measure of a part: "with two examples"."""
    near, count = parts["near"], parts["lower"].first
    last = Chunk(near.terms[-1:])
    is_article = count["numbers"] == "1" and "refer" not in count.meanings
    return (
        (is_article and not last.has("onto", "only"))
        or (last.has("not", "definite") and not last.has("bound"))
        or (near.has("with") and unit not in {"words", "characters"})
        or near.has("each")
        or parts["behind"].has("each")
    )
