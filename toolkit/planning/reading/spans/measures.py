"""The pass that finds measures: how long, how large, how fast, in which language and colours."""

import re
from dataclasses import dataclass, replace

from toolkit.planning.reading.objective_reading import Bound, Measure
from toolkit.planning.reading.spans.scan import Break, Phrase, Scan
from toolkit.planning.reading.words.grammar import get_grammar

_TIMES = frozenset({"x", "×", "*"})
_BETWEEN = _TIMES | {"by", "mal", "par", "por", "per", "na", "auf", "sur", "su", "乘"}
_OF = frozenset({"of", "is", "to", "von", "de", "di"})
_MAX_LOOKBACK = 4
# Characters between the name of a field and its value, where words are not set apart.
_MAX_LINK = 6
_COUNTING = ("counter", "unit.bullets", "unit.pace")
_LEAST_PIXELS = 16
# A number like these before a unit, or in a question, is a year.
YEARS = range(1000, 2100)
# Which kinds a measure can be of, the likeliest first.
MEASURED_KINDS = {
    "words": ("text", "speech", "card", "research"),
    "characters": ("text", "card"),
    "sentences": ("text", "speech", "card"),
    "paragraphs": ("text",),
    "lines": ("text", "card"),
    "bullets": ("text", "card"),
    "seconds": ("speech", "text"),
    "minutes": ("speech", "text"),
    "width": ("image", "card"),
    "height": ("image", "card"),
    "shape": ("image", "card"),
    "theme": ("card",),
    "format": ("card", "image", "speech"),
    "pace": ("speech",),
}
_RANGE = re.compile(r"\s?[-–—]\s?")
_PACE_RANGE = (0.25, 4.0)


@dataclass(frozen=True, slots=True)
class PlacedMeasure:
    """A measure, or a language, with the words that say it."""

    start: int
    end: int
    measure: Measure


def find_measures(scan: Scan) -> list[PlacedMeasure]:
    """Find every measure outside of literals, and consume its words."""
    found: list[PlacedMeasure] = []
    i = 0
    while i < len(scan):
        placed = _read_measure(scan, i) if scan.is_free(i) else []
        if placed:
            start = min(_find_bound_start(scan, i), placed[0].start)
            end = placed[0].end
            scan.consume(start, end, "measure")
            found += placed
            i = max(end, i + 1)
        else:
            i += 1
    return found


def _read_measure(scan: Scan, i: int) -> list[PlacedMeasure]:
    _, end = read_quantity(scan, i)
    if end > i and not scan.lexicon.separator:
        end = _skip_counter(scan, end)
        end += scan.word(end) == "の"
    named = _read_field(scan, end) if end > i else []
    if named and named[0].start == i:
        return named
    return _read_size(scan, i) or _read_field(scan, i) or _read_quantity(scan, i)


def _read_size(scan: Scan, i: int) -> list[PlacedMeasure]:
    """Read `1200x630`, `768 by 512`, `512-pixel`, `1000 px`."""
    word = scan.word(i)
    if not word.isdigit():
        return []
    second = scan.word(i + 2)
    if (
        scan.word(i + 1) in _BETWEEN
        and second.isdigit()
        and min(int(word), int(second)) >= _LEAST_PIXELS
    ):
        end = _skip_unit(scan, i + 3, "unit.pixels")
        return _make_size(i, end, int(word), int(second))
    sides = _read_sides(scan, i)
    if sides:
        return sides
    unit = scan.find(i + 1, "unit.pixels")
    if unit and scan.word(i + 1) not in _BETWEEN and int(word) >= _LEAST_PIXELS:
        return _make_size(i, unit.end, int(word), int(word))
    return []


def _read_sides(scan: Scan, i: int) -> list[PlacedMeasure]:
    """Read sides by their names: `800 px wide and 418 px high`."""
    sides = get_grammar(scan.lexicon.code).sides
    found: list[PlacedMeasure] = []
    k = i
    while scan.word(k).isdigit() and int(scan.word(k)) >= _LEAST_PIXELS:
        place = k + 1 if scan.word(k + 1) in sides else _skip_unit(scan, k + 1, "unit.pixels")
        place += scan.word(place) in get_grammar(scan.lexicon.code).partitive
        name = sides.get(scan.word(place))
        if name is None:
            # "800 pixels wide" may be one unit of the lexicon
            name = sides.get(scan.word(place - 1)) if place > k + 1 else None
            place -= 1
        if name is None:
            break
        found.append(PlacedMeasure(i, place + 1, Measure(name, int(scan.word(k)))))
        k = place + 1
        if scan.find(k, "join.and") or scan.word(k) in _BETWEEN:
            k += 1
    last = found[-1].end if found else i
    return [replace(one, end=last) for one in found]


def _make_size(start: int, end: int, width: int, height: int) -> list[PlacedMeasure]:
    return [
        PlacedMeasure(start, end, Measure("width", width)),
        PlacedMeasure(start, end, Measure("height", height)),
    ]


