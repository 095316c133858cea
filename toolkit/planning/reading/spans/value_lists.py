"""The pass that finds values of which each asks for one: `in English and Dutch`, `0.8 and 1.2`."""

from toolkit.planning.reading.objective_reading import Measure
from toolkit.planning.reading.spans.lists import ItemList
from toolkit.planning.reading.spans.measures import MEASURED_KINDS, find_attribute, read_quantity
from toolkit.planning.reading.spans.scan import Break, Scan
from toolkit.planning.reading.words.grammar import get_grammar

_MAX_VALUES = 12
_LANGUAGE_KINDS = frozenset({"text", "speech"})


def find_values(scan: Scan) -> list[ItemList]:
    """Find coordinated values of one property and consume their words."""
    found = []
    for start, end in scan.find_sentences():
        k = start + 1
        while k < end:
            one = _read_values(scan, k, end)
            if one is not None:
                scan.consume(one.start, one.end, "item")
                found.append(one)
            k = one.end if one is not None else k + 1
    return found


def _read_values(scan: Scan, i: int, end: int) -> ItemList | None:
    """Read `light, dark and forest`, after the preposition or the name that leads to them."""
    led = _find_lead(scan, i)
    times = get_grammar(scan.lexicon.code).times
    i += scan.word(i) in times  # "once slow, once fast"
    first = _read_value(scan, i, None if led is None else _name_field(scan, i))
    if led is None or first is None:
        return None
    items, values = [(led, first[1])], [first[0]]
    while len(items) < _MAX_VALUES:
        k = items[-1][1]
        both = scan.find(k, "join.then", "join.and") if k < end else None
        joined = k < end and (scan.breaks[k] == Break.COMMA or both is not None)
        k = both.end if both is not None else k
        if joined and (scan.word(k) == scan.word(led) or scan.word(k) in times):
            k += 1
        following = _read_value(scan, k, first[0].name) if joined and k < end else None
        if following is None:
            break
        items.append((k, following[1]))
        values.append(following[0])
    last = items[-1][1]
    distinct = len({value.value for value in values}) == len(values)
    if len(items) < 2 or not distinct or (last < end and not _ends_values(scan, last)):
        return None
    return ItemList(led, last, tuple(items), True, 0, tuple(values), _find_kinds(scan, first[0]))


def _find_lead(scan: Scan, i: int) -> int | None:
    """Return where the words begin that lead to values: a preposition, or none after a colon."""
    if scan.breaks[i] == Break.CLAUSE:
        return i
    leads = scan.is_free(i - 1) and scan.has(i - 1, "join.as") and not scan.breaks[i]
    return i - 1 if leads and not scan.has(i - 1, "about") else None


def _name_field(scan: Scan, i: int) -> str | None:
    """Return the input field that the word before a colon names: `speeds`."""
    if scan.breaks[i] != Break.CLAUSE:
        return None
    word = scan.word(i - 1)
    one = next((word.removesuffix(s) for s in get_grammar(scan.lexicon.code).plural), word)
    return scan.names.fields.get(word) or scan.names.fields.get(one)


def _read_value(scan: Scan, i: int, name: str | None) -> tuple[Measure, int] | None:
    """Read the value at a word: a language, an attribute, or one that a field takes."""
    if not scan.is_free(i):
        return None
    language = scan.find(i, "language")
    if language is not None and name in {None, "language"}:
        return Measure("language", language.value), language.end
    attribute = find_attribute(scan, i)
    if attribute is not None and name in {None, attribute.measure.name}:
        return attribute.measure, attribute.end
    if name is not None and scan.word(i) in scan.names.choices.get(name, frozenset()):
        return Measure(name, scan.word(i)), i + 1
    number, end = read_quantity(scan, i)
    if number is not None and name in scan.names.fields.values():
        return Measure(name or "", number), end
    return None


def _ends_values(scan: Scan, i: int) -> bool:
    """Tell whether values end before a word: at a break, or at a noun for all of them."""
    if scan.breaks[i] or scan.owners[i] is not None or scan.has(i, "function_word", "join."):
        return True
    return i + 1 >= len(scan) or bool(scan.breaks[i + 1])


def _find_kinds(scan: Scan, measure: Measure) -> frozenset[str]:
    """Find the kinds that a value can be of."""
    if measure.name == "language":
        return _LANGUAGE_KINDS
    if measure.name in MEASURED_KINDS:
        return frozenset(MEASURED_KINDS[measure.name])
    fields = scan.names.fields_by_kind
    return frozenset(kind for kind, own in fields.items() if measure.name in own)
