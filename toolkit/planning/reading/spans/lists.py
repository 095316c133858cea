"""The pass that finds lists of which each item asks for one: `for each of Oslo, Rome and Bern`."""

import re
from dataclasses import dataclass

from toolkit.planning.reading.objective_reading import Measure
from toolkit.planning.reading.spans.measures import read_quantity
from toolkit.planning.reading.spans.noun_phrases import find_head
from toolkit.planning.reading.spans.scan import Break, Phrase, Scan
from toolkit.planning.reading.words.grammar import get_grammar

_MAX_ITEMS = 50
# How many words an item between a class and what is asked for of it may have.
_MAX_ITEM_WORDS = 4
_BULLET_LINE = re.compile(r"^[ \t]*(?:[-*•–]|\d{1,2}[.)])[ \t]+(?=\S)", re.M)


@dataclass(frozen=True, slots=True)
class ItemList:
    """Items of which each is asked for by itself.

    Attributes:
        start, end: the tokens that it takes.
        items: the tokens of each item.
        is_each: whether a word such as `each` says that it is spread.
        scope: where the sentence ends that asks for something of each; 0 where nothing says so.
        values: what each item gives to what is made, if the items are values of one property.
        kinds: the kinds that such values can be of.
    """

    start: int
    end: int
    items: tuple[tuple[int, int], ...]
    is_each: bool
    scope: int = 0
    values: tuple[Measure, ...] = ()
    kinds: frozenset[str] = frozenset()


def find_lists(scan: Scan) -> list[ItemList]:
    """Find the lists of an objective and consume their words."""
    found = [*find_bulleted(scan)]
    for start, end in scan.find_sentences():
        for finder in (_find_apposed, find_after_colon, _find_ones, _find_enumerated):
            one = finder(scan, start, end)
            if one is not None and all(scan.is_free(k) for k, _ in one.items):
                consume_items(scan, one)
                found.append(one)
                break
    return sorted(found, key=lambda one: one.start)


def consume_items(scan: Scan, found: ItemList) -> None:
    """Mark the words of items as read."""
    for start, end in found.items:
        for k in range(start, end):
            if scan.is_free(k):
                scan.consume(k, k + 1, "item")


def find_bulleted(scan: Scan) -> list[ItemList]:
    """Find lines that begin with a bullet, where `each` or their number stands elsewhere."""
    marks = [match.end() for match in _BULLET_LINE.finditer(scan.objective)]
    if not 2 <= len(marks) <= _MAX_ITEMS:
        return []
    starts = {token.start: i for i, token in enumerate(scan.tokens)}
    items = []
    for mark in marks:
        place = starts.get(mark)
        if place is None:
            return []
        end = place + 1
        while end < len(scan) and "\n" not in scan.gap(end):
            end += 1
        items.append((place, end))
    first, last = items[0][0], items[-1][1]
    others = [k for k in range(len(scan)) if not first <= k < last]
    is_each = any(scan.find(k, "join.for_each") for k in others)
    if not is_each and not any(read_quantity(scan, k)[0] == len(items) for k in others):
        return []
    found = ItemList(first, last, tuple(items), is_each)
    consume_items(scan, found)
    return [found]


def find_after_colon(scan: Scan, start: int, end: int) -> ItemList | None:
    """Find `three pictures of houses: gothic, brutalist, thatched`."""
    for i in range(start + 1, end):
        if scan.breaks[i] != Break.CLAUSE:
            continue
        items = split_items(scan, i, end)
        if not 2 <= len(items) <= _MAX_ITEMS:
            continue
        named = any(find_head(scan, k) for k in range(start, i))
        if not named and all(_is_asked(scan, *item) for item in items):
            continue  # "two things: a fable, and a picture of a badger"
        counted = any(read_quantity(scan, k)[0] == len(items) for k in range(start, i))
        is_each = any(scan.find(k, "join.for_each") for k in range(max(start, i - 7), i))
        is_each = is_each or (counted and any(_spreads(scan, k) for k in range(end, len(scan))))
        if counted or is_each:
            return ItemList(i, end, tuple(items), is_each)
    return None


def split_items(scan: Scan, start: int, end: int) -> list[tuple[int, int]]:
    """Split words at commas and at the conjunction before the last one."""
    items, first = [], start
    for k in range(start, end):
        gap = k > start and scan.breaks[k] >= Break.COMMA
        joined = scan.find(k, "join.and")
        if gap and k > first:
            items.append((first, k))
            first = k
        if joined is not None and k > start:
            if k > first:
                items.append((first, k))
            first = joined.end
    if first < end:
        items.append((first, end))
    return items


def _find_apposed(scan: Scan, start: int, end: int) -> ItemList | None:
    """Find `For each of these herbs, dill, mint, sage: a line`: items between class and request."""
    phrase = find_each(scan, start)
    if phrase is None or _names_item(scan, phrase.end):
        return None
    first = scan.find_sentence_end(start, Break.COMMA)
    # "each of the winds – bora, sirocco – …": the items stand between dashes.
    stop = next((k for k in range(first + 1, end) if scan.breaks[k] == Break.CLAUSE), end)
    parts = split_items(scan, first, stop) if first < stop else []
    asked = next((n for n, part in enumerate(parts) if _is_asked(scan, *part)), len(parts))
    items = parts[:asked]
    ends = stop if asked == len(parts) else parts[asked][0]
    if len(items) < 2 or ends >= end or any(b - a > _MAX_ITEM_WORDS for a, b in items):
        return None
    return ItemList(first, ends, tuple(items), is_each=True, scope=end)