def _skip_unit(scan: Scan, i: int, unit: str) -> int:
    phrase = scan.find(i, unit) if i < len(scan) else None
    return phrase.end if phrase and scan.word(i) not in _BETWEEN else i


def _read_field(scan: Scan, i: int) -> list[PlacedMeasure]:
    """Read an input field that a capability names: `seed 99`, `40 steps`, `at most 6 sources`."""
    if scan.word(i) not in scan.names.field_openings:
        return []
    for length in range(scan.names.longest_field, 0, -1):
        name = scan.names.fields.get(" ".join(scan.word(i + n) for n in range(length)))
        if name is not None and i + length <= len(scan):
            found = _read_field_value(scan, i, i + length, name)
            if found is not None:
                return [found]
    return []


def _read_field_value(scan: Scan, i: int, end: int, name: str) -> PlacedMeasure | None:
    """Read the value beside the name of a field: after a colon, or a number by itself."""
    if scan.has(i, "thing.image", "thing.speech"):
        return None  # "Image: a bicycle" asks for one
    if end < len(scan) and scan.is_free(end) and scan.gap(end).strip() in {":", "="}:
        last = scan.find_sentence_end(end)
        value: float | str | None = read_quantity(scan, end)[0]
        if value is None or last > end + 1:
            value = scan.text(end, last).strip(" .")
        return PlacedMeasure(i, last, Measure(name, value))
    if not scan.lexicon.separator:
        return _read_unspaced_value(scan, i, end, name) if name in scan.names.numbers else None
    # "seed = 99", "seed of 99", "language de"
    skip = end + (scan.word(end) in _OF)
    number, last = read_quantity(scan, skip)
    is_number = name in scan.names.numbers and not any(scan.breaks[end : skip + 1])
    if number is not None and is_number and _stands_alone(scan, last):
        return PlacedMeasure(i, last, Measure(name, number))
    is_code = len(scan.word(end)) == 2 and scan.word(end).isalpha() and scan.is_free(end)
    if is_code and not scan.breaks[end] and not scan.has(end, "function_word"):
        return PlacedMeasure(i, end + 1, Measure(name, scan.word(end)))
    choices = scan.names.choices.get(name, frozenset())
    if scan.word(skip) in choices and not any(scan.breaks[end : skip + 1]):
        return PlacedMeasure(i, skip + 1, Measure(name, scan.word(skip)))
    if i > 0 and scan.word(i - 1) in choices and scan.is_free(i - 1) and not scan.breaks[i]:
        return PlacedMeasure(i - 1, end, Measure(name, scan.word(i - 1)))
    before, _ = read_quantity(scan, i - 1) if i > 0 else (None, 0)
    if before is not None and name in scan.names.numbers and _stands_alone(scan, end):
        return PlacedMeasure(i - 1, end, Measure(name, before, _find_bound(scan, i - 1)))
    return None


def _read_unspaced_value(scan: Scan, i: int, end: int, name: str) -> PlacedMeasure | None:
    """Read the number after the name of a field, past what links them, or the one before it.

    Between them stand particles, verbs of setting and bounds, in one run of characters:
    `语速调到1.25`, `来源不超过五个`, `出典は三件以内`. The number may have a counter: `四条来源`.
    """
    for k in range(end, min(end + _MAX_LINK, len(scan))):
        if scan.breaks[k] or not scan.is_free(k):
            break
        number, last = read_quantity(scan, k)
        if number is None:
            continue
        counted = _skip_counter(scan, last)
        if _is_last_of_value(scan, counted, is_counted=counted > last):
            return PlacedMeasure(i, counted, Measure(name, number))
        break
    start = i - 1 if scan.word(i - 1) == "の" else i
    for k in range(max(0, start - _MAX_LOOKBACK), start):
        number, last = read_quantity(scan, k)
        if number is not None and _skip_counter(scan, last) == start:
            return PlacedMeasure(k, end, Measure(name, number, _find_bound(scan, k)))
    return None


def _skip_counter(scan: Scan, i: int) -> int:
    counter = scan.find(i, *_COUNTING) if i < len(scan) and not scan.breaks[i] else None
    return counter.end if counter is not None else i


def _is_last_of_value(scan: Scan, i: int, *, is_counted: bool) -> bool:
    """Tell whether no noun follows that a number would count: `5つの段落`."""
    if is_counted:
        return scan.word(i) != "の" and not scan.has(i, "thing.", "creative")
    verbal = ("act.", "make", "polite", "bound.", "negation.")
    if _stands_alone(scan, i) or scan.word(i) in _TIMES:
        return True
    return scan.has(i, *verbal) or scan.owners[i] is not None