def _find_ones(scan: Scan, start: int, end: int) -> ItemList | None:
    """Find `two pictures, one of the gate, one of the yard`."""
    places = [k for k in range(start + 1, end) if _is_one(scan, k)]
    if not 2 <= len(places) <= _MAX_ITEMS:
        return None
    items = []
    for n, place in enumerate(places):
        last = places[n + 1] if n + 1 < len(places) else end
        while last > place + 1 and scan.find(last - 1, "join.and"):
            last -= 1
        items.append((place, last))
    counted = any(
        read_quantity(scan, k)[0] == len(items) for k in range(max(0, start - 40), places[0])
    )
    return ItemList(places[0], end, tuple(items), is_each=False) if counted else None


def _is_one(scan: Scan, k: int) -> bool:
    number, _ = read_quantity(scan, k)
    if number != 1 or scan.word(k).isdigit():
        return False
    return scan.breaks[k] > Break.NONE or scan.find(k - 1, "join.and") is not None


def _find_enumerated(scan: Scan, start: int, end: int) -> ItemList | None:
    """Find `A, B and C` around a phrase such as `for each of`."""
    each = [k for k in range(start, end) if _spreads(scan, k)]
    if not each:
        return None
    phrase = find_each(scan, each[0])
    opening = phrase.end if phrase else each[0] + 1
    # "for each of A, B and C" or "A, B and C, each as an mp3"; "for each one" has no list after it.
    has_list = not scan.has(opening - 1, "pronoun")
    after = _find_run(scan, opening, end) if has_list else None
    if after is not None:
        return _drop_class(scan, after, opening)
    before = _find_run(scan, start, each[0])
    # "a poem, and an image for each": what is asked for is no item.
    asked = before is not None and any(_is_asked(scan, *item) for item in before.items)
    return None if asked else before


def _drop_class(scan: Scan, found: ItemList, opening: int) -> ItemList:
    """Drop what only says what the items are: `for each city, Rome, Oslo and Bern`."""
    first = found.items[0]
    is_class = first[0] == opening and not scan.has(opening - 1, "about")
    if not is_class or len(found.items) < 3 or scan.text(*first)[:1].isupper():
        return found
    return ItemList(found.items[1][0], found.end, found.items[1:], is_each=True)


def _is_asked(scan: Scan, start: int, end: int) -> bool:
    """Tell whether an item is a request with an article: `an image`."""
    first = start if scan.has(start, "article") else start - 1
    return scan.has(first, "article") and any(find_head(scan, k) for k in range(start, end))


def _spreads(scan: Scan, k: int) -> bool:
    """Tell whether a word spreads what is asked for; `per` by itself only counts."""
    return find_each(scan, k) is not None and not scan.has(k, "join.from")


def find_each(scan: Scan, i: int) -> Phrase | None:
    """Return the words that spread what is asked for; `every November` only says how often."""
    phrase = scan.find(i, "join.for_each")
    if phrase is None or scan.word(phrase.end) in get_grammar(scan.lexicon.code).periods:
        return None
    return phrase


def _names_item(scan: Scan, i: int) -> bool:
    """Tell whether an item stands after `each of`, where a class would have a determiner."""
    grammar = get_grammar(scan.lexicon.code)
    k = i + 1 if scan.word(i) in grammar.partitive else i
    if scan.word(k - 1) not in grammar.partitive:
        return False
    determined = scan.word(k) in grammar.definite | grammar.possessive
    return not determined and not scan.has(k, "article", "number")


def _find_run(scan: Scan, start: int, end: int) -> ItemList | None:
    """Find the first run of words with a comma or a conjunction between them."""
    for k in range(start + 1, end):
        joined = scan.find(k, "join.and")
        if joined is None or joined.end >= end or scan.find(joined.end, "act.", "make"):
            continue
        last = _grow_right(scan, joined.end, end)
        items = [(joined.end, last)]
        stop = k
        while stop > start:
            first = stop - 1
            while first > start and scan.breaks[first] == Break.NONE:
                first -= 1
            is_listed = scan.breaks[first] == Break.COMMA and first > start
            if not is_listed:
                first = _shrink_left(scan, max(first, start), stop)
            items.insert(0, (first, stop))
            if not is_listed:
                break
            stop = first
        if len(items) >= 2:
            return ItemList(items[0][0], last, tuple(items), is_each=True)
    return None


def _grow_right(scan: Scan, start: int, end: int) -> int:
    """Return where the last item ends: at a break, or where its capitals do."""
    last = start + 1
    capital = scan.text(start, last)[:1].isupper()
    while last < end and scan.breaks[last] == Break.NONE:
        if scan.has(last, "function_word", "join."):
            break
        if capital and not scan.text(last, last + 1)[:1].isupper():
            break
        last += 1
    return last


def _shrink_left(scan: Scan, start: int, end: int) -> int:
    """Return where the first item begins: after the noun that all items share."""
    first = end - 1
    capital = scan.text(first, end)[:1].isupper()
    while first > start:
        if scan.has(first - 1, "function_word", "join.", "article"):
            break
        if not capital or not scan.text(first - 1, first)[:1].isupper():
            break
        first -= 1
    return first