def _stands_alone(scan: Scan, i: int) -> bool:
    """Tell whether no noun follows that a number or a name would belong to: `two voice clones`."""
    if i >= len(scan) or scan.breaks[i] or scan.word(i) in scan.names.field_openings:
        return True
    is_said = scan.word(i) in get_grammar(scan.lexicon.code).finite  # "three sources will do"
    return is_said or scan.has(i, "function_word", "join.")


def _read_quantity(scan: Scan, i: int) -> list[PlacedMeasure]:
    """Read a number with a unit: `50 words`, `two-sentence`, `a 30-second`, `1.5x`."""
    number, end = read_quantity(scan, i)
    if number is None:
        return []
    if scan.word(end) in _TIMES and scan.word(i)[:1].isdigit() and not scan.gap(end):
        return [PlacedMeasure(i, end + 1, Measure("pace", number))]
    other = None
    if end < len(scan) and _RANGE.fullmatch(scan.gap(end)):  # "100–120 words"
        upper, last = read_quantity(scan, end)
        if upper is not None and upper > number and scan.word(i)[:1].isdigit():
            other, end = upper, last
    unit = _find_unit(scan, end)
    if unit is not None and number in YEARS and not scan.gap(end):
        return []  # "the 1970s" are no seconds
    counted = _find_counted(scan, i, end) if unit is None else None
    if unit is None and counted is None:
        return _read_pace(scan, i, number)
    name, last = (unit.category, unit.end) if unit is not None else counted or ("", end)
    name = name.removeprefix("unit.")
    trailing = scan.find(last, "bound") if last < len(scan) and not scan.breaks[last] else None
    bound = _find_bound(scan, i)
    if other is not None:
        number, bound = (number + other) / 2, "about"
    if trailing and trailing.category == "bound.about" and _ends_clause(scan, trailing.end):
        bound, last = "about", trailing.end
    return [PlacedMeasure(i, last, Measure(name, number, bound))]


def _find_unit(scan: Scan, i: int) -> Phrase | None:
    """Find a unit right after a number, or after one adjective: `two short sentences`."""
    for k in (i, i + 1):
        if k >= len(scan) or scan.breaks[k]:
            return None
        for phrase in scan.phrases(k):
            if phrase.category.startswith("unit.") and phrase.category != "unit.pixels":
                return phrase
        if not scan.has(k, "filler"):
            return None
    return None


def _find_counted(scan: Scan, i: int, end: int) -> tuple[str, int] | None:
    """Find the unit that a number counts from behind: `bullets, three of them`."""
    them = scan.find(end, "pronoun") if end < len(scan) and not scan.breaks[end] else None
    first = _find_bound_start(scan, i)
    if them is None or them.end - end < 2 or first == 0 or scan.breaks[first] != Break.COMMA:
        return None
    for phrase in scan.phrases(first - 1):
        if phrase.category.startswith("unit.") and phrase.end == first:
            return phrase.category, them.end
    return None


def _read_pace(scan: Scan, i: int, number: float) -> list[PlacedMeasure]:
    """Read a bare fraction as a pace: `slowly, at 0.7`."""
    is_fraction = number != int(number) and _PACE_RANGE[0] <= number <= _PACE_RANGE[1]
    if not is_fraction or scan.word(i - 1) not in {"at", "speed", "pace", "tempo", "bei", "con"}:
        return []
    return [PlacedMeasure(i, read_quantity(scan, i)[1], Measure("pace", number))]


def read_quantity(scan: Scan, i: int) -> tuple[float | None, int]:
    """Return the number that begins at a word, if one does, and where it ends."""
    found = scan.read_number(i) if i < len(scan) else None
    return found or (None, i)


def _find_bound(scan: Scan, i: int) -> Bound:
    """Return how closely a number is meant, by the words before it."""
    for start in range(max(0, i - _MAX_LOOKBACK), i):
        for phrase in scan.phrases(start):
            if phrase.category.startswith("bound.") and phrase.end == i:
                match phrase.category:
                    case "bound.at_most":
                        return "at_most"
                    case "bound.at_least":
                        return "at_least"
                    case "bound.about":
                        return "about"
    return "exactly"


def _find_bound_start(scan: Scan, i: int) -> int:
    """Return where the words that bound a number begin; the number itself without any."""
    for start in range(max(0, i - _MAX_LOOKBACK), i):
        if any(
            phrase.category.startswith("bound.") and phrase.end == i
            for phrase in scan.phrases(start)
        ) and all(scan.is_free(k) for k in range(start, i)):
            return start
    return i


def _ends_clause(scan: Scan, i: int) -> bool:
    return i >= len(scan) or scan.breaks[i] > Break.NONE


def find_attribute(scan: Scan, i: int) -> PlacedMeasure | None:
    """Read a theme, shape, pace or format that begins at a word."""
    phrase = scan.find(i, "attribute.")
    if phrase is None:
        return None
    name = phrase.category.removeprefix("attribute.")
    value: float | str = float(phrase.value) if name == "pace" else phrase.value
    return PlacedMeasure(phrase.start, phrase.end, Measure(name, value))
